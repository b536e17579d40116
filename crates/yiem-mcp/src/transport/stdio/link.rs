//! Requests and answers over one pair of pipes.

use super::outgoing::Outgoing;
use crate::correlate::{Correlator, Settled};
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{Answer, AnswerOutcome, Incoming, IncomingRequest, Line, RequestId, read};
use crate::protocol::method;
use crate::transport::Inbox;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use yiem_core::Env;

/// How long the end of a process is waited for after its pipe broke.
const LAST_WORDS_TIME: Duration = Duration::from_secs(1);

type Waiter = oneshot::Sender<Result<Answer, McpError>>;

/// The two ways of one process, and who waits for what.
#[derive(Debug)]
pub(super) struct Link {
    outgoing: Outgoing,
    state: Mutex<State>,
    inbox: Inbox,
    strays: AtomicU64,
    max_message: usize,
    env: Arc<dyn Env>,
}

#[derive(Debug, Default)]
struct State {
    waiters: Correlator<Waiter>,
    /// Why nothing can be sent any more.
    ended: Option<McpError>,
    last_stray: Option<String>,
}

/// A request that is waited for; dropped before its answer, it is given up.
struct Pending<'a> {
    link: &'a Link,
    id: &'a RequestId,
    /// The reader took it from those that wait.
    settled: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.link.state().waiters.give_up(self.id);
        }
    }
}

impl Link {
    pub(super) fn new(
        outgoing: Outgoing,
        inbox: Inbox,
        max_message: usize,
        env: Arc<dyn Env>,
    ) -> Self {
        Self {
            outgoing,
            state: Mutex::default(),
            inbox,
            strays: AtomicU64::new(0),
            max_message,
            env,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }

    /// How many lines were no messages.
    pub(super) fn strays(&self) -> u64 {
        self.strays.load(Ordering::Relaxed)
    }

    pub(super) async fn exchange(&self, id: &RequestId, line: Vec<u8>) -> Result<Answer, McpError> {
        let (sender, mut answer) = oneshot::channel();
        {
            let mut state = self.state();
            if let Some(ended) = &state.ended {
                return Err(ended.again().before_sending());
            }
            state.waiters.wait(id.clone(), sender);
        }
        let mut pending = Pending {
            link: self,
            id,
            settled: false,
        };
        if let Err(error) = self.write(line).await {
            // A pipe that is closed means a process that ends: its status and last words say more.
            return Err(tokio::select! {
                Ok(Err(ended)) = &mut answer => ended.before_sending(),
                () = self.env.sleep(LAST_WORDS_TIME) => error,
            });
        }
        let answer = answer.await;
        pending.settled = true;
        match answer {
            Ok(answer) => answer,
            Err(_) => Err(McpError::lost("the connection to the server is gone")),
        }
    }

    pub(super) async fn write(&self, mut line: Vec<u8>) -> Result<(), McpError> {
        line.push(b'\n');
        self.outgoing.write(&line).await
    }

    /// Takes one line of the process's standard output.
    pub(super) fn take(&self, line: Line) {
        match line {
            Line::Whole(bytes) => {
                for message in read(&bytes) {
                    self.take_message(message);
                }
            }
            Line::TooLong { length, id } => {
                let error = McpError::new(McpErrorKind::TooLarge {
                    what: "the answer".into(),
                    size: length,
                    limit: self.max_message as u64,
                });
                let waiting = id.clone().map(|id| Answer {
                    id: Some(id),
                    outcome: AnswerOutcome::Malformed(String::new()),
                });
                let settled = waiting.map(|answer| self.state().waiters.settle(answer));
                match settled {
                    Some(Settled::Waiter(waiter, _)) => {
                        let _ = waiter.send(Err(error));
                    }
                    _ => self.stray(format!(
                        "a line of {length} bytes, more than the {} allowed",
                        self.max_message
                    )),
                }
            }
        }
    }

    fn take_message(&self, message: Incoming) {
        match message {
            Incoming::Answer(answer) => {
                let id = answer.id.clone();
                let settled = self.state().waiters.settle(answer);
                match settled {
                    Settled::Waiter(waiter, outcome) => {
                        let _ = waiter.send(Ok(Answer { id, outcome }));
                    }
                    Settled::Late(id) => tracing::debug!(%id, "a late answer is dropped"),
                    Settled::Stray(id) => {
                        self.inbox.message(Incoming::Answer(Answer {
                            id,
                            outcome: AnswerOutcome::Malformed("stray".into()),
                        }));
                    }
                }
            }
            Incoming::Unreadable(stray) => {
                self.stray(stray.excerpt.clone());
                self.inbox.message(Incoming::Unreadable(stray));
            }
            Incoming::Request(request) if self.is_echo(&request) => {}
            other => self.inbox.message(other),
        }
    }

    /// Whether it is a request of our own that was sent back, whose waiter is told so. An answer to it
    /// would come back as well, and be taken for the server's.
    fn is_echo(&self, request: &IncomingRequest) -> bool {
        if !method::is_of_clients(&request.method) {
            return false;
        }
        let settled = self.state().waiters.settle(Answer {
            id: Some(request.id.clone()),
            outcome: AnswerOutcome::Malformed(String::new()),
        });
        if let Settled::Waiter(waiter, _) = settled {
            let error = format!(
                "it sends back our own `{}` request instead of an answer: it is no MCP server, as `cat` is none, \
                 or a terminal stands between (`docker run -t`, `ssh -t`)",
                request.method
            );
            let _ = waiter.send(Err(McpError::protocol(error)));
            return true;
        }
        false
    }

    fn stray(&self, what: String) {
        let count = self.strays.fetch_add(1, Ordering::Relaxed) + 1;
        if count == 1 {
            tracing::warn!(line = %what, "a line on an MCP server's standard output is no message");
        }
        self.state().last_stray = Some(what);
    }

    /// What to tell beside an error, if the process wrote lines that are no messages.
    pub(super) fn stray_note(&self) -> Option<String> {
        let last = self.state().last_stray.clone()?;
        Some(match self.strays() {
            1 => format!("one line of its output was no message: {last}"),
            count => format!("{count} lines of its output were no messages, the last: {last}"),
        })
    }

    /// The process is gone: all who wait are told, and nothing is sent any more.
    pub(super) fn end(&self, reason: McpError) {
        let waiters = {
            let mut state = self.state();
            if state.ended.is_some() {
                return;
            }
            state.ended = Some(reason.again());
            state.waiters.take_all()
        };
        self.outgoing.close();
        for waiter in waiters {
            let _ = waiter.send(Err(reason.again()));
        }
        self.inbox.closed(reason);
    }
}

/// The link as tasks hold it.
pub(super) type SharedLink = Arc<Link>;
