//! Spans of a run, its model calls and its tool calls, with the attribute names of the
//! OpenTelemetry GenAI conventions.
//!
//! Knows: names and values. Does not know: exporters; a subscriber of `tracing` does.

use tracing::field::Empty;
use tracing::{Span, info_span};
use yiem_core::{ChatEvent, ChatRequest, ModelInfo, RunId, SessionId, ToolOutput, Usage};

use crate::event::{AgentEvent, EventKind};
use crate::outcome::Outcome;
use crate::pipeline::PreparedToolCall;
use crate::run::Input;

/// The spans of one run.
pub(crate) struct RunSpans {
    run: Span,
    model: Option<Span>,
}

/// The span of one tool call.
pub(crate) struct CallSpan(Span);

impl RunSpans {
    /// The run's span is a child of the one in which it was asked for: that of a request that is
    /// served, or, for an agent that is a tool, that of the call.
    pub(crate) fn new(
        asked_in: Option<&Span>,
        agent: &str,
        run_id: &RunId,
        session_id: &SessionId,
    ) -> Self {
        let run = info_span!(
            parent: asked_in.and_then(Span::id),
            "invoke_agent",
            otel.kind = "internal",
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = agent,
            gen_ai.conversation.id = session_id.as_str(),
            yiem.run.id = run_id.as_str(),
            yiem.run.end = Empty,
            yiem.run.turns = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            error.type = Empty,
        );
        Self { run, model: None }
    }

    /// Runs `work` inside the span of the moment.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        self.model.as_ref().unwrap_or(&self.run).in_scope(work)
    }

    pub(crate) fn model_call(&mut self, info: &ModelInfo) {
        let span = info_span!(
            parent: &self.run,
            "chat",
            otel.kind = "client",
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = info.provider.as_str(),
            gen_ai.request.model = info.id.as_str(),
            gen_ai.response.model = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.input.messages = Empty,
            error.type = Empty,
        );
        self.model = Some(span);
    }

    pub(crate) fn request(&mut self, request: &ChatRequest, content: bool) {
        let Some(span) = &self.model else { return };
        if span.is_disabled() {
            return;
        }
        if content && let Ok(text) = serde_json::to_string(&request.messages) {
            span.record("gen_ai.input.messages", text);
        }
    }

    pub(crate) fn model_ended(&mut self, input: &Input) {
        let Some(span) = self.model.take().filter(|s| !s.is_disabled()) else {
            return;
        };
        match input {
            Input::Model(ChatEvent::Finished { stop, usage }) => {
                span.record("gen_ai.response.finish_reasons", stop.as_str());
                record_usage(&span, usage);
            }
            Input::Model(ChatEvent::Message(message)) => {
                if !message.model.is_empty() {
                    span.record("gen_ai.response.model", message.model.as_str());
                }
                span.record(
                    "gen_ai.response.finish_reasons",
                    message.stop_reason.as_str(),
                );
                record_usage(&span, &message.usage);
            }
            Input::ModelFailed(error) => {
                span.record("error.type", error.kind.as_str());
            }
            _ => {}
        }
    }

    /// An event that a span has to show.
    pub(crate) fn event(&mut self, event: &AgentEvent) {
        if let EventKind::RetryScheduled {
            attempt,
            delay_ms,
            error,
            ..
        } = &event.kind
        {
            self.run.in_scope(|| {
                tracing::warn!(attempt, delay_ms, error = %error, "the model call is made again");
            });
        }
    }

    pub(crate) fn call(&self, prepared: &PreparedToolCall) -> CallSpan {
        CallSpan::new(&self.run, prepared)
    }

    /// The span of the run, for calls that calls make.
    pub(crate) fn run(&self) -> Span {
        self.run.clone()
    }

    pub(crate) fn run_ended(&mut self, outcome: &Outcome) {
        self.model = None;
        if self.run.is_disabled() {
            return;
        }
        let end = outcome.end.kind();
        self.run.record("yiem.run.end", tracing::field::debug(end));
        self.run.record("yiem.run.turns", outcome.turns);
        record_usage(&self.run, &outcome.usage);
        if !outcome.is_ok() {
            self.run.record("error.type", tracing::field::debug(end));
        }
    }
}

fn record_usage(span: &Span, usage: &Usage) {
    if let Some(input) = usage.prompt() {
        span.record("gen_ai.usage.input_tokens", input);
    }
    if let Some(output) = usage.output {
        span.record("gen_ai.usage.output_tokens", output);
    }
    if let Some(cached) = usage.cache_read {
        span.record("gen_ai.usage.cache_read.input_tokens", cached);
    }
}

impl CallSpan {
    /// A call inside `parent`.
    fn new(parent: &Span, prepared: &PreparedToolCall) -> Self {
        Self(info_span!(
            parent: parent,
            "execute_tool",
            otel.kind = "internal",
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = prepared.call.name.as_str(),
            gen_ai.tool.call.id = prepared.call.id.as_str(),
            gen_ai.tool.type = "function",
            error.type = Empty,
        ))
    }

    /// A call that another call makes: inside that one where the subscriber knows it, else inside
    /// the run.
    pub(crate) fn nested(run: &Span, prepared: &PreparedToolCall) -> Self {
        let current = Span::current();
        Self::new(if current.is_none() { run } else { &current }, prepared)
    }

    /// Marks the call as ended; the span closes when this is dropped.
    pub(crate) fn ended(self, output: &ToolOutput) {
        if output.is_error {
            self.0.record("error.type", "tool_error");
        }
    }

    /// The span to run the call in, if anybody is shown it.
    pub(crate) fn shown(&self) -> Option<Span> {
        (!self.0.is_disabled()).then(|| self.0.clone())
    }
}
