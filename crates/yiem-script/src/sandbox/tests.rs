use std::cell::RefCell;
use std::collections::VecDeque;

use serde_json::{Value as Json, json};

use super::*;

/// A host that stops the script when it logs `"stop"`, and answers `callTool` with its payload.
struct TestPort {
    stop: Arc<AtomicBool>,
    requests: RefCell<Vec<HostRequest>>,
    replies: RefCell<VecDeque<HostReply>>,
}

impl HostPort for TestPort {
    fn send(&self, request: HostRequest) -> Result<(), String> {
        match &request {
            HostRequest::Log(line) if line == "\"stop\"" => {
                self.stop.store(true, Ordering::Relaxed)
            }
            HostRequest::CallTool { id, payload } => {
                self.replies.borrow_mut().push_back(HostReply {
                    id: *id,
                    result: Ok(payload.clone()),
                })
            }
            HostRequest::Fetch { .. } => return Err("no hosts are granted".to_owned()),
            _ => {}
        }
        self.requests.borrow_mut().push(request);
        Ok(())
    }
    fn open(&self) -> usize {
        self.replies.borrow().len()
    }
    fn receive(&self) -> Option<HostReply> {
        self.replies.borrow_mut().pop_front()
    }
}

fn run_module(
    source: &str,
    task: Task,
    limits: &ScriptLimits,
) -> (Result<Json, ScriptError>, Vec<HostRequest>) {
    let job = Job {
        file: "t.js".into(),
        source: source.into(),
        task,
        seed: 7,
    };
    let limits = limits.clone();
    // A thread like the workers': the stack that the engine may use, and room for the rest.
    std::thread::Builder::new()
        .stack_size(limits.stack_bytes() + (1 << 20))
        .spawn(move || {
            let stop = Arc::new(AtomicBool::new(false));
            let port = Rc::new(TestPort {
                stop: Arc::clone(&stop),
                requests: RefCell::default(),
                replies: RefCell::default(),
            });
            let mut sandbox = Sandbox::new(&limits).unwrap();
            let result = sandbox.run(&job, &limits, &stop, Rc::clone(&port) as Rc<dyn HostPort>);
            let requests = port.requests.borrow().clone();
            (
                result.map(|text| crate::json::read(&text).unwrap()),
                requests,
            )
        })
        .unwrap()
        .join()
        .unwrap()
}

fn call(function: &'static str, args: Json) -> Task {
    Task::Call {
        function,
        args: args.to_string(),
        changes: false,
    }
}

/// Runs the body of `execute`.
fn execute(body: &str) -> Result<Json, ScriptError> {
    let source = format!("export async function execute(args, host) {{\n{body}\n}}");
    run_module(
        &source,
        call("execute", json!({})),
        &ScriptLimits::default(),
    )
    .0
}

fn kind_of(body: &str) -> ScriptErrorKind {
    match execute(body) {
        Ok(value) => panic!("{body} gave {value}"),
        Err(error) => error.kind,
    }
}

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
