//! The pipe to a process: written without waiting where it has room, else by a task, in order.

use crate::error::McpError;
use bytes::{Buf, BytesMut};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::unix::pipe::Sender;
use tokio::sync::Notify;

/// How many bytes may wait for the pipe. A message beyond waits for its turn; one alone may be larger.
const QUEUE_CAP: usize = 1 << 20;

/// The way to a process's standard input.
#[derive(Debug)]
pub(super) struct Outgoing {
    state: Mutex<State>,
    /// There is something to write, or the end has come.
    work: Notify,
    /// There is room in the queue, or the end has come.
    room: Notify,
}

#[derive(Debug)]
struct State {
    /// None once closed.
    pipe: Option<Arc<Sender>>,
    queue: BytesMut,
}

impl Outgoing {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        let pipe = Sender::from_owned_fd(fd)?;
        Ok(Self {
            state: Mutex::new(State {
                pipe: Some(Arc::new(pipe)),
                queue: BytesMut::new(),
            }),
            work: Notify::new(),
            room: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line, its end included. Waits while the queue is full; may be dropped then, and nothing of
    /// the line is written.
    pub(super) async fn write(&self, line: &[u8]) -> Result<(), McpError> {
        loop {
            let room = self.room.notified();
            if self.try_write(line)? {
                return Ok(());
            }
            room.await;
        }
    }

    fn try_write(&self, line: &[u8]) -> Result<bool, McpError> {
        let mut state = self.state();
        let Some(pipe) = state.pipe.clone() else {
            return Err(McpError::not_sent("the server's standard input is closed"));
        };
        let mut rest = line;
        if state.queue.is_empty() {
            match pipe.try_write(line) {
                Ok(written) if written == line.len() => return Ok(true),
                Ok(written) => rest = &line[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    state.pipe = None;
                    return Err(McpError::not_sent("the server's standard input is closed")
                        .with_source(error));
                }
            }
        } else if state.queue.len() + line.len() > QUEUE_CAP {
            return Ok(false);
        }
        state.queue.extend_from_slice(rest);
        drop(state);
        self.work.notify_one();
        Ok(true)
    }

    /// Writes what is queued, until the end. Run as a task beside.
    pub(super) async fn drain(&self) {
        loop {
            let pipe = {
                let state = self.state();
                match &state.pipe {
                    None => return,
                    Some(pipe) if !state.queue.is_empty() => Some(Arc::clone(pipe)),
                    Some(_) => None,
                }
            };
            let Some(pipe) = pipe else {
                self.work.notified().await;
                continue;
            };
            let ready = tokio::select! {
                ready = pipe.writable() => ready.is_ok(),
                () = self.work.notified() => continue,
            };
            let mut state = self.state();
            if state.pipe.is_none() {
                return;
            }
            let written = if ready {
                pipe.try_write(&state.queue)
            } else {
                Err(io::ErrorKind::BrokenPipe.into())
            };
            match written {
                Ok(written) => {
                    state.queue.advance(written);
                    if state.queue.len() < QUEUE_CAP {
                        self.room.notify_waiters();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => {
                    drop(state);
                    self.close();
                    return;
                }
            }
        }
    }

    /// Ends the process's input; what is still queued is lost.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.pipe = None;
        state.queue.clear();
        drop(state);
        self.work.notify_one();
        self.room.notify_waiters();
    }
}
