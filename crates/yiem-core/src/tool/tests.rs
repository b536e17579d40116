use super::*;
use crate::content::{Content, ImageContent};
use crate::error::Error;
use serde_json::json;

#[derive(Debug, thiserror::Error)]
#[error("no route")]
struct NoRoute;

#[derive(Debug, thiserror::Error)]
#[error("could not connect")]
struct Connect(#[source] NoRoute);

#[test]
fn a_tool_error_takes_in_any_error_with_its_causes() {
    fn fails() -> Result<(), ToolError> {
        Err(Connect(NoRoute))?
    }
    let e = fails().unwrap_err();
    assert_eq!(e.message(), "could not connect: no route");
    assert!(e.source().is_some());
    let output = e.into_output();
    assert!(output.is_error);
    assert_eq!(output.plain_text(), "could not connect: no route");
    let opaque = ToolError::from(Error::from(NoRoute).context("fetching"));
    assert_eq!(opaque.message(), "fetching: no route");
}

#[test]
fn a_definition_is_made_of_what_a_model_is_told() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let definition = ToolDefinition::new("get_weather", "Current weather.", schema.clone());
    let by_hand = ToolDefinition {
        name: "get_weather".to_owned(),
        description: "Current weather.".to_owned(),
        input_schema: schema,
        ..ToolDefinition::default()
    };
    assert_eq!(definition, by_hand);
}

#[test]
fn what_a_tool_may_answer() {
    fn out(value: impl IntoToolOutput) -> ToolOutput {
        value.into_tool_output().unwrap()
    }
    assert_eq!(out("a").plain_text(), "a");
    assert_eq!(out(7).plain_text(), "7");
    assert_eq!(out(()).content, []);
    assert_eq!(out(None::<String>).content, []);
    assert_eq!(out(json!("a")).plain_text(), "a");
    let structured = out(json!({"a":1}));
    assert_eq!(
        (structured.plain_text().as_str(), structured.structured),
        (r#"{"a":1}"#, Some(json!({"a":1})))
    );
    assert_eq!(out(Structured(vec![1, 2])).plain_text(), "[1,2]");
    assert_eq!(
        out(Content::Image(ImageContent::new("AA", "image/png")))
            .content
            .len(),
        1
    );
    let failed: Result<String, NoRoute> = Err(NoRoute);
    assert_eq!(failed.into_tool_output().unwrap_err().message(), "no route");
}

#[test]
fn the_seeds_four_part_result_can_be_made() {
    let r = ToolOutput::from_parts(vec!["x".into()], json!({"a":1}), None, true);
    assert!(r.terminate && !r.is_error && r.added_tool_names.is_empty());
}

#[test]
fn valid_args_read_as_an_object_and_as_a_type() {
    #[derive(Deserialize)]
    struct City {
        city: String,
    }
    let args = ValidArgs::accepted(json!({"city":"Tokyo"}).as_object().unwrap().clone());
    assert_eq!(args["city"], "Tokyo");
    assert_eq!(args.clone().parse::<City>().unwrap().city, "Tokyo");
    assert!(
        args.parse::<Vec<u8>>()
            .unwrap_err()
            .message()
            .contains("do not suit")
    );
}

#[test]
fn values_are_found_by_type() {
    let deps = Deps::default().with(7u32).with("x".to_owned());
    let other = deps.clone().with(8u32);
    assert_eq!(
        (*deps.get::<u32>().unwrap(), *other.get::<u32>().unwrap()),
        (7, 8)
    );
    assert!(deps.get::<u64>().is_none());
}

#[test]
fn a_definition_reads_back_and_lacks_nothing_by_default() {
    let d: ToolDefinition = serde_json::from_value(
        json!({"name":"t","inputSchema":{"type":"object"},"parallel":false}),
    )
    .unwrap();
    assert_eq!(
        (d.parallel, d.replay, d.limits),
        (Some(false), Replay::Never, ToolLimits::default())
    );
    let back: ToolDefinition = serde_json::from_str(&serde_json::to_string(&d).unwrap()).unwrap();
    assert_eq!(back, d);
}
