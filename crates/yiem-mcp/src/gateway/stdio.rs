//! The gateway's side on standard input and output: one JSON-RPC message a line.
//!
//! Knows: lines, that answers never mix, that the end of the input is the end. Does not know: what a
//! request means.

use super::core::{Asked, Core, cancelled_request};
use crate::jsonrpc::{self, Incoming, JsonRpcError, Line, LineReader, PARSE_ERROR, RequestId};
use crate::protocol::method;
use bytes::Bytes;
use serde_json::Value;
use std::fmt;
use std::io::Read as _;
use std::pin::Pin;
use std::sync::Arc;
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
    let mut calls = JoinSet::new();
    let mut reader = LineReader::new(MAX_LINE);
    loop {
        let read = tokio::select! {
            () = stop.cancelled() => break,
            read = input.read_buf(reader.buffer()) => read,
            // The other side no longer reads: nobody is there to be answered.
            _ = writer.join_next() => {
                core.cancel_all_of(CALLER);
                break;
            }
        };
        let ended = !matches!(read, Ok(bytes) if bytes > 0);
        while let Some(line) = if ended {
            reader.finish()
        } else {
            reader.next_line()
        } {
            take(line, &core, &lines, &mut calls);
        }
        while calls.try_join_next().is_some() {}
        if ended {
            break;
        }
    }
    while calls.join_next().await.is_some() {}
    drop(lines);
    while writer.join_next().await.is_some() {}
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

fn take(line: Line, core: &Arc<Core>, lines: &mpsc::Sender<Vec<u8>>, calls: &mut JoinSet<()>) {
    let messages = match line {
        Line::Whole(bytes) => jsonrpc::read(&bytes),
        Line::TooLong { length, .. } => {
            let error = JsonRpcError::new(
                jsonrpc::INVALID_REQUEST,
                format!("a message is too large: {length} bytes, allowed are {MAX_LINE}"),
            );
            answer_later(calls, lines, jsonrpc::error_response(None, &error));
            return;
        }
    };
    for message in messages {
        match message {
            Incoming::Request(request) => {
                calls.spawn(answer(
                    Arc::clone(core),
                    lines.clone(),
                    request.id,
                    request.method,
                    request.params,
                ));
            }
            Incoming::Notification {
                method: name,
                params,
            } if name == method::CANCELLED => {
                if let Some(id) = cancelled_request(&params) {
                    core.cancel(CALLER, &id);
                }
            }
            Incoming::Notification {
                method: name,
                params,
            } => {
                let core = Arc::clone(core);
                calls.spawn(async move { core.notified(&name, &params).await });
            }
            Incoming::Answer(_) => {}
            Incoming::Unreadable(stray) => {
                let error =
                    JsonRpcError::new(PARSE_ERROR, format!("{}: {}", stray.reason, stray.excerpt));
                answer_later(calls, lines, jsonrpc::error_response(None, &error));
            }
        }
    }
}

fn answer_later(calls: &mut JoinSet<()>, lines: &mpsc::Sender<Vec<u8>>, line: Vec<u8>) {
    let lines = lines.clone();
    calls.spawn(async move {
        // Fails when nobody reads any more.
        let _ = lines.send(line).await;
    });
}

async fn answer(
    core: Arc<Core>,
    lines: mpsc::Sender<Vec<u8>>,
    id: RequestId,
    name: String,
    params: Value,
) {
    let asked = Asked {
        caller: CALLER.into(),
        id: Some(id.clone()),
        method: name,
        params,
        session: None,
        cancel: CancelToken::new(),
    };
    let notes = lines.clone();
    let send = move |note| {
        if let Incoming::Notification {
            method: name,
            params: Value::Object(params),
        } = note
        {
            // At the bound the newest is dropped: nothing may wait here.
            let _ = notes.try_send(jsonrpc::notification(&name, &params));
        }
    };
    let line = match core.answer(asked, send).await {
        Some(Ok(result)) => jsonrpc::result_response(&id, &result),
        Some(Err(error)) => jsonrpc::error_response(Some(&id), &error),
        None => return,
    };
    let _ = lines.send(line).await;
}
