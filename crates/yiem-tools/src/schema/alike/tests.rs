use serde_json::json;

use super::super::InputSchema;
use super::*;

fn compiled(schema: &Value, limits: &SchemaLimits) -> InputSchema {
    InputSchema::compile(schema, limits).unwrap()
}

#[test]
fn the_same_text_is_compiled_once_while_it_is_held() {
    let schema = json!({"type": "object", "properties": {"alike_1": {"type": "string"}}});
    let limits = SchemaLimits::own();
    let first = compiled(&schema, &limits);
    let second = compiled(&schema.clone(), &limits);
    assert!(Arc::ptr_eq(&first.0, &second.0));
    let there = Arc::downgrade(&first.0);
    drop((first, second));
    assert!(there.upgrade().is_none(), "nobody holds it, and it lives");
    assert!(held(&Likeness::of(&schema, true, &limits)).is_none());
}

#[test]
fn another_order_another_purpose_and_other_limits_are_another_schema() {
    let schema = json!({"type": "object", "properties": {"alike_2": {"type": "string"}}});
    let turned = json!({"properties": {"alike_2": {"type": "string"}}, "type": "object"});
    let own = SchemaLimits::own();
    let of_others = SchemaLimits::default();
    let first = compiled(&schema, &own);
    assert!(!Arc::ptr_eq(&first.0, &compiled(&turned, &own).0));
    assert!(!Arc::ptr_eq(&first.0, &compiled(&schema, &of_others).0));
    let any = InputSchema::compile_any(&schema, &own).unwrap();
    assert!(!Arc::ptr_eq(&first.0, &any.0));
}

#[test]
fn what_nobody_holds_does_not_pile_up() {
    for n in 0..1_000 {
        let schema = json!({"type": "object", "title": format!("alike_3 {n}")});
        drop(compiled(&schema, &SchemaLimits::own()));
    }
    let held = HELD.lock().unwrap();
    let ours = held
        .schemas
        .keys()
        .filter(|likeness| likeness.text.contains("alike_3"))
        .count();
    assert!(ours < 500, "{ours} of 1,000 are still there");
}
