//! Spans of a run (R-16), and the settings' defaults (R-17).

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Instrument, Metadata, Subscriber};
use tracing_core::span::Current;
use yiem_agent::{Agent, AgentConfig, QueueMode, TerminatePolicy, ToolExecution};
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool};

/// Keeps every span of the agent and of these tests, with its parent and its attributes; then
/// what each is, and the spans that are entered. The runtimes here have one thread.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Lines>>, Arc<Mutex<Kinds>>, Arc<Mutex<Vec<u64>>>);

type Kinds = BTreeMap<u64, &'static Metadata<'static>>;

/// By number: the parent's number, the line.
type Lines = BTreeMap<u64, (Option<u64>, String)>;

struct Attribute<'a>(&'a mut String);

impl Visit for Attribute<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        metadata.is_span() && (target.starts_with("yiem_agent") || target == module_path!())
    }
    fn current_span(&self) -> Current {
        match self.2.lock().unwrap().last() {
            Some(id) => Current::new(Id::from_u64(*id), self.1.lock().unwrap()[id]),
            None => Current::none(),
        }
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = span.metadata().name().to_owned();
        span.record(&mut Attribute(&mut line));
        let mut spans = self.0.lock().unwrap();
        let id = spans.len() as u64 + 1;
        let parent = match span.is_contextual() {
            true => self.2.lock().unwrap().last().copied(),
            false => span.parent().map(Id::into_u64),
        };
        self.1.lock().unwrap().insert(id, span.metadata());
        spans.insert(id, (parent, line));
        Id::from_u64(id)
    }
    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some((_, line)) = self.0.lock().unwrap().get_mut(&span.into_u64()) {
            values.record(&mut Attribute(line));
        }
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, span: &Id) {
        self.2.lock().unwrap().push(span.into_u64());
    }
    fn exit(&self, span: &Id) {
        let mut entered = self.2.lock().unwrap();
        let at = entered.iter().rposition(|id| *id == span.into_u64());
        entered.remove(at.expect("it was entered"));
    }
}

/// Does the work on a runtime of one thread whose time is paused; gives the spans that it made.
fn watched<T>(work: impl Future<Output = T>) -> (T, Spans) {
    let spans = Spans::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let done = tracing::subscriber::with_default(spans.clone(), || runtime.block_on(work));
    (done, spans)
}

#[test]
fn a_run_its_model_calls_and_its_tool_calls_have_spans() {
    let (sent, spans) = watched(async {
        let model = ScriptedModel::new([
            Reply::call("echo", json!({"value": "secret"})).usage(10, 2),
            Reply::say("secret").usage(20, 3),
        ]);
        let agent = Agent::builder(model.clone())
            .env(PausedEnv::shared())
            .name("tester")
            .tool(tool::echo())
            .trace_context(|| vec![("traceparent".to_owned(), "00-1-2-01".to_owned())])
            .build()
            .unwrap();
        agent.prompt("secret").await.unwrap();
        model.requests()
    });
    assert_eq!(
        sent[0].trace[0],
        ("traceparent".to_owned(), "00-1-2-01".to_owned())
    );
    let lines: Vec<String> = spans
        .0
        .lock()
        .unwrap()
        .values()
        .map(|(parent, line)| format!("{}{line}", if parent.is_some() { "  " } else { "" }))
        .collect();
    expect![[r#"
        invoke_agent otel.kind="internal" gen_ai.operation.name="invoke_agent" gen_ai.agent.name="tester" gen_ai.conversation.id="session_1" yiem.run.id="run_1" yiem.run.end=Completed yiem.run.turns=2 gen_ai.usage.input_tokens=30 gen_ai.usage.output_tokens=5
          chat otel.kind="client" gen_ai.operation.name="chat" gen_ai.provider.name="" gen_ai.request.model="scripted" gen_ai.response.finish_reasons="tool_calls" gen_ai.usage.input_tokens=10 gen_ai.usage.output_tokens=2
          execute_tool otel.kind="internal" gen_ai.operation.name="execute_tool" gen_ai.tool.name="echo" gen_ai.tool.call.id="call_1" gen_ai.tool.type="function"
          chat otel.kind="client" gen_ai.operation.name="chat" gen_ai.provider.name="" gen_ai.request.model="scripted" gen_ai.response.finish_reasons="end_turn" gen_ai.usage.input_tokens=20 gen_ai.usage.output_tokens=3"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn calls_that_calls_make_have_spans() {
    let ((), spans) = watched(async {
        let model = ScriptedModel::new([Reply::call("outer", json!({})), Reply::say("done")]);
        let agent = Agent::builder(model)
            .env(PausedEnv::shared())
            .tool(tool::failing("fails", "broken"))
            .tool(tool::calling("inner", "fails", json!({})))
            .tool(tool::calling("outer", "inner", json!({})))
            .build()
            .unwrap();
        agent.prompt("hi").await.unwrap();
    });
    let spans = spans.0.lock().unwrap();
    let calls: Vec<&str> = spans
        .values()
        .filter(|(parent, line)| parent.is_some() && line.starts_with("execute_tool"))
        .map(|(_, line)| line.split("gen_ai.tool.name=").nth(1).unwrap())
        .collect();
    assert_eq!(calls.len(), 3, "{calls:?}");
    for (call, name) in calls.iter().zip(["outer", "inner", "fails"]) {
        assert!(
            call.starts_with(&format!("{name:?} gen_ai.tool.call.id=\"call_")),
            "{call}"
        );
        assert!(call.ends_with("error.type=\"tool_error\""), "{call}");
    }
}

#[test]
fn a_run_is_shown_below_what_asked_for_it() {
    let ((), spans) = watched(async {
        let below = Agent::builder(ScriptedModel::new([Reply::say("found")]))
            .env(PausedEnv::shared())
            .name("below")
            .build()
            .unwrap();
        let ask = Reply::call("ask", json!({"prompt": "look"}));
        let model = ScriptedModel::new([ask, Reply::say("done"), Reply::say("again")]);
        let agent = Agent::builder(model)
            .env(PausedEnv::shared())
            .name("above")
            .tool(below.as_tool("ask", "Asks."))
            .build()
            .unwrap();
        let serve = async { agent.prompt("hi").await.unwrap() };
        serve.instrument(tracing::info_span!("serve")).await;
        agent.prompt("once more").await.unwrap();
    });
    let spans = spans.0.lock().unwrap();
    let name = |line: &str| {
        let agent = line.split("gen_ai.agent.name=").nth(1);
        let agent = agent.and_then(|rest| rest.split('"').nth(1));
        agent.map_or_else(|| line.split(' ').next().unwrap().to_owned(), str::to_owned)
    };
    let tree: Vec<String> = spans
        .values()
        .map(|(parent, line)| match parent {
            Some(parent) => format!("{} < {}", name(line), name(&spans[parent].1)),
            None => name(line),
        })
        .collect();
    assert_eq!(
        tree,
        [
            "serve",
            "above < serve",
            "chat < above",
            "execute_tool < above",
            "below < execute_tool",
            "chat < below",
            "chat < above",
            // What asked for the run before is over.
            "above",
            "chat < above",
        ]
    );
}

#[test]
fn the_defaults_are_those_that_are_promised() {
    let c = AgentConfig::default();
    assert_eq!((c.limits.turns, c.limits.tool_calls), (50, None));
    assert_eq!(
        (c.limits.identical_calls_warn, c.limits.identical_calls_stop),
        (3, 6)
    );
    assert_eq!(
        (c.limits.tokens, c.limits.cost, c.limits.wall_time),
        (None, None, None)
    );
    assert_eq!(
        (c.tool_time, c.result_bytes),
        (Duration::from_secs(120), 64 * 1024)
    );
    assert_eq!((c.max_parallel, c.grace), (64, Duration::from_secs(5)));
    assert_eq!(c.stop_deadline, Duration::from_secs(30));
    assert_eq!(
        (c.retry.retries, c.retry.base),
        (4, Duration::from_millis(500))
    );
    assert_eq!(c.retry.max_wait, Duration::from_secs(60));
    assert_eq!((c.output_repairs, c.listener_buffer), (2, 1024));
    assert_eq!(
        (c.steering_mode, c.follow_up_mode),
        (QueueMode::All, QueueMode::OneAtATime)
    );
    assert_eq!(
        (c.tool_execution, c.terminate),
        (ToolExecution::Parallel, TerminatePolicy::Any)
    );
}
