//! What a script gives back, says and asks for.

use super::*;

#[test]
fn results_are_json_as_the_language_has_it() {
    for (body, expected) in [
        ("return 'text'", json!("text")),
        ("", json!(null)),
        ("return null", json!(null)),
        ("return 4.5", json!(4.5)),
        ("return [1, undefined, () => 1]", json!([1, null, null])),
        (
            "return { a: 1, b: undefined, toString: 1 }",
            json!({"a": 1, "toString": 1}),
        ),
        ("return { toJSON() { return 'other' } }", json!("other")),
        ("return new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        ("return Promise.resolve(Promise.resolve(3))", json!(3)),
        (
            "return { then(resolve) { resolve('from a thenable') } }",
            json!("from a thenable"),
        ),
        ("return new Map([[1, 2]])", json!({})),
        ("return NaN", json!(null)),
        ("return '\\u{1F600} ü'", json!("😀 ü")),
        (
            "return '\\uD800x' + ['\\uDC00']",
            json!("\u{FFFD}x\u{FFFD}"),
        ),
        ("return String.raw`a\\n${1}b`", json!("a\\n1b")),
        (
            "return await (async () => { await null; return [...'ab'] })()",
            json!(["a", "b"]),
        ),
    ] {
        assert_eq!(execute(body).unwrap(), expected, "{body}");
    }
}

#[test]
fn results_that_are_no_json_are_told() {
    for (body, expected) in [
        ("const a = {}; a.a = a; return a", "circular reference"),
        ("return 1n", "BigInt"),
        ("return { toJSON() { throw new Error('no') } }", "no"),
        ("return { get x() { throw 'plain' } }", "plain"),
        (
            "return 'x'.repeat(2e6)",
            "the result is 2000002 characters of JSON, at most 1048576 are allowed",
        ),
        ("return 'x'.repeat(5e8)", "memory"),
        ("return new Array(1e6).fill(1)", "at most 1048576"),
        (
            "return Promise.reject(new TypeError('later'))",
            "TypeError: later",
        ),
        (
            "await new Promise(() => {})",
            "waits for a promise that nothing will settle",
        ),
        (
            "throw new Error('here')",
            "Error: here (t.js, line 2, column",
        ),
        ("throw 'text'", "text"),
        ("throw { code: 5 }", r#"{"code":5}"#),
        ("throw undefined", "undefined"),
        ("throw Symbol('s')", "Symbol(s)"),
        ("null.x", "cannot read property 'x' of null"),
        ("return host.fetch('http://x')", "no hosts are granted"),
    ] {
        let error = execute(body).unwrap_err().to_string();
        assert!(error.contains(expected), "{body}: {error}");
    }
}

#[test]
fn errors_with_hostile_getters_are_told_all_the_same() {
    for body in [
        "throw { get message() { throw 1 }, get name() { throw 2 }, get stack() { throw 3 } }",
        "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { throw e } }); throw e",
        "throw { message: { toString() { throw 1 } }, toJSON() { throw 2 } }",
        "throw { [Symbol.toPrimitive]() { throw 1 }, toJSON() { return undefined } }",
        "const e = new Error('y'); e.stack = { length: 5 }; throw e",
        "Error.prepareStackTrace = () => { throw 1 }; throw new Error('z')",
        "const e = new Error('x'.repeat(1e6)); throw e",
    ] {
        let error = execute(body).unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::Thrown, "{body}: {error}");
        assert!(error.message.len() < 5_000, "{body}");
    }
    // A getter that never returns is ended as everything else is.
    for getter in ["message", "stack", "name"] {
        let body = format!("throw {{ get {getter}() {{ host.log('stop'); for (;;); }} }}");
        assert_eq!(kind_of(&body), ScriptErrorKind::Cancelled);
    }
}

#[test]
fn requests_go_out_and_answers_come_back() {
    let source = "export async function execute(args, host) {
        host.log('a', { b: 1 }, 2n, undefined); console.warn('w');
        host.progress({ step: 1 }); host.progress('half'); host.progress();
        const both = await Promise.all([host.callTool('one', { x: 1 }), host.callTool('two')]);
        return both;
    }";
    let (result, requests) =
        run_module(source, call("execute", json!({})), &ScriptLimits::default());
    assert_eq!(
        result.unwrap(),
        json!([{"name": "one", "args": {"x": 1}}, {"name": "two", "args": {}}])
    );
    let told: Vec<HostRequest> = requests.into_iter().take(5).collect();
    assert_eq!(
        told,
        [
            HostRequest::Log("\"a {\\\"b\\\":1} 2 undefined\"".to_owned()),
            HostRequest::Log("\"w\"".to_owned()),
            HostRequest::Progress("{\"step\":1}".to_owned()),
            HostRequest::Progress("\"half\"".to_owned()),
            HostRequest::Progress("null".to_owned()),
        ]
    );
}

#[test]
fn a_file_that_does_not_parse_says_where() {
    for (source, line, column) in [
        ("export const tool = {;", 1, 22),
        ("\n\n  let x = ;", 3, 11),
        (
            "// ok\nexport function execute() {\n  return 1 +;\n}",
            3,
            13,
        ),
        ("a\0b", 1, 2),
    ] {
        let error = run_module(source, Task::Parse, &ScriptLimits::default())
            .0
            .unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::Syntax, "{source}: {error}");
        let place = error
            .place
            .as_ref()
            .unwrap_or_else(|| panic!("{source}: {error}"));
        assert_eq!(
            (place.line, place.column),
            (line, column),
            "{source}: {error}"
        );
    }
    let cut = "export const tool = { name: 'x' };\nexport function execute(args) {\n  return 'half";
    let error = run_module(cut, Task::Describe, &ScriptLimits::default())
        .0
        .unwrap_err();
    assert_eq!(
        (error.kind, error.place.map(|p| p.line)),
        (ScriptErrorKind::Syntax, Some(3))
    );
}

#[test]
fn a_module_is_described_by_its_exports() {
    let describe = |source: &str| run_module(source, Task::Describe, &ScriptLimits::default()).0;
    assert_eq!(
        describe("export const tool = { name: 'x' };\nexport function execute() {}\nexport const validate = () => null;").unwrap(),
        json!([{"name": "x"}, ["validate", "execute"]])
    );
    for (source, expected) in [
        ("export function execute() {}", "no `export const tool"),
        ("export const tool = { f: 1n };", "BigInt"),
        (
            "export const tool = {}; export const execute = 5;",
            "the export execute must be a function",
        ),
        ("throw new Error('at the top')", "at the top (t.js, line 1"),
        (
            "await new Promise(() => {})",
            "the module's top level waits",
        ),
        (
            "export const tool = later; const later = 1;",
            "later is not initialized",
        ),
    ] {
        let error = describe(source).unwrap_err().to_string();
        assert!(error.contains(expected), "{source}: {error}");
    }
}

#[test]
fn prepare_gives_what_it_returns_or_what_it_changed() {
    let task = |function| Task::Call {
        function,
        args: "{\"a\":1}".to_owned(),
        changes: true,
    };
    let source = "export function prepare(args) { args.b = 2; }\nexport function validate(args) { return { c: 3 }; }";
    let limits = ScriptLimits::default();
    assert_eq!(
        run_module(source, task("prepare"), &limits).0.unwrap(),
        json!({"a": 1, "b": 2})
    );
    assert_eq!(
        run_module(source, task("validate"), &limits).0.unwrap(),
        json!({"c": 3})
    );
}
