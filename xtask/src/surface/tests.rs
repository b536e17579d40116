use super::*;

fn api(inner: &str) -> Value {
    let text = format!(
        r#"{{
            "index": {{"1": {{"name": "send", "span": {{"filename": "src/a.rs", "begin": [7, 1]}}, "inner": {inner}}}}},
            "paths": {{"9": {{"crate_id": 5, "path": ["reqwest", "Client"]}}, "8": {{"crate_id": 0, "path": ["yiem_x", "Own"]}}}},
            "external_crates": {{"5": {{"name": "reqwest"}}}}
        }}"#
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_foreign_type_in_a_signature_is_refused_with_its_place() {
    let api = api(
        r#"{"function": {"sig": {"inputs": [["c", {"resolved_path": {"path": "Client", "id": 9, "args": null}}]]}}}"#,
    );
    let found: Vec<String> = foreign_types("yiem_x", &api).into_iter().collect();
    assert_eq!(found, ["yiem_x: reqwest::Client in send (src/a.rs:7)"]);
}

#[test]
fn own_types_and_what_others_implement_for_all_types_are_accepted() {
    let own = api(
        r#"{"function": {"sig": {"inputs": [["c", {"resolved_path": {"path": "Own", "id": 8, "args": null}}]]}}}"#,
    );
    assert!(foreign_types("yiem_x", &own).is_empty());
    let blanket = api(
        r#"{"impl": {"blanket_impl": {"generic": "T"}, "is_synthetic": false, "trait": {"path": "X", "id": 9, "args": null}}}"#,
    );
    assert!(foreign_types("yiem_x", &blanket).is_empty());
}

#[test]
fn an_implementation_for_a_foreign_type_is_refused() {
    let api = api(
        r#"{"impl": {"blanket_impl": null, "is_synthetic": false, "for": {"resolved_path": {"path": "Client", "id": 9, "args": null}}}}"#,
    );
    assert_eq!(foreign_types("yiem_x", &api).len(), 1);
}
