//! How the model is asked: sources, hooks, request, stream.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use yiem_core::{
    BoxFuture, CancelToken, ChatEvent, ChatModel, ChatRequest, ChatStream, History, Memo,
    ModelError, ModelErrorKind, RunId,
};
use yiem_tools::CatalogNotice;

use super::{Driver, Work};
use crate::hook::{BeforeModelCall, ContextView, HookPoint, ModelCallView, TransformContext};
use crate::journal::note_tools;
use crate::offered::Offered;
use crate::outcome::Failure;
use crate::pipeline::{guarded, panic_text};
use crate::run::{Input, hook_failure};
use crate::shared::{Settings, Shared};
use crate::structured::OutputSpec;

/// A request that is ready to go.
pub(super) struct Ready {
    request: ChatRequest,
    model: Arc<dyn ChatModel>,
    tools: Offered,
    told: Vec<Input>,
}

/// What a request is made of.
struct Asking {
    shared: Arc<Shared>,
    settings: Settings,
    output: Option<Arc<OutputSpec>>,
    memo: Memo,
    messages: History,
    run_id: RunId,
    turn: u32,
    attempt: u32,
    cancel: CancelToken,
    tools: Offered,
    trace: Arc<[(String, String)]>,
}

impl Driver {
    pub(super) fn call_model(&mut self, attempt: u32) {
        self.turn = None;
        // A hook or the application may have changed it since the last call.
        let model = Arc::clone(&self.shared.lock().settings.model);
        self.model = model;
        self.note_model();
        self.spans.model_call(self.model.info());
        let Some(asking) = self.asking(attempt) else {
            return;
        };
        if !self.shared.waits_before_model_call() {
            let ready = asking.ready_now();
            self.request_ready(ready);
        } else {
            let work: BoxFuture<'static, Work> =
                Box::pin(async move { Work::Request(asking.ready().await.map(Box::new)) });
            self.work = Some(work);
        }
    }

    /// Writes down which model answers: the session's first, and each other one (S-4).
    fn note_model(&self) {
        if self.shared.journal.is_none() {
            return;
        }
        let id = &self.model.info().id;
        let mut state = self.shared.lock();
        if state.answering.as_ref() == Some(id) {
            return;
        }
        state.answering = Some(id.clone());
        drop(state);
        self.handle(Input::ModelChanged(id.clone()));
    }

    /// Tells and writes down that a hook, or the application, offers other tools than before.
    fn note_tools(&self) {
        let only = self.tools.only();
        let mut state = self.shared.lock();
        let hidden = std::mem::take(&mut state.hidden);
        if hidden.is_empty() && state.offering.as_ref() == only {
            return;
        }
        let before = std::mem::replace(&mut state.offering, only.cloned());
        drop(state);
        let (added, removed) = self.tools.narrowed_from(|name| {
            !hidden.contains(name) && before.as_ref().is_none_or(|only| only.contains(name))
        });
        if !(added.is_empty() && removed.is_empty()) {
            let changed = Vec::new();
            self.handle(Input::ToolsChanged {
                added,
                removed,
                changed,
            });
        }
    }

    /// The trace context of the moment, as the application gives it.
    pub(super) fn trace(&self) -> Arc<[(String, String)]> {
        let Some(context) = &self.shared.trace_context else {
            return Arc::default();
        };
        let given = catch_unwind(AssertUnwindSafe(|| self.spans.within(|| context())));
        given.map(Into::into).unwrap_or_else(|panic| {
            let said = panic_text(&*panic);
            tracing::error!(said, "the trace context panicked; the run goes on");
            Arc::default()
        })
    }

    fn asking(&self, attempt: u32) -> Option<Asking> {
        let trace = self.trace();
        let state = self.shared.lock();
        let run = state.run.as_ref()?;
        Some(Asking {
            settings: state.settings.clone(),
            output: state.active.as_ref()?.output.clone(),
            memo: state.memo.clone(),
            messages: run.shown().clone(),
            run_id: run.id().clone(),
            turn: run.turn(),
            attempt,
            cancel: self.cancel.clone(),
            tools: self.tools.clone(),
            shared: Arc::clone(&self.shared),
            trace,
        })
    }

    pub(super) fn request_ready(&mut self, ready: Ready) {
        self.model = ready.model;
        self.tools = ready.tools;
        for told in ready.told {
            if let Input::ToolsChanged { added, removed, .. } = &told {
                note_tools(&mut self.shared.lock().hidden, added, removed);
            }
            self.handle(told);
        }
        self.note_tools();
        self.spans
            .request(&ready.request, self.shared.config.trace_content);
        let (model, request) = (Arc::clone(&self.model), ready.request);
        self.stream = Some(
            catch_unwind(AssertUnwindSafe(|| model.stream(request)))
                .unwrap_or_else(|panic| ChatStream::failed(panicked(&*panic))),
        );
    }

    /// Tells of sources that failed while the model spoke: this may be the run's last reply.
    fn tell_faults(&self) {
        if !self.shared.has_sources {
            return;
        }
        for told in self
            .shared
            .catalog
            .take_faults()
            .into_iter()
            .filter_map(input_of)
        {
            self.handle(told);
        }
    }

    pub(super) fn model_said(&mut self, input: Input) {
        let ended = match &input {
            Input::Model(event) => {
                matches!(event, ChatEvent::Finished { .. } | ChatEvent::Message(_))
            }
            _ => true,
        };
        if ended {
            self.stream = None;
            self.spans.model_ended(&input);
            self.tell_faults();
        }
        self.handle(input);
    }
}

impl Asking {
    /// The request, when nobody has to be waited for.
    fn ready_now(self) -> Ready {
        let tools = self.offered();
        let options = match &self.output {
            Some(output) => output.options(&self.settings.options),
            None => Arc::clone(&self.settings.options),
        };
        Ready {
            request: ChatRequest {
                system: self.settings.system,
                messages: self.messages,
                tools: Arc::clone(tools.definitions()),
                options,
                memo: self.memo,
                trace: self.trace,
            },
            model: self.settings.model,
            tools,
            told: Vec::new(),
        }
    }

    fn offered(&self) -> Offered {
        let snapshot = self.shared.catalog.snapshot();
        let only = self.settings.only_tools.as_ref();
        let answer = self.output.as_ref().and_then(|o| o.tool());
        if self.turn > 1 && self.tools.is_of(&snapshot, only) {
            return self.tools.clone();
        }
        Offered::new(snapshot, only.cloned(), answer.cloned())
    }

    /// The request, with sources and hooks asked. Dropped on a cut.
    async fn ready(mut self) -> Result<Ready, Failure> {
        let shared = Arc::clone(&self.shared);
        let mut told = Vec::new();
        if shared.has_sources {
            shared
                .catalog
                .ready(&self.cancel)
                .await
                .map_err(|error| Failure::Source {
                    name: error.source_name.clone(),
                    message: error.message.clone(),
                })?;
            shared.catalog.refresh(&self.cancel).await;
            told = shared
                .catalog
                .take_notices()
                .into_iter()
                .filter_map(input_of)
                .collect();
        }
        for hook in shared.hooks.at(HookPoint::TransformContext) {
            let view = ContextView {
                run_id: self.run_id.clone(),
                turn: self.turn,
                system: self.settings.system.clone(),
                messages: self.messages.clone(),
                model: Arc::clone(&self.settings.model),
                env: Arc::clone(&shared.env),
                cancel: self.cancel.clone(),
            };
            match guarded(|| hook.transform_context(view)).await {
                Ok(TransformContext::Keep) => {}
                Ok(TransformContext::Messages(messages)) => self.messages = messages,
                Ok(TransformContext::Context { system, messages }) => {
                    self.settings.system = system;
                    self.messages = messages;
                }
                Err(error) => return Err(hook_failure(hook.name(), error)),
            }
        }
        let (run_id, turn, attempt, cancel) = (
            self.run_id.clone(),
            self.turn,
            self.attempt,
            self.cancel.clone(),
        );
        let mut ready = self.ready_now();
        ready.told = told;
        for hook in shared.hooks.at(HookPoint::BeforeModelCall) {
            let view = ModelCallView {
                run_id: run_id.clone(),
                turn,
                attempt,
                request: ready.request.clone(),
                model: Arc::clone(&ready.model),
                cancel: cancel.clone(),
            };
            match guarded(|| hook.before_model_call(view)).await {
                Ok(BeforeModelCall::Send) => {}
                Ok(BeforeModelCall::Replace(request)) => ready.request = *request,
                Err(error) => return Err(hook_failure(hook.name(), error)),
            }
        }
        Ok(ready)
    }
}

/// What the catalog has to tell, as the run takes it.
fn input_of(notice: CatalogNotice) -> Option<Input> {
    Some(match notice {
        CatalogNotice::SourceLoaded { added, removed, .. }
            if added.is_empty() && removed.is_empty() =>
        {
            return None;
        }
        CatalogNotice::SourceLoaded { added, removed, .. } => Input::ToolsChanged {
            added,
            removed,
            changed: Vec::new(),
        },
        CatalogNotice::DefinitionChanged {
            change,
            held: false,
        } => Input::ToolsChanged {
            added: Vec::new(),
            removed: Vec::new(),
            changed: vec![change.after.name.clone()],
        },
        other => Input::Warned(other.to_string().into()),
    })
}

/// The next piece of the reply, or how it ended.
pub(super) fn poll_reply(stream: &mut ChatStream, cx: &mut Context<'_>) -> Poll<Input> {
    let mut look = || catch_unwind(AssertUnwindSafe(|| stream.poll_event(cx)));
    let next = match look() {
        Ok(next) => std::task::ready!(next),
        Err(panic) => return Poll::Ready(Input::ModelFailed(panicked(&*panic))),
    };
    Poll::Ready(match next {
        Some(Ok(event)) => {
            if matches!(event, ChatEvent::Finished { .. } | ChatEvent::Message(_)) {
                // A look past the end lets a connection see that its body is over.
                let _ = look();
            }
            Input::Model(event)
        }
        Some(Err(error)) => Input::ModelFailed(error),
        None => Input::ModelFailed(ModelError::new(
            ModelErrorKind::TruncatedStream,
            "the model's reply ended without saying that it was done",
        )),
    })
}

/// The same as a future; none comes where there is no stream.
pub(super) async fn next_event(stream: &mut Option<ChatStream>) -> Input {
    match stream {
        Some(stream) => std::future::poll_fn(|cx| poll_reply(stream, cx)).await,
        None => std::future::pending().await,
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> ModelError {
    ModelError::new(
        ModelErrorKind::Other,
        format!("the model panicked: {}", panic_text(panic)),
    )
}
