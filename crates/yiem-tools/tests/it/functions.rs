//! `FunctionTool`: closures as tools.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use yiem_core::{Structured, Tool, ToolError, ToolOutput};
use yiem_tools::FunctionTool;

use crate::kit::{run, text};

/// Weather of a place.
#[derive(Deserialize, JsonSchema)]
struct Weather {
    /// Name of the city.
    city: String,
    #[serde(default)]
    days: u8,
    units: Option<String>,
}

#[tokio::test]
async fn a_typed_closure_has_its_types_schema_and_description() {
    let tool = FunctionTool::builder("get-weather")
        .timeout(Duration::from_secs(5))
        .parallel(true)
        .typed(|args: Weather, context| async move {
            Ok::<_, ToolError>(format!(
                "{} {} {:?} {}",
                args.city, args.days, args.units, context.tool_name
            ))
        });
    let definition = tool.definition();
    assert_eq!(definition.label, "Get Weather");
    assert_eq!(definition.description, "Weather of a place.");
    assert_eq!(definition.limits.time, Some(Duration::from_secs(5)));
    assert_eq!(definition.parallel, Some(true));
    assert_eq!(
        definition.input_schema,
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "Name of the city." },
                "days": { "type": "integer", "minimum": 0, "maximum": 255, "default": 0 },
                "units": { "type": ["string", "null"] }
            },
            "required": ["city"]
        })
    );
    assert_eq!(
        text(tool.clone(), json!({ "city": "Oslo", "days": "2" })).await,
        Ok("Oslo 2 None get-weather".to_owned())
    );
    assert_eq!(
        text(tool, json!({})).await,
        Err("Missing required arguments: city".to_owned())
    );
}

#[tokio::test]
async fn a_closure_over_json_has_the_schema_that_it_is_given() {
    let tool = FunctionTool::builder("echo")
        .label("Echo")
        .description("Says it again.")
        .prepare_arguments(|mut args| {
            args.entry("text").or_insert_with(|| "nothing".into());
            Ok(args)
        })
        .validate_required_args(|args| (args["text"] == "bad").then(|| "not that word".to_owned()))
        .json(
            json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] }),
            |args, _| async move { ToolOutput::text(args["text"].as_str().unwrap_or_default()) },
        );
    assert_eq!(
        text(tool.clone(), json!({ "text": 5 })).await,
        Ok("5".to_owned())
    );
    assert_eq!(
        text(tool.clone(), json!({})).await,
        Ok("nothing".to_owned())
    );
    assert_eq!(
        text(tool, json!({ "text": "bad" })).await,
        Err("not that word".to_owned())
    );
}

#[tokio::test]
async fn a_closure_without_arguments_takes_none_and_answers_with_json() {
    let tool =
        FunctionTool::builder("now").typed(|(): (), _| async move { Structured(vec![1, 2]) });
    assert_eq!(
        tool.definition().input_schema,
        json!({ "type": "object", "properties": {} })
    );
    assert_eq!(
        run(tool, json!({})).await.unwrap().structured,
        Some(json!([1, 2]))
    );
}
