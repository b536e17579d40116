//! The gateway's side on standard input and output: one JSON-RPC message a line.
//!
//! Knows: lines, that answers never mix, that the end of the input is the end. Does not know: what a
//! request means.

use super::callers::{Attached, Changes};
use super::core::{Asked, Asking, Core, cancelled_request};
use crate::jsonrpc::{
    self, Incoming, IncomingRequest, JsonRpcError, Line, LineReader, PARSE_ERROR,
};
use crate::protocol::method;
use bytes::Bytes;
use serde_json::{Map, Value};
use std::fmt;
use std::io::Read as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use yiem_core::CancelToken;

/// The longest line that is read, in bytes (M-8).
const MAX_LINE: usize = 32 << 20;
/// How many lines may wait to be written.
const LINES_WAITING: usize = 1_024;
/// There is one caller.
const CALLER: &str = "stdio";

/// The two streams.
pub(super) struct Pipes {
    input: Box<dyn AsyncRead + Send + Unpin>,
    output: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Pipes {
    pub(super) fn standard() -> Self {
        Self::new(StandardInput::open(), tokio::io::stdout())
    }

    pub(super) fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            input: Box::new(input),
            output: Box::new(output),
        }
    }
}

/// The standard input, read by a thread of its own: a read cannot be interrupted, and a runtime that did it
/// could not end before the next line came.
struct StandardInput {
    chunks: mpsc::Receiver<Bytes>,
    rest: Bytes,
}

impl StandardInput {
    fn open() -> Self {
        let (send, chunks) = mpsc::channel(16);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            loop {
                match std::io::stdin().read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) => {
                        if send
                            .blocking_send(Bytes::copy_from_slice(&buffer[..length]))
                            .is_err()
                        {
                            return;
                        }
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        tracing::warn!(%error, "the standard input cannot be read");
                        return;
                    }
                }
            }
        });
        Self {
            chunks,
            rest: Bytes::new(),
        }
    }
}

impl AsyncRead for StandardInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.rest.is_empty() {
            match ready!(self.chunks.poll_recv(cx)) {
                Some(chunk) => self.rest = chunk,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pipes")
    }
}

/// Answers requests until the input ends or it is told to stop, and what is under way has ended.
pub(super) async fn serve(pipes: Pipes, core: Arc<Core>, stop: CancelToken) {
    let Pipes { mut input, output } = pipes;
    let (lines, waiting) = mpsc::channel(LINES_WAITING);
    let mut writer = JoinSet::new();
    writer.spawn(write(output, waiting));
    let mut desk = Desk {
        core,
        lines,
        calls: JoinSet::new(),
        declared: None,
        answered: Arc::default(),
    };
    let mut opened = None;
    let mut reader = LineReader::new(MAX_LINE);
    loop {
        let read = tokio::select! {
            () = stop.cancelled() => break,
            read = input.read_buf(reader.buffer()) => read,
            told = next_changes(&mut opened) => {
                desk.tell(told);
                continue;
            }
            Some(ended) = desk.calls.join_next(), if !desk.calls.is_empty() => {
                open(&mut opened, ended.ok().flatten());
                continue;
            }
            // The other side no longer reads: nobody is there to be answered.
            _ = writer.join_next() => {
                desk.core.cancel_all_of(CALLER);
                break;
            }
        };
        let ended = !matches!(read, Ok(bytes) if bytes > 0);
        while let Some(line) = if ended {
            reader.finish()
        } else {
            reader.next_line()
        } {
            desk.take(line);
        }
        while let Some(ended) = desk.calls.try_join_next() {
            open(&mut opened, ended.ok().flatten());
        }
        if ended {
            // Who listens by a request that lasts would never end, and nobody answers questions any more.
            desk.core.end_lasting_of(CALLER);
            desk.core.callers.forget(CALLER);
            break;
        }
    }
    let Desk {
        lines, mut calls, ..
    } = desk;
    // It holds a way to the writer, which ends when nobody has one.
    drop(opened);
    while calls.join_next().await.is_some() {}
    drop(lines);
    while writer.join_next().await.is_some() {}
}

/// What a line may need.
struct Desk {
    core: Arc<Core>,
    lines: mpsc::Sender<Vec<u8>>,
    /// What is under way; a handshake ends with what it opened.
    calls: JoinSet<Option<Opened>>,
    /// The caller began to shake hands: what it can do.
    declared: Option<Arc<Map<String, Value>>>,
    answered: Answered,
}

/// Whether the handshake was answered. Nothing is asked before.
type Answered = Arc<Mutex<bool>>;

/// What a handshake opens once it was answered: changes are told from then on, and the caller can be asked
/// at any time.
struct Opened {
    changes: Changes,
    attached: Attached,
}

/// Takes what a handshake opened. A second one misses nothing that the first would have told.
fn open(opened: &mut Option<Opened>, new: Option<Opened>) {
    match (opened, new) {
        (_, None) => {}
        (Some(opened), Some(new)) => opened.attached = new.attached,
        (opened, new) => *opened = new,
    }
}

/// The next changes; never, before the handshake was answered.
async fn next_changes(opened: &mut Option<Opened>) -> Vec<Incoming> {
    match opened {
        Some(opened) => opened.changes.next().await,
        None => std::future::pending().await,
    }
}

async fn write(
    mut output: Box<dyn AsyncWrite + Send + Unpin>,
    mut waiting: mpsc::Receiver<Vec<u8>>,
) {
    while let Some(mut line) = waiting.recv().await {
        line.push(b'\n');
        if output.write_all(&line).await.is_err()
            || (waiting.is_empty() && output.flush().await.is_err())
        {
            return;
        }
    }
    let _ = output.flush().await;
}

impl Desk {
    /// Tells the caller of changes, as one of its era is told.
    fn tell(&self, changes: Vec<Incoming>) {
        for change in changes {
            if self.core.callers.concerns(CALLER, &change) {
                to_caller(&self.lines, change);
            }
        }
    }

    fn take(&mut self, line: Line) {
        let messages = match line {
            Line::Whole(bytes) => jsonrpc::read(&bytes),
            Line::TooLong { length, .. } => {
                let error = JsonRpcError::new(
                    jsonrpc::INVALID_REQUEST,
                    format!("a message is too large: {length} bytes, allowed are {MAX_LINE}"),
                );
                self.answer_later(jsonrpc::error_response(None, &error));
                return;
            }
        };
        for message in messages {
            match message {
                Incoming::Request(request) => {
                    if request.method == method::INITIALIZE {
                        let declared = request.params.get("capabilities");
                        let declared = declared.and_then(Value::as_object).cloned();
                        self.declared = Some(Arc::new(declared.unwrap_or_default()));
                    }
                    let asking = match &self.declared {
                        Some(declared) => Asking::Requests(Arc::clone(declared)),
                        None => Asking::Rounds,
                    };
                    let core = Arc::clone(&self.core);
                    let answered = Arc::clone(&self.answered);
                    self.calls
                        .spawn(answer(core, self.lines.clone(), request, asking, answered));
                }
                Incoming::Notification {
                    method: name,
                    params,
                } if name == method::CANCELLED => {
                    if let Some(id) = cancelled_request(&params) {
                        self.core.cancel(CALLER, &id);
                    }
                }
                Incoming::Notification {
                    method: name,
                    params,
                } => {
                    let core = Arc::clone(&self.core);
                    self.calls.spawn(async move {
                        core.notified(&name, &params).await;
                        None
                    });
                }
                Incoming::Answer(answer) => {
                    if !self.core.callers.answered(CALLER, answer) {
                        tracing::debug!("an answer to a question that is not open");
                    }
                }
                Incoming::Unreadable(stray) => {
                    let error = JsonRpcError::new(
                        PARSE_ERROR,
                        format!("{}: {}", stray.reason, stray.excerpt),
                    );
                    self.answer_later(jsonrpc::error_response(None, &error));
                }
            }
        }
    }

    fn answer_later(&mut self, line: Vec<u8>) {
        let lines = self.lines.clone();
        self.calls.spawn(async move {
            // Fails when nobody reads any more.
            let _ = lines.send(line).await;
            None
        });
    }
}

/// Writes a message to the caller, unless too many wait: nothing may wait here, so the newest is dropped.
fn to_caller(lines: &mpsc::Sender<Vec<u8>>, message: Incoming) -> bool {
    jsonrpc::outgoing(&message).is_some_and(|line| lines.try_send(line).is_ok())
}

async fn answer(
    core: Arc<Core>,
    lines: mpsc::Sender<Vec<u8>>,
    request: IncomingRequest,
    asking: Asking,
    answered: Answered,
) -> Option<Opened> {
    let id = request.id;
    let declared = match (&asking, request.method == method::INITIALIZE) {
        (Asking::Requests(declared), true) => Some(Map::clone(declared)),
        _ => None,
    };
    let asked = Asked {
        caller: CALLER.into(),
        id: Some(id.clone()),
        method: request.method,
        params: request.params,
        session: None,
        cancel: CancelToken::new(),
        asking,
        told: true,
    };
    let (notes, may_ask) = (lines.clone(), Arc::clone(&answered));
    let send = move |message| {
        let asks = matches!(message, Incoming::Request(_));
        (!asks || *may_ask.lock().unwrap_or_else(PoisonError::into_inner))
            && to_caller(&notes, message)
    };
    let answer = core.answer(asked, send).await?;
    let line = match &answer {
        Ok(result) => jsonrpc::result_response(&id, result),
        Err(error) => jsonrpc::error_response(Some(&id), error),
    };
    // Fails when nobody reads any more.
    let place = lines.reserve().await.ok()?;
    let mut answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
    place.send(line);
    let declared = declared.filter(|_| answer.is_ok())?;
    *answered = true;
    drop(answered);
    let lines = lines.clone();
    let asks = core.callers.by_requests(
        CALLER.into(),
        declared,
        Arc::new(move |message| to_caller(&lines, message)),
        core.stop.child(),
    );
    Some(Opened {
        changes: core.callers.changes(),
        attached: core.callers.attach(CALLER.into(), asks),
    })
}

#[cfg(test)]
mod tests;
