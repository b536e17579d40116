use super::*;

fn shown(text: &str) -> Option<String> {
    growing_arguments(text).map(|object| Value::Object(object).to_string())
}

#[test]
fn v10_partial_json() {
    for (text, expected) in [
        ("", Some("{}")),
        ("  ", Some("{}")),
        ("{", Some("{}")),
        (r#"{"a":1,"b":"he"#, Some(r#"{"a":1,"b":"he"}"#)),
        (r#"{"a":1,"b"#, Some(r#"{"a":1}"#)),
        (r#"{"a":1,"b":"#, Some(r#"{"a":1}"#)),
        (r#"{"a":1,"#, Some(r#"{"a":1}"#)),
        (r#"{"a":12"#, Some(r#"{"a":12}"#)),
        (r#"{"a":-"#, Some("{}")),
        (r#"{"a":1.5e"#, Some("{}")),
        (r#"{"a":tr"#, Some("{}")),
        (r#"{"a":true"#, Some(r#"{"a":true}"#)),
        (r#"{"a":[1,{"b":"x"#, Some(r#"{"a":[1,{"b":"x"}]}"#)),
        (r#"{"a":"x\"#, Some(r#"{"a":"x"}"#)),
        (r#"{"a":"x\u00"#, Some(r#"{"a":"x"}"#)),
        (r#"{"a":"\ud83d\ude0"#, Some(r#"{"a":""}"#)),
        (r#"{"a":"é"#, Some(r#"{"a":"é"}"#)),
        (r#"{"a":"x"} "#, Some(r#"{"a":"x"}"#)),
        ("[1", None),
        ("\"a", None),
        ("nonsense", None),
        (r#"{"a" 1"#, None),
        (r#"{"a":1 2"#, None),
        (r#"{a:1"#, None),
        (r#"{"a":nope"#, None),
        (r#"{"a":1}x"#, None),
    ] {
        assert_eq!(shown(text).as_deref(), expected, "{text:?}");
    }
}

#[test]
fn every_beginning_of_an_object_can_be_shown_and_the_whole_of_it_is_itself() {
    let whole = r#" {"a b" : [ 1 , -2.5e+3, true, null, {}, [], "q\"\\\n\u00e9\ud83d\ude00😀" ], "c":{"d":{"e":"f"}} } "#;
    for (at, _) in whole.char_indices() {
        assert!(
            growing_arguments(&whole[..at]).is_some(),
            "{:?}",
            &whole[..at]
        );
    }
    let value: Value = serde_json::from_str(whole).unwrap();
    assert_eq!(Value::Object(growing_arguments(whole).unwrap()), value);
}

#[test]
fn what_is_nested_without_end_is_not_shown() {
    let deep = "{\"a\":".repeat(100_000);
    assert!(growing_arguments(&deep).is_none());
}
