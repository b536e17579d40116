//! Time, memory, stack and work have an end.

use super::*;

#[test]
fn loops_of_every_kind_end_when_they_are_stopped() {
    for body in [
        "for (;;);",
        "for (;;) { try { for (;;); } catch {} finally { for (;;); } }",
        "await (async function f() { await null; return f() })()",
        "(function f() { return Promise.resolve().then(f) })(); await new Promise(() => {})",
        "(function f() { queueMicrotask(f); queueMicrotask(f) })(); await new Promise(() => {})",
        "const f = () => host.callTool('x').then(f); return f()",
        "/^(a+)+$/.test('a'.repeat(60) + 'b')",
        "/(x+x+)+y/.exec('x'.repeat(200))",
        "'a'.repeat(60).replace(/^(a|aa)+$/, 'b'); for (;;);",
        "return { get x() { for (;;); } }",
        "return { toJSON() { for (;;); } }",
        "return { then() { for (;;); } }",
        "return { then(r) { r(this) } }",
        "const a = []; a.length = 4294967295; a.indexOf(1); a.includes(1); a.every(Math.abs)",
        "const a = []; a.length = 4294967295; new Set(a)",
        "[].sort.call([3, 2, 1], () => { for (;;); })",
        "Array.from({ length: 5, get 0() { for (;;); } })",
        "for (const x of { [Symbol.iterator]() { return { next() { return { done: false } } } } });",
        "Object.groupBy({ [Symbol.iterator]() { return { next: () => ({ done: false }) } } }, Math.abs)",
        "class A { static get [Symbol.species]() { for (;;); } } class B extends Array { static get [Symbol.species]() { for (;;); } } new B(3).map(x => x)",
        "const s = 'x'.repeat(1e6); for (;;) { try { s.split('') } catch {} }",
        "const a = Array(1e6).fill(0); for (;;) { try { a.sort(); JSON.stringify(a) } catch {} }",
        "label: while (true) { try { continue label } finally { continue label } }",
        "function* g() { for (;;) yield 1 } for (const x of g());",
        "for await (const x of (async function* () { for (;;) yield 1 })());",
        "with_: for (;;) { switch (1) { case 1: continue with_ } }",
        "JSON.parse('[1]', function () { for (;;); })",
        "JSON.stringify({ a: 1 }, () => { for (;;); })",
        "({ valueOf() { for (;;); } }) + 1",
        "`${{ toString() { for (;;); } }}`",
        "[1] == { [Symbol.toPrimitive]() { for (;;); } }",
        "import('x').catch(() => { for (;;); }); await new Promise(() => {})",
    ] {
        assert_eq!(
            kind_of(&format!("host.log('stop'); {body}")),
            ScriptErrorKind::Cancelled,
            "{body}"
        );
    }
}

#[test]
fn loops_at_the_top_level_and_in_other_exports_end_too() {
    for (source, task) in [
        ("console.log('stop'); for (;;);", Task::Describe),
        (
            "console.log('stop'); await (async function f() { await null; return f() })();",
            Task::Describe,
        ),
        (
            "export const tool = { get name() { console.log('stop'); for (;;); } }",
            Task::Describe,
        ),
        (
            "export function prepare(a) { console.log('stop'); for (;;); }",
            call("prepare", json!({})),
        ),
        (
            "console.log('stop'); for (;;); export function execute() {}",
            call("execute", json!({})),
        ),
    ] {
        let error = run_module(source, task, &ScriptLimits::default())
            .0
            .unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::Cancelled, "{source}");
    }
}

/// What the engine would do for hours without looking at the time is refused at once.
#[test]
fn long_work_inside_the_engine_is_refused() {
    let sparse = "const a = []; a.length = 4294967295;";
    for body in [
        format!("{sparse} a.reverse()"),
        format!("{sparse} a.slice(1)"),
        format!("{sparse} a.sort()"),
        format!("{sparse} a.join('')"),
        format!("{sparse} String(a)"),
        format!("{sparse} a.toLocaleString()"),
        format!("{sparse} [].concat(a)"),
        format!("{sparse} a.concat([1])"),
        format!("{sparse} a.flat()"),
        format!("{sparse} [a].flat()"),
        format!("{sparse} [1].flatMap(() => a)"),
        format!("{sparse} a.fill(1)"),
        format!("{sparse} a.copyWithin(0, 5)"),
        format!("{sparse} a.splice(0, 1)"),
        format!("{sparse} a.shift()"),
        format!("{sparse} a.unshift(1)"),
        format!("{sparse} a.toReversed()"),
        format!("{sparse} a.with(1, 2)"),
        format!("{sparse} a.values().drop(4294967290).next()"),
        format!("{sparse} JSON.stringify({{}}, a)"),
        "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })".to_owned(),
        "Array.prototype.shift.call({ length: '9007199254740991' })".to_owned(),
        "Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 0, 5)".to_owned(),
        "[].concat({ length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true })".to_owned(),
        // Lengths that are one thing when looked at and another when used.
        "let n = 0; Array.prototype.reverse.call({ get length() { return n++ ? 2 ** 53 - 1 : 5 } })".to_owned(),
        "let n = 0; Array.prototype.reverse.call({ length: { valueOf() { return n++ ? 2 ** 53 - 1 : 5 } } })".to_owned(),
        "class X extends Uint8Array { get length() { return 2 ** 53 - 1 } } Array.prototype.reverse.call(new X(1))".to_owned(),
        "Object.defineProperty(Number.prototype, 'length', { get() { return 2 ** 53 - 1 } }); Array.prototype.reverse.call(5)".to_owned(),
        "const f = () => {}; Object.defineProperty(f, 'length', { value: 2 ** 53 - 1 }); Array.prototype.reverse.call(f)".to_owned(),
        "'a'.repeat(8e6).indexOf('a'.repeat(4e6) + 'b')".to_owned(),
        "'a'.repeat(8e6).includes({ toString() { return 'a'.repeat(4e6) + 'b' } })".to_owned(),
        "'a'.repeat(8e6).lastIndexOf('b' + 'a'.repeat(4e6))".to_owned(),
        "'a'.repeat(8e6).split('a'.repeat(4e6) + 'b')".to_owned(),
        "'a'.repeat(8e6).replace('a'.repeat(4e6) + 'b', '')".to_owned(),
        "'a'.repeat(8e6).replaceAll('a'.repeat(4e6) + 'b', '')".to_owned(),
        "('a' + '\\u0301\\u0316'.repeat(1e6)).normalize('NFD')".to_owned(),
        "'b'.localeCompare('a' + '\\u0301\\u0316'.repeat(1e6))".to_owned(),
    ] {
        let error = execute(&body).unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::Thrown, "{body}: {error}");
    }
    let (raw, _) = run_module(
        "export function execute(a, host) { host.log('stop'); String.raw({ raw: { length: 2 ** 53 - 1 } }) }",
        call("execute", json!({})),
        &ScriptLimits::default(),
    );
    assert_eq!(raw.unwrap_err().kind, ScriptErrorKind::Cancelled);
}

#[test]
fn bounded_methods_still_do_what_the_language_says() {
    for (expression, expected) in [
        ("[3, 1, 2].sort()", json!([1, 2, 3])),
        ("[3, 1, 2].sort((a, b) => b - a).join('-')", json!("3-2-1")),
        ("[1, [2, [3]]].flat()", json!([1, 2, [3]])),
        ("[1, [2, [3, , 4]]].flat(Infinity)", json!([1, 2, 3, 4])),
        ("[1, 2].flatMap(x => [x, [x]])", json!([1, [1], 2, [2]])),
        ("[1].concat(2, [3, [4]])", json!([1, 2, 3, [4]])),
        (
            "[1].concat({ length: 1, 0: 'x', [Symbol.isConcatSpreadable]: true })",
            json!([1, "x"]),
        ),
        (
            "Object.assign([1, 2, 3].reverse(), { 0: 9 })",
            json!([9, 2, 1]),
        ),
        ("[1, 2, 3, 4].splice(1, 2)", json!([2, 3])),
        ("[0, 1, 2].slice(-2)", json!([1, 2])),
        ("Array(3).fill(7)", json!([7, 7, 7])),
        ("Array.prototype.slice.call('abc', 1)", json!(["b", "c"])),
        (
            "(function () { return Array.prototype.slice.call(arguments) })(1, 2)",
            json!([1, 2]),
        ),
        (
            "Array.prototype.join.call({ length: 2, 0: 'a', 1: 'b' }, '+')",
            json!("a+b"),
        ),
        ("'a-b-c'.split('-')", json!(["a", "b", "c"])),
        ("'a1b2'.split(/\\d/)", json!(["a", "b", ""])),
        (
            "'abcabc'.replace('b', x => x.toUpperCase())",
            json!("aBcabc"),
        ),
        ("'abcabc'.replaceAll('b', '$&$&')", json!("abbcabbc")),
        ("'abcabc'.replace(/b/g, '_')", json!("a_ca_c")),
        (
            "'abc'.includes('b') && 'abc'.indexOf('c') === 2 && 'abca'.lastIndexOf('a') === 3",
            json!(true),
        ),
        ("'undefined'.indexOf()", json!(0)),
        ("''.indexOf('')", json!(0)),
        ("''.split('')", json!([])),
        ("'\\u0041\\u030a'.normalize()", json!("Å")),
        ("'a'.localeCompare('b')", json!(-1)),
        ("[...'abc'].values().drop(1).toArray()", json!(["b", "c"])),
        ("String([1, [2, 3]])", json!("1,2,3")),
        (
            "JSON.stringify({ b: 1, a: [1, { c: 2 }] }, ['a', 'c'])",
            json!(r#"{"a":[1,{"c":2}]}"#),
        ),
        (
            "JSON.parse('{\"__proto__\": 1}')",
            serde_json::from_str(r#"{"__proto__": 1}"#).unwrap(),
        ),
        ("[].concat.length + ':' + [].slice.name", json!("0:slice")),
        (
            "(() => { try { ''.includes(/x/) } catch (e) { return e.name } })()",
            json!("TypeError"),
        ),
        (
            "(() => { try { ''.replaceAll(/x/, '') } catch (e) { return e.name } })()",
            json!("TypeError"),
        ),
        (
            "(() => { try { ''.indexOf.call(null, 'x') } catch (e) { return e.name } })()",
            json!("TypeError"),
        ),
    ] {
        let result = execute(&format!("return {expression}"));
        assert_eq!(
            result.unwrap_or_else(|e| panic!("{expression}: {e}")),
            expected,
            "{expression}"
        );
    }
}

#[test]
fn memory_and_stack_have_an_end() {
    use ScriptErrorKind::{Memory, Stack};
    for (body, expected) in [
        (
            "const a = []; for (;;) a.push('x'.repeat(1000) + a.length)",
            Memory,
        ),
        ("const a = []; for (;;) a.push(new Uint8Array(1e6))", Memory),
        ("const a = []; for (;;) a.push(a.slice())", Memory),
        ("let s = 'x'; for (;;) { s += s; s.charCodeAt(0) }", Memory),
        ("return 'x'.repeat(2 ** 29)", Memory),
        ("new Uint8Array(2e9)", Memory),
        (
            "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})",
            Memory,
        ),
        (
            "const f = () => Promise.resolve().then(f, f).then(f); for (;;) f()",
            Memory,
        ),
        (
            "JSON.stringify(new Array(4e6).fill('x'.repeat(100)))",
            Memory,
        ),
        (
            "const a = [1]; a.length = 4294967295; JSON.stringify(a)",
            Memory,
        ),
        ("(function f() { return f() + 1 })()", Stack),
        (
            "const o = { toString() { return `${o}` } }; String(o)",
            Stack,
        ),
        ("JSON.parse('['.repeat(1e6))", Stack),
        (
            "let a = []; for (let i = 0; i < 3e4; i++) a = [a]; return a",
            Stack,
        ),
        ("class A { get x() { return this.x } } new A().x", Stack),
        (
            "let f = () => 1; for (let i = 0; i < 3e4; i++) f = Object.defineProperty(f.bind(), 'name', { value: '' }); f()",
            Stack,
        ),
        (
            "return [[]].map(function f() { return [[]].map(f) })",
            Stack,
        ),
    ] {
        let source = format!("export async function execute(args, host) {{\n{body}\n}}");
        let limits = ScriptLimits {
            memory: 8 << 20,
            ..ScriptLimits::default()
        };
        let error = run_module(&source, call("execute", json!({})), &limits)
            .0
            .unwrap_err();
        assert_eq!(error.kind, expected, "{body}: {error}");
    }
}

/// Running out of memory anywhere must end in an error, never in the engine's own abort.
#[test]
fn memory_may_run_out_at_any_point() {
    for body in [OBJECTS, PROMISES, TEXTS] {
        let source = format!("export async function execute(args, host) {{\n{body}\n}}");
        for step in 0..20 {
            let limits = ScriptLimits {
                memory: (1 << 20) + step * 7_919,
                ..ScriptLimits::default()
            };
            let (result, _) = run_module(&source, call("execute", json!({})), &limits);
            let error = result.unwrap_err();
            assert!(
                matches!(
                    error.kind,
                    ScriptErrorKind::Memory
                        | ScriptErrorKind::Thrown
                        | ScriptErrorKind::NeverSettles
                ),
                "{step}: {:?} {error}",
                error.kind
            );
        }
    }
}

const OBJECTS: &str = "
    class P { #x = [1]; get x() { return this.#x } static { this.y = 1 } }
    const m = new Map(), s = new Set();
    const gen = function* () { try { yield 1; yield* [2, 3] } finally { m.set('f', 1) } };
    for (let i = 0; ; i++) {
        m.set(`k${i}`, { i, r: new RegExp(`a{${i % 50}}b|(?<n>c)`), d: new Date(i) });
        s.add(Symbol(`s${i}`)); new P().x.push(i);
        for (const g of gen()) if (g > 1) break;
        try { await (async () => { JSON.parse(JSON.stringify([...m.values()].slice(-3))); throw new Error('e' + i) })() }
        catch (e) { m.set(i, e) }
        'abc'.replace(/b/g, () => `${i}`); new Uint16Array(64 + i % 64).map(x => x + 1);
        const { a = [i], ...rest } = { b: 1n ** BigInt(i % 9), c: [...'xy'] }; m.set('r', rest);
    }";

const PROMISES: &str = "
    const all = [];
    async function* ag(n) { for (let i = 0; i < n; i++) { await null; yield { i } } }
    for (let k = 0; ; k++) {
        all.push(Promise.allSettled([1, Promise.reject(k), (async () => { for await (const x of ag(3)) all.push(x) })()]));
        await Promise.race(all.slice(-2)).catch(() => {});
        const w = new WeakMap(); w.set(all, k); all.push(w);
        const o = Object.fromEntries(Object.entries({ a: 1, b: [2] }).map(([k, v]) => [k + k, v]));
        Object.defineProperty(o, 'g', { get() { return o }, enumerable: true }); all.push(o);
        try { (function f(n) { if (n) return f(n - 1); throw new Error('x'.repeat(50)) })(20) } catch (e) { all.push(e.stack) }
        all.push([...'héllo wörld 😀'].map(c => c.normalize('NFD')).join('') + k, `${k}`.padStart(30, 'ab').split('a'));
        all.push(new Map(all.slice(-4).map((x, i) => [i, x])), Array.from({ length: 10 }, (_, i) => i ** 2).sort((a, b) => b - a));
    }";

const TEXTS: &str = "
    const all = [];
    for (let i = 0; ; i++) {
        all.push(new RegExp('(a|b)*c'.repeat(1 + i % 7), 'iu'), 'ab'.repeat(20).match(/(a)(b)?/g), /\\p{L}+/u.exec('äöü'));
        all.push(JSON.stringify({ a: [1, { b: i }], d: new Date(5) }, null, 2), JSON.parse('{\"x\":[1,{\"y\":\"z\"}]}', (k, v) => v));
        const big = BigInt('1'.repeat(40)) ** 5n; all.push(big.toString(), BigInt.asUintN(64, big));
        const ab = new ArrayBuffer(64, { maxByteLength: 256 }); ab.resize(128); all.push(new DataView(ab), new Float64Array(ab));
        all.push(Iterator.from([1, 2, 3]).map(x => x * 2).filter(x => x > 2).take(5).toArray(), Object.groupBy([1, 2], x => x % 2));
        class A { constructor() { this.v = i } } class B extends A { m = () => super.toString() } all.push(new B().m());
    }";

#[test]
fn sources_that_are_nested_without_end_are_syntax_errors_or_fine() {
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("({a:", "1", "})"),
        ("!", "1", ""),
        ("-", "1", ""),
        ("`${", "1", "}`"),
        ("(()=>", "1", ")"),
        ("{", ";", "}"),
        ("if(1)", ";", ""),
        ("1?1:", "1", ""),
        ("new ", "Object", ""),
        ("async()=>", "1", ""),
        ("a=>", "1", ""),
        ("[a=", "1", "]"),
        ("function f(){", "", "}"),
        ("class A{static{", "", "}}"),
        ("x.", "y", ""),
        ("1+", "1", ""),
        ("1**", "1", ""),
        ("x?.", "y", ""),
        ("for(;;)", ";", ""),
        ("/(", "", ")/"),
    ] {
        for depth in [1_000, 40_000] {
            let source = format!(
                "var x;\n{}{middle}{}",
                open.repeat(depth),
                close.repeat(depth)
            );
            let (result, _) = run_module(&source, Task::Parse, &ScriptLimits::default());
            if let Err(error) = result {
                assert!(
                    matches!(
                        error.kind,
                        ScriptErrorKind::Syntax | ScriptErrorKind::Stack | ScriptErrorKind::Memory
                    ),
                    "{open} × {depth}: {error:?}"
                );
            }
        }
    }
    let regex =
        "new RegExp('(?:'.repeat(1e5) + ')'.repeat(1e5)); new RegExp('(?:a{1000}){1000}{1000}')";
    assert!(execute(regex).is_err());
}
