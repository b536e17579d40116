//! The way of arguments to a tool, stage by stage (T-4, SP-023, SP-024).

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use serde_json::{Value, json};
use yiem_core::{
    ArgsCheck, JsonObject, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs,
    async_trait,
};
use yiem_tools::{
    FunctionTool, RegisteredTool, ToolRegistry, ValidationErrorKind, validate_required_args,
};

use crate::kit::{object, plain_tool};

fn registered(tool: impl Tool) -> Arc<RegisteredTool> {
    ToolRegistry::new()
        .register(tool)
        .expect("it is registered")
}

async fn accept(
    tool: &RegisteredTool,
    args: Value,
) -> Result<Value, (ValidationErrorKind, String)> {
    match tool.accept(object(args)).await {
        Ok(args) => Ok(Value::Object(args.into_object())),
        Err(error) => Err((error.kind(), error.to_string())),
    }
}

fn weather() -> FunctionTool {
    let schema = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "units": { "enum": ["c", "f"] }, "days": { "type": "integer", "default": 1 } },
        "required": ["city", "units"]
    });
    FunctionTool::builder("weather").json(schema, |_, _| async move { "sunny" })
}

#[tokio::test]
async fn missing_arguments_end_the_check_alone_with_exactly_the_text_of_the_seeds() {
    let tool = registered(weather());
    for (args, text) in [
        (json!({}), "Missing required arguments: city, units"),
        (
            json!({ "units": "wrong as well", "days": "no number" }),
            "Missing required arguments: city",
        ),
        (
            json!({ "units ": "c", "City": "x" }),
            "Missing required arguments: city, units",
        ),
    ] {
        assert_eq!(
            accept(&tool, args).await,
            Err((ValidationErrorKind::Missing, text.to_owned()))
        );
    }
    assert_eq!(
        accept(&tool, json!({ "city": "x", "units": "c" })).await,
        Ok(json!({ "city": "x", "units": "c", "days": 1 }))
    );
}

/// T's `getTime`: a check across two arguments, and of a form.
struct GetTime(Arc<ToolDefinition>);

#[async_trait]
impl Tool for GetTime {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }
    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        let timezone = args.get("timezone").and_then(Value::as_str);
        let city = args.get("city").and_then(Value::as_str).unwrap_or_default();
        match timezone {
            None if city.is_empty() => ArgsCheck::Reject(
                "Missing required argument: provide at least one of 'timezone' or 'city'"
                    .to_owned(),
            ),
            Some(tz) if !tz.contains('/') => ArgsCheck::Reject(format!(
                "Invalid timezone format: '{tz}'. Use IANA format, e.g. 'America/New_York'"
            )),
            _ => ArgsCheck::Accept,
        }
    }
    async fn call(&self, _: ValidArgs, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("noon"))
    }
}

#[tokio::test]
async fn a_check_of_ones_own_takes_the_place_of_the_required_check_and_of_nothing_else() {
    let tool = registered(GetTime(Arc::new(ToolDefinition {
        name: "getTime".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": { "city": { "type": "string" }, "timezone": { "type": "string" }, "format": { "enum": ["12h", "24h"] } },
            "required": []
        }),
        ..ToolDefinition::default()
    })));
    for (args, text) in [
        (
            json!({}),
            "Missing required argument: provide at least one of 'timezone' or 'city'",
        ),
        (
            json!({ "timezone": "Tokyo" }),
            "Invalid timezone format: 'Tokyo'. Use IANA format, e.g. 'America/New_York'",
        ),
    ] {
        assert_eq!(
            accept(&tool, args).await,
            Err((ValidationErrorKind::Custom, text.to_owned()))
        );
    }
    assert!(accept(&tool, json!({ "city": "Tokyo" })).await.is_ok());
    // The schema holds all the same, coercion included.
    let (kind, _) = accept(&tool, json!({ "city": "Tokyo", "format": "36h" }))
        .await
        .unwrap_err();
    assert_eq!(kind, ValidationErrorKind::Schema);
}

#[tokio::test]
async fn a_required_name_that_the_own_check_passes_over_is_still_refused_by_the_schema() {
    let tool = FunctionTool::builder("t").validate_required_args(|_| None).json(
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] }),
        |_, _| async move { "x" },
    );
    let (kind, text) = accept(&registered(tool), json!({ "b": 1 }))
        .await
        .unwrap_err();
    assert_eq!(kind, ValidationErrorKind::Schema);
    assert!(text.contains("- a: missing; expected a string"), "{text}");
}

#[tokio::test]
async fn the_stages_come_in_their_order() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (first, second) = (Arc::clone(&seen), Arc::clone(&seen));
    let tool = FunctionTool::builder("t")
        .prepare_arguments(move |mut args| {
            first.lock().unwrap().push(format!("prepare {}", Value::Object(args.clone())));
            args.insert("n".to_owned(), json!("5"));
            Ok(args)
        })
        .validate_required_args(move |args| {
            second.lock().unwrap().push(format!("check {}", Value::Object(args.clone())));
            None
        })
        .json(
            json!({ "type": "object", "properties": { "n": { "type": "integer" }, "d": { "default": true } } }),
            |_, _| async move { "x" },
        );
    let accepted = accept(&registered(tool), json!({ "old": 1 })).await;
    assert_eq!(accepted, Ok(json!({ "old": 1, "n": 5, "d": true })));
    assert_eq!(
        *seen.lock().unwrap(),
        [r#"prepare {"old":1}"#, r#"check {"old":1,"n":"5"}"#]
    );
}

#[tokio::test]
async fn failures_and_panics_of_a_tools_own_stages_are_refusals() {
    let failing = FunctionTool::builder("f")
        .prepare_arguments(|_| Err(ToolError::new("no such profile")))
        .json(json!({}), |_, _| async move { "x" });
    assert_eq!(
        accept(&registered(failing), json!({})).await,
        Err((
            ValidationErrorKind::Preparation,
            "no such profile".to_owned()
        ))
    );
    let panicking = FunctionTool::builder("p")
        .validate_required_args(|_| panic!("index out of bounds"))
        .json(json!({}), |_, _| async move { "x" });
    assert_eq!(
        accept(&registered(panicking), json!({})).await,
        Err((
            ValidationErrorKind::Panicked,
            "The tool's own check of its arguments panicked: index out of bounds".to_owned()
        ))
    );
}

#[tokio::test]
async fn arguments_that_were_prepared_already_are_not_prepared_again() {
    let tool = FunctionTool::builder("t")
        .prepare_arguments(|_| Err(ToolError::new("once is enough")))
        .json(
            json!({ "properties": { "n": { "type": "integer" } } }),
            |_, _| async move { "x" },
        );
    let accepted = registered(tool)
        .accept_prepared(object(json!({ "n": "1" })))
        .await;
    assert_eq!(
        accepted.map(|a| a["n"].clone()).map_err(|e| e.to_string()),
        Ok(json!(1))
    );
}

#[tokio::test]
async fn the_models_value_is_not_changed_in_place() {
    let args = object(json!({ "city": "x", "units": "c" }));
    let before = args.clone();
    let accepted = registered(weather()).accept(args.clone()).await.unwrap();
    assert_eq!(args, before);
    assert_ne!(accepted.into_object(), before);
}

#[test]
fn a_result_is_held_against_the_output_schema() {
    let tool = FunctionTool::builder("report")
        .output_schema(json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }))
        .json(json!({}), |_, _| async move { "x" });
    let tool = registered(tool);
    let check = |output: ToolOutput| tool.check_output(&output).map_err(|e| e.to_string());
    assert_eq!(check(ToolOutput::structured(json!({ "n": 1 }))), Ok(()));
    assert_eq!(
        check(ToolOutput::text("failed").failed()),
        Ok(()),
        "a failure promises nothing"
    );
    let wrong = check(ToolOutput::structured(json!({ "n": "1" }))).unwrap_err();
    assert!(
        wrong.starts_with(
            "Invalid structured result, 1 problem:\n- n: got \"1\"; expected an integer"
        ),
        "{wrong}"
    );
    assert!(
        check(ToolOutput::text("no structure"))
            .unwrap_err()
            .contains("promises a structured result")
    );
    let without = registered(plain_tool("plain", "x", json!({})));
    assert!(without.check_output(&ToolOutput::text("x")).is_ok());
}

#[test]
fn the_required_check_alone_reads_the_schema_as_the_seeds_do() {
    let schema = json!({ "required": ["b", "a"] });
    assert_eq!(
        validate_required_args(&object(json!({})), &schema),
        Some("Missing required arguments: b, a".to_owned())
    );
    assert_eq!(
        validate_required_args(&object(json!({ "a": null, "b": 0 })), &schema),
        None
    );
    assert_eq!(validate_required_args(&object(json!({})), &json!({})), None);
}

#[tokio::test]
async fn a_tools_own_limit_of_calls_at_once_is_kept() {
    let limited = registered(plain_tool("free", "x", json!({})));
    let (_a, _b) = (limited.permit().await, limited.permit().await);
    let two = registered(
        FunctionTool::builder("two")
            .concurrency(2)
            .json(json!({}), |_, _| async move { "x" }),
    );
    let (first, _second) = (two.permit().await, two.permit().await);
    let third = two.permit();
    tokio::pin!(third);
    assert!(third.as_mut().now_or_never().is_none(), "two are running");
    drop(first);
    assert!(third.now_or_never().is_some(), "a place is free");
}

fn unchanged(tool: &RegisteredTool, args: Value) -> bool {
    let args = Arc::new(object(args));
    match tool.accept_unchanged(&args) {
        Some(accepted) => {
            assert!(Arc::ptr_eq(accepted.shared(), &args));
            true
        }
        None => false,
    }
}

#[cfg(feature = "schema")]
#[tokio::test]
async fn arguments_that_fit_as_they_came_are_shared_and_only_those() {
    let schema = |city: Value| {
        json!({
            "type": "object",
            "properties": { "city": city, "days": { "type": "integer" } },
            "required": ["city"],
            "additionalProperties": false
        })
    };
    let json_tool =
        |schema| FunctionTool::builder("weather").json(schema, |_, _| async { "sunny" });
    let plain = registered(json_tool(schema(json!({ "type": "string" }))));
    assert!(unchanged(&plain, json!({ "city": "Tokyo", "days": 3 })));
    for args in [
        json!({}),
        json!({ "city": 3 }),
        json!({ "city": "Tokyo", "days": "3" }),
        json!({ "city": "Tokyo", "dayz": 3 }),
    ] {
        assert!(!unchanged(&plain, args.clone()), "{args}");
    }
    // Whatever may have to be changed or asked goes the whole way.
    let default = registered(json_tool(schema(
        json!({ "type": "string", "default": "Oslo" }),
    )));
    let format = registered(json_tool(schema(
        json!({ "type": "string", "format": "date" }),
    )));
    let prepared = registered(
        FunctionTool::builder("weather")
            .prepare_arguments(Ok)
            .json(schema(json!({ "type": "string" })), |_, _| async {
                "sunny"
            }),
    );
    let checked = registered(
        FunctionTool::builder("weather")
            .validate_required_args(|_| None)
            .json(schema(json!({ "type": "string" })), |_, _| async {
                "sunny"
            }),
    );
    for tool in [default, format, prepared, checked] {
        assert!(!unchanged(&tool, json!({ "city": "Tokyo" })));
        assert_eq!(
            accept(&tool, json!({ "city": "Tokyo" })).await,
            Ok(json!({ "city": "Tokyo" }))
        );
    }
}
