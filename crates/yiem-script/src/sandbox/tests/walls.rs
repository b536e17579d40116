//! Nothing is in reach but what the host grants, and nothing of one script in another.

use super::*;

#[test]
fn there_is_nothing_to_reach() {
    for expression in [
        "typeof require",
        "typeof process",
        "typeof Deno",
        "typeof fetch",
        "typeof setTimeout",
        "typeof WebAssembly",
        "typeof Atomics",
        "typeof SharedArrayBuffer",
        "typeof Proxy",
        "typeof WeakRef",
        "typeof FinalizationRegistry",
        "typeof performance",
        "typeof navigator",
        "typeof os",
        "typeof std",
        "typeof bjson",
        "typeof Worker",
        "typeof print",
        "typeof scriptArgs",
        "typeof module",
        "typeof exports",
        "typeof global",
        "typeof window",
        "typeof self",
        "typeof host_",
        "typeof import.meta.url",
        "typeof import.meta.main",
        "typeof send",
        "typeof expired",
    ] {
        assert_eq!(
            execute(&format!("return {expression}")).unwrap(),
            json!("undefined"),
            "{expression}"
        );
    }
    for body in [
        "eval('1')",
        "(0, eval)('1')",
        "new Function('return 1')",
        "Function('return 1')()",
        "(() => {}).constructor('return 1')()",
        "(async () => {}).constructor('1')",
        "(function* () {}).constructor('1')",
        "(async function* () {}).constructor('1')",
        "Object.getPrototypeOf(Object.getPrototypeOf(async () => {})).constructor('1')",
        "class F extends Function {} new F('1')",
        "Reflect.construct(Function, ['1'])",
        "[].map.constructor('1')",
        "host.log.constructor('1')",
        "console.log.constructor('1')",
        "Function.prototype.constructor = 1",
        "execute.constructor('1')",
        "await import('fs')",
        "await import('./other.js')",
        "await import('data:text/javascript,1')",
        "Date.now()",
        "new Date()",
        "Date()",
        "new Date(undefined).constructor.now()",
        "new (new Date(0).constructor)()",
        "Object.getPrototypeOf(new Date(0).constructor).now()",
        "Reflect.construct(Date, [], Object)",
        "class E extends Date {} new E()",
        "host.log = 1",
        "arguments.callee",
        "new Intl.DateTimeFormat()",
    ] {
        let error = execute(body).unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::Thrown, "{body}: {error}");
    }
    for source in [
        "import fs from 'fs'; export function execute() {}",
        "import './x.js';",
        "export * from 'y';",
    ] {
        let error = run_module(source, Task::Describe, &ScriptLimits::default())
            .0
            .unwrap_err();
        assert!(error.message.contains("could not load module"), "{error}");
    }
    let error = execute("return require('fs')").unwrap_err();
    assert!(
        error.message.contains("cannot load other modules"),
        "{error}"
    );
}

#[test]
fn one_script_sees_nothing_of_another() {
    let spoil = "Object.prototype.polluted = 1; Array.prototype.map = () => 'x'; JSON.stringify = () => '0'; \
                 globalThis.x = 1; Object.prototype.toJSON = () => 'y'; Promise.prototype.then = () => {}; return 1";
    let _ = execute(spoil);
    assert_eq!(
        execute("return [[1].map(x => x + 1), {}.polluted, typeof x]").unwrap(),
        json!([[2], null, "undefined"])
    );
}

#[test]
fn arguments_are_data_whatever_their_keys() {
    let source = "export function execute(args) {
        return [Object.keys(args), {}.polluted === undefined, Object.getPrototypeOf(args) === Object.prototype, args];
    }";
    let args: Json = serde_json::from_str(
        r#"{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "toJSON": 1, "then": 2, "length": -1, "hasOwnProperty": null}"#,
    )
    .unwrap();
    let (result, _) = run_module(
        source,
        call("execute", args.clone()),
        &ScriptLimits::default(),
    );
    let result = result.unwrap();
    assert_eq!(
        result[0],
        json!([
            "__proto__",
            "constructor",
            "toJSON",
            "then",
            "length",
            "hasOwnProperty"
        ])
    );
    assert_eq!((&result[1], &result[2]), (&json!(true), &json!(true)));
    assert_eq!(result[3], args);
}

#[test]
fn dates_are_in_utc_and_random_numbers_come_from_the_seed() {
    for (expression, expected) in [
        (
            "new Date(2024, 0, 31, 5).toISOString()",
            json!("2024-01-31T05:00:00.000Z"),
        ),
        (
            "new Date('2024-01-31T05:00').getTime()",
            json!(1_706_677_200_000_i64),
        ),
        (
            "new Date('2024-01-31T05:00+02:00').toISOString()",
            json!("2024-01-31T03:00:00.000Z"),
        ),
        ("new Date('2024-01-31').getHours()", json!(0)),
        (
            "new Date('Jan 31 2024 05:00').toISOString()",
            json!("2024-01-31T05:00:00.000Z"),
        ),
        (
            "new Date('Wed, 31 Jan 2024 05:00:00 GMT').toISOString()",
            json!("2024-01-31T05:00:00.000Z"),
        ),
        ("new Date(0).getTimezoneOffset()", json!(0)),
        (
            "String(new Date(0))",
            json!("Thu, 01 Jan 1970 00:00:00 GMT"),
        ),
        (
            "new Date(0).toDateString() + ' ' + new Date(0).toTimeString()",
            json!("1970-01-01 00:00:00"),
        ),
        ("String(new Date('nonsense'))", json!("Invalid Date")),
        ("new Date(new Date(5)).getTime()", json!(5)),
        ("new Date(0) instanceof Date", json!(true)),
        (
            "(() => { const d = new Date(0); d.setHours(25); return d.toISOString() })()",
            json!("1970-01-02T01:00:00.000Z"),
        ),
        ("Date.UTC(1970, 0, 2)", json!(86_400_000)),
        ("Date.parse('1970-01-01T00:00:01')", json!(1000)),
        (
            "(class E extends Date {}).length === undefined",
            json!(false),
        ),
    ] {
        assert_eq!(
            execute(&format!("return {expression}")).unwrap(),
            expected,
            "{expression}"
        );
    }
    let draw = "return [Math.random(), Math.random()]";
    let first = execute(draw).unwrap();
    assert_eq!(first, execute(draw).unwrap());
    assert_ne!(first[0], first[1]);
    assert!(first[0].as_f64().is_some_and(|x| (0.0..1.0).contains(&x)));
}

/// What a script does to the language it runs in is nothing to its host.
#[test]
fn a_script_that_changes_everything_it_can_reach_changes_nothing_of_the_host() {
    // What is to be spoilt is gathered first: the script would stumble over it itself.
    let spoil = "
        const steal = function () { throw new Error('stolen'); };
        const define = Object.defineProperty, theft = { get: steal, set: steal, configurable: true };
        const all = [];
        for (const c of [Object, Array, String, Map, Promise, Function, RegExp, Number]) {
            for (const key of [...Object.getOwnPropertyNames(c.prototype), Symbol.iterator, Symbol.toPrimitive, Symbol.species]) {
                if (c !== Promise || !['then', 'constructor'].includes(key)) all.push([c.prototype, key]);
            }
        }
        for (const key of ['0', '1', 'length', 'then', 'toJSON', 'message', 'name', 'stack']) all.push([Object.prototype, key]);
        const names = Object.getOwnPropertyNames(globalThis);
        for (let i = 0; i < names.length; i++) { try { globalThis[names[i]] = steal; } catch {} }
        for (let i = 0; i < all.length; i++) { try { define(all[i][0], all[i][1], theft); } catch {} }";
    let body = format!("{spoil}\nhost.log('still'); host.progress(1); return 'fine';");
    let source = format!("export async function execute(args, host) {{\n{body}\n}}");
    let (result, requests) = run_module(
        &source,
        call("execute", json!({})),
        &ScriptLimits::default(),
    );
    assert_eq!(result.unwrap(), json!("fine"));
    assert_eq!(requests.len(), 2);
    let null = execute("throw null").unwrap_err();
    assert!(null.message.ends_with("or threw null"), "{null}");
    let thrown = execute(&format!("{spoil}\nthrow 'a plain text'")).unwrap_err();
    assert!(thrown.message.contains("a plain text"), "{thrown}");
}
