//! Calls that a tool makes (T-7): the agent's whole pipeline once more, inside a call.
//!
//! Knows: depth, events, limits of nested calls. Does not know: batches; a nested call belongs to
//! the call that makes it and ends with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use tracing::Instrument;
use yiem_core::{
    IdKind, JsonObject, Message, ToolCall, ToolCallId, ToolCaller, ToolError, ToolOutput,
    ToolResultMessage,
};

use super::{CallMessage, CallProgress, Rejection, TurnEnv, execute, prepare};
use crate::event::{EventKind, ExecutionResult, RejectReason};
use crate::outcome::Limit;
use crate::telemetry::CallSpan;

/// How deep calls may make calls.
const MAX_DEPTH: u32 = 8;
/// How many calls one call may make.
const MAX_CALLS: u32 = 1000;

/// The capability of one call to call the agent's tools.
pub(crate) struct NestedCaller {
    turn: Arc<TurnEnv>,
    index: usize,
    parent: ToolCallId,
    depth: u32,
    made: AtomicU32,
}

impl NestedCaller {
    pub(crate) fn new(turn: Arc<TurnEnv>, index: usize, parent: ToolCallId, depth: u32) -> Self {
        Self {
            turn,
            index,
            parent,
            depth,
            made: AtomicU32::new(0),
        }
    }
}

impl NestedCaller {
    /// Why the call may not be made, as the run's limit of calls has it; `counts` takes one of
    /// those that are left.
    fn over_limit(&self, counts: bool) -> Option<Rejection> {
        let max = self.turn.config.limits.tool_calls;
        let more = |made: u32| {
            max.is_none_or(|max| made < max)
                .then(|| made + u32::from(counts))
        };
        let accepted = &self.turn.accepted;
        let taken = accepted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let max = max.filter(|_| taken.is_err())?;
        let text = format!("Not executed: {}.", Limit::ToolCalls { max });
        Some(Rejection::new(RejectReason::Limit, text))
    }
}

#[async_trait]
impl ToolCaller for NestedCaller {
    fn offers(&self, name: &str) -> bool {
        self.turn.tools.get(name).is_some()
    }

    async fn call_tool(&self, name: &str, args: JsonObject) -> Result<ToolOutput, ToolError> {
        if self.depth >= MAX_DEPTH {
            return Err(ToolError::new(format!(
                "{name} was not called: tools call each other {MAX_DEPTH} deep, which is the most"
            )));
        }
        if self.made.fetch_add(1, Ordering::Relaxed) >= MAX_CALLS {
            return Err(ToolError::new(format!(
                "{name} was not called: this call made {MAX_CALLS} calls, which is the most"
            )));
        }
        let turn = &self.turn;
        let call = Arc::new(ToolCall::new(turn.env.new_id(IdKind::Call), name, args));
        let parent = Some(self.parent.clone());
        let tool_name: Arc<str> = name.into();
        let tell = |kind| {
            turn.tell.send(CallMessage::Told {
                call: self.index,
                kind: Box::new(kind),
            })
        };
        // Nobody is asked about a call that may not be made; whether it may is known once it is
        // accepted: others may be made meanwhile.
        let (asked, called) = (Arc::clone(&call), Arc::clone(&tool_name));
        let accepted = match self.over_limit(false) {
            Some(over) => Err(over),
            None => match prepare(turn, self.index, asked, called, parent.clone()).await {
                Ok(prepared) => self.over_limit(true).map_or(Ok(prepared), Err),
                Err(rejection) => Err(rejection),
            },
        };
        let prepared = match accepted {
            Ok(prepared) => prepared,
            Err(Rejection { reason, output }) => {
                let text = output.plain_text();
                let _ = tell(EventKind::ToolCallRejected {
                    tool_call_id: call.id.clone(),
                    tool_name,
                    reason,
                    message: text.as_str().into(),
                    parent_tool_call_id: parent,
                })
                .await;
                return Err(ToolError::new(text).with_details(output.details));
            }
        };
        let _ = tell(EventKind::ToolExecutionStart {
            tool_call_id: call.id.clone(),
            tool_name: Arc::clone(&tool_name),
            args: Arc::clone(prepared.args.shared()),
            parent_tool_call_id: parent,
        })
        .await;
        let progress = Arc::new(CallProgress::nested(
            self.index,
            turn.tell.clone(),
            call.id.clone(),
            Arc::clone(&tool_name),
        ));
        let told = Arc::clone(&progress);
        let context = turn.context(self.index, &prepared, told, self.depth + 1);
        let span = CallSpan::nested(&turn.span, &prepared);
        let work = Box::pin(execute(turn, self.index, &prepared, context, None));
        let mut output = match span.shown() {
            Some(within) => work.instrument(within).await,
            None => work.await,
        };
        span.ended(&output);
        if let Some(left) = progress.close() {
            progress.deliver(left).await;
        }
        let message = Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: name.to_owned(),
            content: output.content.clone(),
            details: output.details.clone(),
            usage: output.usage,
            is_error: output.is_error,
            timestamp: turn.env.now(),
            ..ToolResultMessage::default()
        }));
        if let Some(cost) = output.cost {
            let call = self.index;
            let _ = turn.tell.send(CallMessage::Cost { call, cost }).await;
        }
        let _ = tell(EventKind::ToolExecutionEnd {
            tool_call_id: call.id.clone(),
            tool_name,
            result: ExecutionResult::new(message, output.terminate),
            is_error: output.is_error,
        })
        .await;
        // What it cost is counted: a tool that hands the output on would count it again.
        (output.usage, output.cost) = (None, None);
        Ok(*output)
    }
}
