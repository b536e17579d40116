use super::*;
use proptest::prelude::*;
use serde_json::json;
use yiem_core::{Content, ResourceBody};

#[test]
fn a_label_is_the_title_then_the_annotated_one_then_the_label_then_the_name() {
    let label = |mut definition: Value| {
        definition["name"] = "n".into();
        definition["inputSchema"] = json!({"type": "object"});
        RemoteTool::read(definition).unwrap().label
    };
    assert_eq!(
        label(json!({"title": "T", "annotations": {"title": "A"}, "label": "L"})),
        "T"
    );
    assert_eq!(
        label(json!({"annotations": {"title": "A"}, "label": "L"})),
        "A"
    );
    assert_eq!(label(json!({"title": "", "label": "L"})), "L");
    assert_eq!(label(json!({"title": 5})), "n");
}

#[test]
fn a_bad_definition_is_named_with_its_reason() {
    for (definition, name) in [
        (json!("text"), "\"text\""),
        (json!(null), "null"),
        (json!({"inputSchema": {}}), "(no name)"),
        (json!({"name": 42, "inputSchema": {}}), "42"),
        (json!({"name": " ", "inputSchema": {}}), "\" \""),
        (json!({"name": "a"}), "a"),
        (json!({"name": "b", "inputSchema": "nope"}), "b"),
        (json!({"name": "c", "inputSchema": {"type": "array"}}), "c"),
        (
            json!({"name": "d", "inputSchema": {}, "outputSchema": 3}),
            "d",
        ),
    ] {
        let bad = RemoteTool::read(definition.clone()).unwrap_err();
        assert_eq!(bad.name, name, "{definition}");
        assert!(!bad.reason.is_empty());
    }
}

#[test]
fn a_definition_keeps_its_schemas_and_unknown_fields_verbatim() {
    let schema = json!({"$schema": "x", "$defs": {"a": {"$ref": "#/$defs/b"}}, "zzz": 1, "aaa": 2});
    let tool = RemoteTool::read(json!({
        "name": "t.x/y", "inputSchema": schema, "icons": [1], "_meta": {"a": 1}, "description": 7,
        "execution": {"taskSupport": "required"},
    }))
    .unwrap();
    assert_eq!(tool.input_schema.to_string(), schema.to_string());
    assert_eq!(tool.extra["icons"], json!([1]));
    assert!(tool.needs_task && tool.description.is_empty());
}

#[test]
fn every_kind_of_content_is_kept_and_goes_back() {
    for block in [
        json!({"type": "text", "text": "a", "annotations": {"audience": ["user"]}}),
        json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
        json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "_meta": {"x": 1}}),
        json!({"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "t"}}),
        json!({"type": "resource", "annotations": {"priority": 1}, "resource": {"uri": "a:b", "blob": "AAAA"}}),
        json!({"type": "hologram", "data": [1]}),
        json!({"type": "text"}),
        json!({"type": "image", "data": 5}),
        json!({"type": "resource", "resource": "x"}),
    ] {
        assert_eq!(content_to_wire(&content_from_wire(block.clone())), block);
    }
    let link = content_from_wire(
        json!({"type": "resource_link", "uri": "u:1", "name": "N", "title": "T"}),
    );
    let Content::Resource(resource) = link else {
        panic!("{link:?}")
    };
    assert_eq!(
        (
            resource.uri.as_str(),
            resource.title.as_deref(),
            resource.body
        ),
        ("u:1", Some("T"), ResourceBody::Link)
    );
}

#[test]
fn an_odd_block_costs_only_itself() {
    let result = CallResult::read(
        json!({"content": [5, null, "bare", {"type": "text", "text": "good"}, {"x": 1}]}),
    );
    let texts: Vec<_> = result.content.iter().filter_map(Content::as_text).collect();
    assert_eq!(texts, ["bare", "good"]);
    assert_eq!(result.content.len(), 4);
}

#[test]
fn any_result_is_read() {
    let texts = |result: Value| {
        CallResult::read(result)
            .content
            .iter()
            .map(Content::to_plain_text)
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(json!({"content": "just text"})), ["just text"]);
    assert_eq!(
        texts(json!({"content": {"type": "text", "text": "one"}})),
        ["one"]
    );
    assert_eq!(texts(json!("plain")), ["plain"]);
    assert_eq!(texts(json!([{"type": "text", "text": "list"}])), ["list"]);
    assert_eq!(texts(json!({"toolResult": {"a": 1}})), [r#"{"a":1}"#]);
    assert_eq!(texts(json!({"answer": 42})), [r#"{"answer":42}"#]);
    assert_eq!(texts(json!(42)), ["42"]);
    for nothing in [
        json!(null),
        json!({}),
        json!({"content": null}),
        json!({"content": []}),
        json!({"isError": false}),
    ] {
        assert!(texts(nothing.clone()).is_empty(), "{nothing}");
    }
    let whole = CallResult::read(
        json!({"content": [], "structuredContent": [1], "isError": "true", "_meta": {"k": 1}}),
    );
    assert_eq!(
        (whole.structured, whole.is_error, whole.meta.is_some()),
        (Some(json!([1])), true, true)
    );
}

#[test]
fn headers_are_found_where_properties_alone_lead() {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        "note": {"type": "string", "default": {"x-mcp-header": "no mark"}},
        "x-mcp-header": {"type": "string"},
    }});
    let marked = param_headers("t", &schema).unwrap();
    let arguments = json!({"region": " padded", "deep": {"n": 5}, "note": "x"});
    let headers = values_for_headers(&marked, arguments.as_object().unwrap());
    assert_eq!(
        headers,
        [
            (
                "Mcp-Param-Region".to_owned(),
                "=?base64?IHBhZGRlZA==?=".to_owned()
            ),
            ("Mcp-Param-N".to_owned(), "5".to_owned()),
        ]
    );
    assert!(values_for_headers(&marked, json!({"region": null}).as_object().unwrap()).is_empty());
}

#[test]
fn invalid_marks_are_told() {
    let property = |property: Value| json!({"type": "object", "properties": {"a": property}});
    for schema in [
        property(json!({"type": "string", "x-mcp-header": ""})),
        property(json!({"type": "string", "x-mcp-header": "a b"})),
        property(json!({"type": "string", "x-mcp-header": 5})),
        property(json!({"type": "number", "x-mcp-header": "A"})),
        property(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}})),
        property(json!({"anyOf": [{"type": "string", "x-mcp-header": "A"}]})),
        json!({"type": "object", "properties": {
            "a": {"type": "string", "x-mcp-header": "Same"}, "b": {"type": "string", "x-mcp-header": "same"}}}),
    ] {
        assert!(param_headers("t", &schema).is_err(), "{schema}");
    }
}

#[test]
fn pages_are_read_or_refused_with_what_came() {
    let page = ListPage::read(
        json!({"tools": [1, 2], "nextCursor": "", "ttlMs": 1500}),
        "tools",
    )
    .unwrap();
    assert_eq!(
        (
            page.items.len(),
            page.next_cursor,
            page.ttl.unwrap().as_millis()
        ),
        (2, Some(json!("")), 1500)
    );
    assert_eq!(
        ListPage::read(json!({"tools": [], "ttlMs": -5}), "tools")
            .unwrap()
            .ttl
            .unwrap()
            .as_millis(),
        0
    );
    for odd in [
        json!({}),
        json!({"tools": {}}),
        json!({"tools": null}),
        json!([]),
        json!(null),
    ] {
        assert!(ListPage::read(odd.clone(), "tools").is_err(), "{odd}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "(text|image|resource|object|x)?".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = "(name|inputSchema|type|content|text|data|uri|resource|properties|x-mcp-header|isError|nextCursor|tools|items)";
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..6).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Any JSON is read as anything, and blocks go back as they came or as their kind has it.
    #[test]
    fn any_json_is_decoded(value in any_json()) {
        let _ = ListPage::read(value.clone(), "tools");
        if let Ok(tool) = RemoteTool::read(value.clone()) {
            let _ = param_headers(&tool.name, &tool.input_schema);
        }
        let result = CallResult::read(value.clone());
        for block in &result.content {
            let again = content_from_wire(content_to_wire(block));
            prop_assert_eq!(block, &again);
        }
        let _ = (result_kind(&value), ServerFacts::from_discovery(&value), ServerFacts::from_initialize(&value));
    }
}
