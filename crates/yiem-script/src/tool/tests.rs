use serde_json::json;
use yiem_core::{ImageContent, SystemEnv, ToolErrorKind};

use super::*;

fn engine() -> ScriptEngine {
    ScriptEngine::new(SystemEnv::shared())
}

async fn tool(source: &str) -> Result<ScriptTool, ScriptError> {
    ScriptTool::from_source(&engine(), "t.js", source).await
}

async fn returning(expression: &str) -> Result<ToolOutput, ToolError> {
    let source = format!(
        "export const tool = {{ name: 't' }};\nexport function execute(args, host) {{ return {expression}; }}"
    );
    let context = ToolContext::new("1", "t", SystemEnv::shared());
    tool(&source)
        .await
        .unwrap()
        .call(ValidArgs::accepted(JsonObject::new()), context)
        .await
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

#[tokio::test]
async fn results_of_every_shape_become_output() {
    let text = ToolOutput::text;
    let image = ToolOutput::content(vec![
        Content::text("an image"),
        Content::Image(ImageContent::new("AAAA", "image/png")),
    ]);
    for (expression, expected) in [
        ("'hello'", text("hello")),
        ("''", text("")),
        ("42", text("42")),
        ("true", text("true")),
        ("null", ToolOutput::default()),
        ("undefined", ToolOutput::default()),
        (
            "[{ type: 'text', text: 'an image' }, { type: 'image', data: 'AAAA', mimeType: 'image/png' }]",
            image.clone(),
        ),
        ("{ type: 'text', text: 'one block' }", text("one block")),
        ("{ content: [{ type: 'text', text: 'a' }] }", text("a")),
        ("{ content: 'a' }", text("a")),
        (
            "{ content: ['a', { type: 'text', text: 'b' }, 5] }",
            ToolOutput::content(vec!["a".into(), "b".into(), "5".into()]),
        ),
        (
            "{ content: 'a', details: { n: 1 }, terminate: true, isError: false }",
            text("a").with_details(json!({"n": 1})).terminating(),
        ),
        (
            "{ isError: true, content: 'broken' }",
            text("broken").failed(),
        ),
        (
            "{ details: [1] }",
            ToolOutput::default().with_details(json!([1])),
        ),
        (
            "{ content: null, details: null, terminate: null, isError: null }",
            ToolOutput::default(),
        ),
        // Values that only look a little like results are values.
        (
            "{ city: 'Rome', temperature: 20 }",
            ToolOutput::structured(json!({"city": "Rome", "temperature": 20})),
        ),
        (
            "{ content: 'a page', url: 'x' }",
            ToolOutput::structured(json!({"content": "a page", "url": "x"})),
        ),
        (
            "{ content: [{ type: 'text', text: 'a' }], url: 'x' }",
            text("a"),
        ),
        (
            "{ type: 'wine', year: 1990 }",
            ToolOutput::structured(json!({"type": "wine", "year": 1990})),
        ),
        ("{}", ToolOutput::structured(json!({}))),
        ("[1, 2]", ToolOutput::structured(json!([1, 2]))),
        ("[]", ToolOutput::structured(json!([]))),
    ] {
        assert_eq!(
            returning(expression).await.unwrap(),
            expected,
            "{expression}"
        );
    }
    for (expression, expected) in [
        ("{ content: 'a', terminate: 'yes' }", "\"yes\" as terminate"),
        ("{ content: 'a', isError: 1 }", "1 as isError"),
        ("x", "x is not defined"),
    ] {
        let error = returning(expression).await.unwrap_err();
        assert!(error.message().contains(expected), "{expression}: {error}");
        assert_eq!(error.kind(), ToolErrorKind::Failed);
    }
}

#[tokio::test]
async fn a_module_says_what_its_tool_is() {
    let full = tool(
        "export const tool = { name: 'searchWine', label: 'Wine Search', description: 'Finds wine',
            inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
            outputSchema: { type: 'object' }, parallel: false, needsApproval: true, replay: 'safe',
            annotations: { readOnlyHint: true }, somethingElse: 1 };
        export async function execute() { return 'x'; }",
    )
    .await
    .unwrap();
    let definition = &**full.definition();
    assert_eq!(
        *definition,
        ToolDefinition {
            name: "searchWine".to_owned(),
            label: "Wine Search".to_owned(),
            description: "Finds wine".to_owned(),
            input_schema: json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}),
            output_schema: Some(json!({"type": "object"})),
            parallel: Some(false),
            needs_approval: true,
            replay: Replay::Safe,
            annotations: Some(json!({"readOnlyHint": true})),
            ..ToolDefinition::default()
        }
    );
    let least = tool("export const tool = { name: 'x' }; export const execute = () => 1;")
        .await
        .unwrap();
    assert_eq!(least.definition().label, "x");
    assert_eq!(least.definition().parallel, None);
    assert_eq!(least.definition().input_schema, InputSchema::any_object());
}

#[tokio::test]
async fn what_is_no_tool_is_refused_with_the_reason() {
    for (tool_object, rest, expected) in [
        ("{}", "execute() {}", "cannot be a tool's name"),
        ("5", "execute() {}", "tool must be an object"),
        (
            "{ name: '../x' }",
            "execute() {}",
            "cannot be a tool's name",
        ),
        ("{ name: 'con' }", "execute() {}", "device on Windows"),
        ("{ name: 5 }", "execute() {}", "tool.name must be a text"),
        (
            "{ name: 'x', label: {} }",
            "execute() {}",
            "tool.label must be a text",
        ),
        (
            "{ name: 'x', parallel: 'no' }",
            "execute() {}",
            "tool.parallel must be true or false",
        ),
        (
            "{ name: 'x', replay: 'yes' }",
            "execute() {}",
            "tool.replay",
        ),
        (
            "{ name: 'x', inputSchema: [] }",
            "execute() {}",
            "inputSchema cannot be used",
        ),
        (
            "{ name: 'x', inputSchema: { type: 'string' } }",
            "execute() {}",
            "inputSchema cannot be used",
        ),
        (
            "{ name: 'x', inputSchema: { properties: { a: { type: 'nonsense' } } } }",
            "execute() {}",
            "inputSchema cannot be used",
        ),
        (
            "{ name: 'x', outputSchema: 5 }",
            "execute() {}",
            "outputSchema cannot be used",
        ),
        (
            "{ name: 'x' }",
            "run() {}",
            "no `export async function execute",
        ),
    ] {
        let error = tool(&format!(
            "export const tool = {tool_object};\nexport function {rest}"
        ))
        .await
        .unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::Module, "{tool_object}");
        assert!(error.message.contains(expected), "{tool_object}: {error}");
    }
    let long = format!("// {}\n", "x".repeat(300_000));
    assert!(
        tool(&long)
            .await
            .unwrap_err()
            .message
            .contains("at most 262144 are read")
    );
}

#[tokio::test]
async fn prepare_and_validate_are_the_tools_own() {
    let tool = tool(
        "export const tool = { name: 't' };
        export function prepare(args) { return { ...args, city: args.city?.trim() }; }
        export async function validate(args) {
            if (args.city === 'loop') for (;;);
            if (args.city === 'throw') throw new Error('no');
            if (args.city === 'odd') return { reason: 1 };
            return args.city ? null : \"Missing required argument: 'city'\";
        }
        export function execute(args) { return args.city; }",
    )
    .await
    .unwrap();
    let prepared = tool
        .prepare_arguments(object(json!({"city": " Rome "})))
        .await
        .unwrap();
    assert_eq!(Value::Object(prepared), json!({"city": "Rome"}));
    for (args, expected) in [
        (json!({"city": "Rome"}), ArgsCheck::Accept),
        (
            json!({}),
            ArgsCheck::Reject("Missing required argument: 'city'".to_owned()),
        ),
        (
            json!({"city": "odd"}),
            ArgsCheck::Reject("the arguments were refused: {\"reason\":1}".to_owned()),
        ),
        (
            json!({"city": "throw"}),
            ArgsCheck::Reject(
                "the arguments could not be checked: Error: no (t.js, line 5, column 50)"
                    .to_owned(),
            ),
        ),
    ] {
        assert_eq!(tool.validate_required_args(&object(args)).await, expected);
    }
}

#[tokio::test]
async fn without_prepare_and_validate_the_usual_rules_hold() {
    let plain = tool("export const tool = { name: 't' }; export function execute() {}")
        .await
        .unwrap();
    let args = object(json!({"a": 1}));
    assert_eq!(plain.prepare_arguments(args.clone()).await.unwrap(), args);
    assert_eq!(
        plain.validate_required_args(&args).await,
        ArgsCheck::Default
    );
    let odd = tool("export const tool = { name: 't' }; export function execute() {} export function prepare() { return 5 }")
        .await
        .unwrap();
    assert!(
        odd.prepare_arguments(args)
            .await
            .unwrap_err()
            .message()
            .contains("must return the arguments")
    );
}
