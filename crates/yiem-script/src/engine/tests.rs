use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use tokio::sync::watch;
use yiem_core::{IdKind, ProgressSink, SystemEnv, Timestamp, ToolCaller, ToolError, async_trait};

use super::*;

/// A clock that goes when the test says so.
#[derive(Debug)]
struct ManualEnv(watch::Sender<Duration>);

impl ManualEnv {
    fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(Duration::ZERO)))
    }
    fn advance(&self, by: Duration) {
        self.0.send_modify(|now| *now += by);
    }
}

impl Env for ManualEnv {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
    fn elapsed(&self) -> Duration {
        *self.0.borrow()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut clock = self.0.subscribe();
        let until = self.elapsed() + duration;
        Box::pin(async move {
            if clock.wait_for(|now| *now >= until).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
    fn new_id(&self, _: IdKind) -> String {
        "id".to_owned()
    }
    fn random(&self) -> f64 {
        0.5
    }
}

fn quick(running: u64) -> ScriptLimits {
    ScriptLimits {
        running: Duration::from_millis(running),
        ..ScriptLimits::default()
    }
}

fn engine(limits: ScriptLimits) -> ScriptEngine {
    ScriptEngine::with(SystemEnv::shared(), limits, ScriptGrants::default())
}

async fn execute(
    engine: &ScriptEngine,
    body: &str,
    context: Option<&ToolContext>,
) -> Result<Value, ScriptError> {
    let source = format!("export async function execute(args, host) {{\n{body}\n}}");
    let task = Task::Call {
        function: "execute",
        args: "{}".to_owned(),
        changes: false,
    };
    engine
        .run(&"t.js".into(), &source.into(), task, context)
        .await
}

fn context() -> ToolContext {
    ToolContext::new("call_1", "t", SystemEnv::shared())
}

/// Scripts that do not end by themselves, each in another way.
const ENDLESS: [&str; 6] = [
    "for (;;);",
    "await (async function f() { await null; return f() })()",
    "/^(a+)+$/.test('a'.repeat(60) + 'b')",
    "for (;;) host.progress(1)",
    "for (;;) host.log('x')",
    "const a = []; a.length = 4294967295; a.indexOf(1)",
];

#[tokio::test]
async fn a_call_that_runs_too_long_ends_and_others_go_on() {
    let env = ManualEnv::new();
    let engine = ScriptEngine::with(
        Arc::clone(&env) as Arc<dyn Env>,
        ScriptLimits::default(),
        ScriptGrants::default(),
    );
    let bad = join_all(ENDLESS.map(|body| execute(&engine, body, None)));
    let good = join_all((0..20).map(|i| {
        let engine = engine.clone();
        async move { execute(&engine, &format!("return {i}"), None).await }
    }));
    // Beside the endless ones, the others come to their ends; only then does the time pass.
    let good = async {
        let good = good.await;
        env.advance(engine.limits().running);
        good
    };
    let (bad, good) = tokio::join!(bad, good);
    for (i, result) in good.into_iter().enumerate() {
        assert_eq!(result.unwrap(), json!(i));
    }
    for result in bad {
        let error = result.unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::Time);
        assert_eq!(
            error.message,
            "the script ran longer than the 5 s that it may run"
        );
    }
}

#[tokio::test]
async fn time_ends_what_never_stops_talking() {
    // In real time, and without other calls beside it.
    for body in ["for (;;) host.progress(1)", "for (;;) host.log('x')"] {
        let error = execute(&engine(quick(50)), body, None).await.unwrap_err();
        assert_eq!(error.kind, ScriptErrorKind::Time, "{body}");
    }
}

#[tokio::test]
async fn a_script_that_ended_before_its_time_was_noticed_has_ended() {
    let env = ManualEnv::new();
    let engine = ScriptEngine::with(
        Arc::clone(&env) as Arc<dyn Env>,
        ScriptLimits::default(),
        ScriptGrants::default(),
    );
    let mut call = Box::pin(execute(&engine, "host.log(1); return 1", None));
    let begun = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx)));
    if begun.await.is_pending() {
        // The runtime is held up until the script has ended, and beyond its time.
        while engine.0.workers.idle() == 0 {
            std::thread::yield_now();
        }
        env.advance(engine.limits().running);
        assert_eq!(call.await.unwrap(), json!(1));
    }
}

#[tokio::test]
async fn a_step_that_the_engine_does_not_leave_is_given_up_on() {
    let env = ManualEnv::new();
    let engine = ScriptEngine::with(
        Arc::clone(&env) as Arc<dyn Env>,
        ScriptLimits::default(),
        ScriptGrants::default(),
    );
    let sink = Arc::new(Reports {
        seen: Mutex::default(),
        slow: None,
    });
    let context = ToolContext::new("call_1", "t", Arc::clone(&env) as Arc<dyn Env>)
        .with_progress(Arc::clone(&sink) as Arc<dyn ProgressSink>);
    // Printing a number of 300,000 digits is one step of the engine, for seconds.
    let body = "host.progress(1); for (;;) String(3n ** 600000n)";
    let (error, ()) = tokio::join!(execute(&engine, body, Some(&context)), async {
        while sink.seen.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        env.advance(engine.limits().running);
    });
    assert_eq!(error.unwrap_err().kind, ScriptErrorKind::Time);
    assert_eq!(execute(&engine, "return 1", None).await.unwrap(), json!(1));
}

#[tokio::test]
async fn dropping_a_call_ends_its_script() {
    let limits = ScriptLimits {
        scripts: 1,
        running: Duration::from_secs(3600),
        ..ScriptLimits::default()
    };
    let engine = engine(limits);
    for body in [
        "for (;;);",
        "host.progress(1); await host.callTool('never')",
    ] {
        let caller = Arc::new(Never);
        let context = context().with_caller(caller);
        let call = execute(&engine, body, Some(&context));
        let mut call = Box::pin(call);
        let once =
            std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx).is_pending()));
        assert!(once.await);
        drop(call);
        // The only place is free again, and the thread comes back.
        assert_eq!(execute(&engine, "return 1", None).await.unwrap(), json!(1));
    }
    while engine.0.workers.stuck() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn cancel_ends_a_call_at_once() {
    let engine = engine(ScriptLimits::default());
    let context = context();
    let cancel = context.cancel.clone();
    let (result, ()) = tokio::join!(execute(&engine, "for (;;);", Some(&context)), async {
        cancel.cancel()
    });
    assert_eq!(result.unwrap_err().kind, ScriptErrorKind::Cancelled);
    let error = execute(&engine, "return 1", Some(&context))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ScriptErrorKind::Cancelled);
}

struct Reports {
    seen: Mutex<Vec<Value>>,
    slow: Option<Arc<ManualEnv>>,
}

#[async_trait]
impl ProgressSink for Reports {
    async fn send(&self, partial: Value) {
        if let Some(env) = &self.slow {
            // A listener that takes an hour.
            env.advance(Duration::from_secs(3600));
        }
        tokio::task::yield_now().await;
        self.seen.lock().unwrap().push(partial);
    }
    fn offer(&self, _: Value) {}
}

#[tokio::test]
async fn progress_is_delivered_in_order_and_before_the_end() {
    let engine = engine(ScriptLimits::default());
    for end in ["return 1", "throw new Error('x')"] {
        let sink = Arc::new(Reports {
            seen: Mutex::default(),
            slow: None,
        });
        let context = context().with_progress(Arc::clone(&sink) as Arc<dyn ProgressSink>);
        let body = format!("for (let i = 0; i < 100; i++) host.progress({{ i }}); {end}");
        let _ = execute(&engine, &body, Some(&context)).await;
        let seen = sink.seen.lock().unwrap().clone();
        assert_eq!(
            seen,
            (0..100).map(|i| json!({ "i": i })).collect::<Vec<_>>()
        );
    }
}

#[tokio::test]
async fn waiting_for_others_is_not_running() {
    let env = ManualEnv::new();
    let limits = ScriptLimits {
        total: Duration::from_secs(1_000_000),
        ..ScriptLimits::default()
    };
    let engine = ScriptEngine::with(
        Arc::clone(&env) as Arc<dyn Env>,
        limits,
        ScriptGrants::default(),
    );
    let base = ToolContext::new("call_1", "t", Arc::clone(&env) as Arc<dyn Env>);
    let listened = base.clone().with_progress(Arc::new(Reports {
        seen: Mutex::default(),
        slow: Some(Arc::clone(&env)),
    }));
    execute(
        &engine,
        "for (let i = 0; i < 5; i++) host.progress(i)",
        Some(&listened),
    )
    .await
    .unwrap();

    let called = base.with_caller(Arc::new(Slow(Arc::clone(&env))));
    let body = "for (let i = 0; i < 5; i++) await host.callTool('slow'); return 'done'";
    assert_eq!(
        execute(&engine, body, Some(&called)).await.unwrap(),
        json!("done")
    );
    // What it runs after that counts.
    let body = "await host.callTool('slow'); for (;;);";
    let call = execute(&engine, body, Some(&called));
    let clock = async {
        loop {
            env.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    };
    let error = tokio::select! {
        result = call => result.unwrap_err(),
        () = clock => unreachable!("the clock goes on for ever"),
    };
    assert_eq!(error.kind, ScriptErrorKind::Time);
}

#[tokio::test]
async fn the_whole_call_has_a_limit_too() {
    let limits = ScriptLimits {
        total: Duration::from_millis(50),
        scripts: 1,
        ..ScriptLimits::default()
    };
    let engine = engine(limits);
    let context = context().with_caller(Arc::new(Never));
    let waits = execute(&engine, "await host.callTool('never')", Some(&context));
    // The second waits for the first one's place, in vain.
    let (first, second) = tokio::join!(waits, execute(&engine, "for (;;);", None));
    for result in [first, second] {
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind, error.message.contains("50 ms")),
            (ScriptErrorKind::Time, true)
        );
    }
}

struct Never;

#[async_trait]
impl ToolCaller for Never {
    async fn call_tool(&self, _: &str, _: JsonObject) -> Result<ToolOutput, ToolError> {
        std::future::pending().await
    }
}

struct Slow(Arc<ManualEnv>);

#[async_trait]
impl ToolCaller for Slow {
    async fn call_tool(&self, _: &str, _: JsonObject) -> Result<ToolOutput, ToolError> {
        self.0.advance(Duration::from_secs(3600));
        Ok(ToolOutput::text("slept"))
    }
}

/// Answers with what it was asked; `bad` is rejected, `sad` fails.
#[derive(Default)]
struct Echo(AtomicUsize);

#[async_trait]
impl ToolCaller for Echo {
    async fn call_tool(&self, name: &str, args: JsonObject) -> Result<ToolOutput, ToolError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        match name {
            "bad" => Err(ToolError::new("no such tool: bad")),
            "sad" => Ok(ToolOutput::text("it failed").failed()),
            _ => {
                Ok(ToolOutput::text(format!("{name} {}", Value::Object(args)))
                    .with_details(json!(7)))
            }
        }
    }
}

#[tokio::test]
async fn other_tools_are_called_through_the_capability_of_the_call() {
    let engine = engine(ScriptLimits::default());
    let with = context().with_caller(Arc::new(Echo::default()));
    for (body, expected) in [
        (
            "return (await host.callTool('one', { a: 1 })).text",
            json!("one {\"a\":1}"),
        ),
        (
            "return await host.callTool('one')",
            json!({
                "text": "one {}", "content": [{"type": "text", "text": "one {}"}],
                "structured": null, "details": 7, "isError": false,
            }),
        ),
        ("return (await host.callTool('sad')).isError", json!(true)),
        (
            "try { await host.callTool('bad') } catch (e) { return e.message }",
            json!("no such tool: bad"),
        ),
        (
            "try { await host.callTool('one', [1]) } catch (e) { return e.message }",
            json!("the arguments of one must be an object"),
        ),
        (
            "return (await Promise.all([1, 2, 3].map(i => host.callTool('n', { i })))).map(r => r.text)",
            json!(["n {\"i\":1}", "n {\"i\":2}", "n {\"i\":3}"]),
        ),
        (
            "const all = []; for (let i = 0; i < 40; i++) all.push(host.callTool('n').catch(e => e.message)); \
          return (await Promise.all(all)).filter(r => r === 'at most 16 requests may be open at once').length > 0",
            json!(true),
        ),
        (
            "const p = host.callTool('one'); const q = host.callTool('two'); await q; return (await p).text",
            json!("one {}"),
        ),
        (
            "return (await Promise.race([host.callTool('one'), host.callTool('two')])).text",
            json!("one {}"),
        ),
    ] {
        assert_eq!(
            execute(&engine, body, Some(&with)).await.unwrap(),
            expected,
            "{body}"
        );
    }
    let error = execute(&engine, "await host.callTool('one')", Some(&context()))
        .await
        .unwrap_err();
    assert!(
        error.message.contains("cannot be called from here"),
        "{error}"
    );

    let grants = ScriptGrants {
        call_tool: false,
        ..ScriptGrants::default()
    };
    let engine = ScriptEngine::with(SystemEnv::shared(), ScriptLimits::default(), grants);
    let error = execute(&engine, "await host.callTool('one')", Some(&with))
        .await
        .unwrap_err();
    assert!(
        error.message.contains("may not call other tools"),
        "{error}"
    );
}

#[tokio::test]
async fn many_calls_share_few_threads() {
    let limits = ScriptLimits {
        scripts: 2,
        ..ScriptLimits::default()
    };
    let engine = engine(limits);
    let all = join_all((0..50).map(|i| {
        let engine = engine.clone();
        async move { execute(&engine, &format!("return {i}"), None).await }
    }));
    assert!(
        all.await
            .into_iter()
            .enumerate()
            .all(|(i, result)| result.unwrap() == json!(i))
    );
    assert!(engine.0.workers.idle() <= 4);
}

#[test]
fn the_future_of_a_call_can_go_to_any_thread() {
    fn is_send<T: Send>(_: &T) {}
    let engine = engine(ScriptLimits::default());
    is_send(&execute(&engine, "", None));
}
