//! Functions and promises of every odd kind end as what they are.

use super::*;

/// Functions of every kind, and what they may return instead of a value.
#[test]
fn odd_functions_and_odd_promises_end_as_what_they_are() {
    let run = |source: &str| {
        let task = call("execute", json!({ "n": 1 }));
        run_module(source, task, &ScriptLimits::default()).0
    };
    for (source, expected) in [
        ("export function execute(args) { return args.n; }", json!(1)),
        ("export const execute = async args => args.n;", json!(1)),
        (
            "export default 1; export let execute = function (a) { return a.n; };",
            json!(1),
        ),
        // An iterator is an object without members, whoever made it.
        ("export function* execute() { yield 1; }", json!({})),
        ("export async function* execute() { yield 1; }", json!({})),
        (
            "class R { constructor() { this.a = 1; } get b() { return 2; } } export function execute() { return new R(); }",
            json!({ "a": 1 }),
        ),
        (
            "export function execute() { return Object.create({ inherited: 1 }); }",
            json!({}),
        ),
        (
            "export function execute() { return { then: 1 }; }",
            json!({ "then": 1 }),
        ),
        (
            "export function execute() { return [, , 3]; }",
            json!([null, null, 3]),
        ),
        (
            "export function execute() { return new Error('as a value'); }",
            json!({}),
        ),
        (
            "export function execute(args) { Object.freeze(args); return args; }",
            json!({ "n": 1 }),
        ),
        (
            "export function execute(args, host) { return [Object.isFrozen(host), Object.getPrototypeOf(host)]; }",
            json!([true, null]),
        ),
    ] {
        assert_eq!(run(source).unwrap(), expected, "{source}");
    }
    use ScriptErrorKind::{NeverSettles, Thrown};
    for (source, expected) in [
        ("export class execute {}", Thrown),
        ("export function execute() { return Symbol('s'); }", Thrown),
        ("export function execute() { return () => 1; }", Thrown),
        (
            "export async function execute() { await { then() {} }; }",
            NeverSettles,
        ),
        (
            "export function execute() { return { then() {} }; }",
            NeverSettles,
        ),
        (
            "export function execute() { return new Promise(() => {}); }",
            NeverSettles,
        ),
        (
            "export function execute() { return Promise.reject({ then() {} }); }",
            Thrown,
        ),
        ("export function execute() { throw () => {}; }", Thrown),
        (
            "export function execute() { throw new (class extends Error { get message() { throw this; } })(); }",
            Thrown,
        ),
        (
            "export function execute() { return { then(a, b) { b(new RangeError('thenable')); a(1); } }; }",
            Thrown,
        ),
        (
            "export async function execute() { for await (const x of [new Promise(() => {})]); }",
            NeverSettles,
        ),
        (
            "export async function execute() { await Promise.race([]); }",
            NeverSettles,
        ),
    ] {
        let error = run(source).unwrap_err();
        assert_eq!(error.kind, expected, "{source}: {error}");
    }
}
