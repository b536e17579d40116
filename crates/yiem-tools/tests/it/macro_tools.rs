//! `#[tool]`: what a function becomes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use yiem_core::{Error, JsonObject, Replay, Result, Tool, ToolContext, ToolError, ToolOutput};
use yiem_tools::tool;

use crate::kit::{run, run_in, text};

/// Current weather of a city.
#[tool]
async fn get_weather(city: String) -> Result<String> {
    Ok(format!("Weather in {city}: Sunny, 22°C"))
}

#[tokio::test]
async fn a_function_is_a_tool_and_still_a_function() {
    let definition = get_weather.definition();
    assert_eq!(definition.name, "get_weather");
    assert_eq!(definition.label, "Get Weather");
    assert_eq!(definition.description, "Current weather of a city.");
    assert_eq!(
        definition.input_schema,
        json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] })
    );
    assert_eq!(
        text(get_weather, json!({ "city": "Tokyo" })).await,
        Ok("Weather in Tokyo: Sunny, 22°C".to_owned())
    );
    assert_eq!(
        get_weather("Oslo".to_owned())
            .await
            .map_err(|e| e.to_string()),
        Ok("Weather in Oslo: Sunny, 22°C".to_owned())
    );
}

/// How warm it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
enum Units {
    #[default]
    Celsius,
    Fahrenheit,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    /// Name of the city.
    city: String,
    #[serde(default)]
    country: Option<String>,
}

/// Forecast for some days.
///
/// Works for any city.
#[tool(name = "forecast", label = "Weather Forecast", timeout = "20s", parallel = false, replay = safe,
       result_bytes = 4096, concurrency = 2, needs_approval, strict)]
async fn long_name(
    /// Where.
    place: Place,
    /// How many days ahead.
    #[arg(default = 3)]
    days: u8,
    #[arg(default)] units: Units,
    #[arg(default = "en", name = "lang")] language: String,
    #[arg(description = "Anything else")] note: Option<String>,
    tags: Vec<String>,
) -> Result<String> {
    Ok(format!(
        "{} {:?} {days} {units:?} {language} {note:?} {tags:?}",
        place.city, place.country
    ))
}

#[tokio::test]
async fn attributes_parameters_and_defaults_are_told_and_taken() {
    let definition = long_name.definition();
    assert_eq!(definition.name, "forecast");
    assert_eq!(definition.label, "Weather Forecast");
    assert_eq!(
        definition.description,
        "Forecast for some days.\n\nWorks for any city."
    );
    assert_eq!(
        definition.limits.time,
        Some(std::time::Duration::from_secs(20))
    );
    assert_eq!(definition.limits.result_bytes, Some(4096));
    assert_eq!(definition.limits.concurrency, Some(2));
    assert_eq!(definition.parallel, Some(false));
    assert_eq!(definition.replay, Replay::Safe);
    assert_eq!(definition.strict, Some(true));
    assert!(definition.needs_approval && !definition.blocking);
    let schema = &definition.input_schema;
    assert_eq!(schema["required"], json!(["place", "tags"]));
    assert_eq!(
        schema["properties"]["days"],
        json!({ "type": "integer", "minimum": 0, "maximum": 255, "description": "How many days ahead.", "default": 3 })
    );
    assert_eq!(schema["properties"]["units"]["default"], json!("celsius"));
    assert_eq!(schema["properties"]["lang"]["default"], json!("en"));
    assert_eq!(
        schema["properties"]["note"]["description"],
        json!("Anything else")
    );
    assert_eq!(
        schema["properties"]["place"]["description"],
        json!("Where.")
    );
    assert_eq!(
        schema["$defs"]["Place"]["properties"]["city"]["description"],
        json!("Name of the city.")
    );

    assert_eq!(
        text(
            long_name,
            json!({ "place": { "city": "Tokyo" }, "tags": [] })
        )
        .await,
        Ok("Tokyo None 3 Celsius en None []".to_owned())
    );
    assert_eq!(
        text(
            long_name,
            json!({ "place": "{\"city\":\"Tokyo\",\"country\":\"JP\"}", "tags": ["a"], "days": "5.0",
                    "units": "fahrenheit", "lang": null, "note": "x" })
        )
        .await,
        Ok("Tokyo Some(\"JP\") 5 Fahrenheit en Some(\"x\") [\"a\"]".to_owned())
    );
    let refused = text(
        long_name,
        json!({ "place": { "city": "x" }, "tags": [], "days": 300, "units": "kelvin" }),
    )
    .await;
    let refused = refused.unwrap_err();
    assert!(
        refused.contains("- days: got 300; expected at most 255"),
        "{refused}"
    );
    assert!(
        refused.contains(r#"- units: got "kelvin"; expected one of "celsius", "fahrenheit""#),
        "{refused}"
    );
    assert_eq!(
        text(long_name, json!({})).await,
        Err("Missing required arguments: place, tags".to_owned())
    );
}

#[tool]
async fn whole_number(n: u32) -> Result<u32> {
    Ok(n + 1)
}

#[tokio::test]
async fn a_float_without_a_fraction_is_a_whole_number() {
    assert_eq!(
        text(whole_number, json!({ "n": 41.0 })).await,
        Ok("42".to_owned())
    );
}

#[derive(Debug)]
struct Counter(u32);

#[tool]
async fn with_context(context: ToolContext, by: u32) -> Result<String> {
    let counter = context
        .dep::<Counter>()
        .map_err(|e| Error::msg(e.message()))?;
    context.progress(json!({ "half": true })).await;
    Ok(format!("{} {}", context.call_id, counter.0 + by))
}

#[tokio::test]
async fn the_context_is_no_argument_and_brings_the_applications_values() {
    assert_eq!(
        with_context.definition().input_schema["properties"],
        json!({ "by": {
        "type": "integer", "minimum": 0, "maximum": u32::MAX
    } })
    );
    let answered = run_in(with_context, json!({ "by": 2 }), |mut context| {
        context.deps = context.deps.clone().with(Counter(40));
        context
    })
    .await;
    assert_eq!(answered.map(|o| o.plain_text()), Ok("call_1 42".to_owned()));
    let missing = text(with_context, json!({ "by": 2 })).await.unwrap_err();
    assert!(missing.contains("Counter"), "{missing}");
}

#[derive(Serialize, JsonSchema)]
struct Report {
    city: String,
    degrees: f64,
}

#[tool(output_schema)]
async fn report() -> Result<Report> {
    Ok(Report {
        city: "Tokyo".into(),
        degrees: 21.5,
    })
}

#[tool]
async fn nothing() -> Result<()> {
    Ok(())
}

#[tool]
async fn output() -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::text("x").terminating())
}

#[tool]
async fn list() -> Result<Vec<String>> {
    Ok(vec!["a".into(), "b".into()])
}

#[tool]
async fn json_value(anything: Value) -> Result<Value> {
    Ok(anything)
}

#[tokio::test]
async fn results_of_any_kind_become_answers() {
    let reported = run(report, json!({})).await.unwrap();
    assert_eq!(
        reported.structured,
        Some(json!({ "city": "Tokyo", "degrees": 21.5 }))
    );
    assert_eq!(reported.plain_text(), r#"{"city":"Tokyo","degrees":21.5}"#);
    let promised = report.definition().output_schema.clone().unwrap();
    assert_eq!(promised["required"], json!(["city", "degrees"]));
    assert_eq!(
        run(nothing, json!({})).await.unwrap(),
        ToolOutput::default()
    );
    assert!(run(output, json!({})).await.unwrap().terminate);
    assert_eq!(
        run(list, json!({})).await.unwrap().structured,
        Some(json!(["a", "b"]))
    );
    assert_eq!(
        text(json_value, json!({ "anything": [1] })).await,
        Ok("[1]".to_owned())
    );
    assert_eq!(
        text(json_value, json!({})).await,
        Err("Missing required arguments: anything".to_owned())
    );
}

#[tool]
async fn fails_with_io() -> std::io::Result<()> {
    Err(std::io::Error::other("the disk is full"))
}

#[tool]
async fn fails_with_text() -> Result<String, String> {
    Err("no such city".to_owned())
}

#[tool]
async fn fails_with_anyhow() -> anyhow::Result<String> {
    Err(anyhow::anyhow!("no route").context("asking the server"))
}

#[tool]
async fn fails_with_question_mark(n: String) -> Result<i32> {
    Ok(n.parse::<i32>()?)
}

#[tokio::test]
async fn any_error_is_what_the_model_reads() {
    assert_eq!(
        text(fails_with_io, json!({})).await,
        Err("the disk is full".to_owned())
    );
    assert_eq!(
        text(fails_with_text, json!({})).await,
        Err("no such city".to_owned())
    );
    assert_eq!(
        text(fails_with_anyhow, json!({})).await,
        Err("asking the server: no route".to_owned())
    );
    assert_eq!(
        text(fails_with_question_mark, json!({ "n": "x" })).await,
        Err("invalid digit found in string".to_owned())
    );
}

fn old_shape(mut args: JsonObject) -> Result<JsonObject, ToolError> {
    if let Some(town) = args.swap_remove("town") {
        args.insert("city".to_owned(), town);
    }
    Ok(args)
}

fn city_or_timezone(args: &JsonObject) -> Option<String> {
    let has = |name: &str| args.contains_key(name);
    (!has("city") && !has("timezone")).then(|| {
        "Missing required argument: provide at least one of 'timezone' or 'city'".to_owned()
    })
}

#[tool(prepare = old_shape, validate = city_or_timezone)]
async fn local_time(
    #[arg(default)] city: String,
    #[arg(default)] timezone: String,
) -> Result<String> {
    Ok(format!("{city}{timezone}"))
}

#[tokio::test]
async fn preparation_and_a_check_of_ones_own_take_their_places() {
    assert_eq!(
        text(local_time, json!({ "town": "Tokyo" })).await,
        Ok("Tokyo".to_owned())
    );
    assert_eq!(
        text(local_time, json!({})).await,
        Err("Missing required argument: provide at least one of 'timezone' or 'city'".to_owned())
    );
    // The schema is checked all the same.
    assert!(
        text(local_time, json!({ "city": [] }))
            .await
            .unwrap_err()
            .contains("city: got []")
    );
}

/// Works hard.
#[tool(blocking, description = "Adds up.")]
fn add_up(numbers: Vec<i64>) -> Result<i64> {
    Ok(numbers.iter().sum())
}

#[tokio::test]
async fn a_plain_function_may_be_a_tool_whose_work_blocks() {
    assert!(add_up.definition().blocking);
    assert_eq!(add_up.definition().description, "Adds up.");
    assert_eq!(
        text(add_up, json!({ "numbers": [1, 2] })).await,
        Ok("3".to_owned())
    );
    assert_eq!(add_up(vec![4, 5]).ok(), Some(9));
}

#[tool]
async fn keyword(r#type: String, mut n: i32, _unused: Option<bool>) -> Result<String> {
    n += 1;
    Ok(format!("{type}{n}", r#type = r#type))
}

#[tokio::test]
async fn odd_parameter_names_are_plain_for_the_model() {
    assert_eq!(
        keyword.definition().input_schema["required"],
        json!(["type", "n"])
    );
    assert_eq!(
        text(keyword, json!({ "type": "a", "n": 1 })).await,
        Ok("a2".to_owned())
    );
}

mod elsewhere {
    use super::*;

    /// Public ones can be used from other modules.
    #[tool]
    pub(super) async fn from_here() -> Result<&'static str> {
        Ok("here")
    }
}

#[tokio::test]
async fn visibility_is_the_functions() {
    assert_eq!(
        text(elsewhere::from_here, json!({})).await,
        Ok("here".to_owned())
    );
}
