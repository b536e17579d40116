//! The threads that scripts run on.
//!
//! Knows: threads, the channels to whoever waits for a script, and panics of the engine.
//! Does not know: clocks, async, tools. A script runs on one thread from its start to its end;
//! whoever waits for it never waits on that thread, and may go away at any time.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};

use crate::error::{ScriptError, ScriptErrorKind};
use crate::limits::ScriptLimits;
use crate::sandbox::{HostPort, HostReply, HostRequest, Job, Sandbox};

/// Room on a thread beyond the engine's own stack, for what the engine calls.
const STACK_ROOM: usize = 1 << 20;

/// Threads that are kept for the next script.
const IDLE_THREADS: usize = 4;

/// Scripts that were given up on and still run, before no more are begun. The engine looks at
/// its flag every few milliseconds, so that there is hardly ever one; single steps inside the
/// engine, such as printing a number of 300,000 digits, take longer.
const MOST_STUCK: usize = 16;

/// Words of a script that wait to be heard. A script that talks faster waits.
const TOLD_ROOM: usize = 16;

/// What a script tells while it runs. The last is `Done`.
#[derive(Debug)]
pub(crate) enum Told {
    Asked(HostRequest),
    /// It has nothing to do until an answer comes, and has had this many.
    Waiting {
        received: u64,
    },
    Done(Result<String, ScriptError>),
}

/// A script that runs. Dropping this ends it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) told: tokio::sync::mpsc::Receiver<Told>,
    replies: mpsc::Sender<HostReply>,
    stop: Arc<AtomicBool>,
    life: Arc<Life>,
}

impl Running {
    /// Answers a request of the script.
    pub(crate) fn reply(&self, reply: HostReply) {
        // A script that has ended needs no answer.
        let _ = self.replies.send(reply);
    }

    /// What came of the script, if it ended before anybody looked. A machine that is busy, or a
    /// runtime that was held up, may come round to a script's last word only after its time.
    pub(crate) fn ended(&mut self) -> Option<Result<String, ScriptError>> {
        // What is unheard now, and not what a script adds meanwhile.
        for _ in 0..TOLD_ROOM {
            if let Told::Done(result) = self.told.try_recv().ok()? {
                return Some(result);
            }
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.life.give_up();
    }
}

/// Whether a script runs, has ended, or was given up on while it ran. Counts the last.
#[derive(Debug)]
struct Life {
    state: Mutex<LifeState>,
    stuck: Arc<AtomicUsize>,
}

#[derive(Debug, PartialEq, Eq)]
enum LifeState {
    Runs,
    Ended,
    GivenUp,
}

impl Life {
    fn give_up(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == LifeState::Runs {
            *state = LifeState::GivenUp;
            self.stuck.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == LifeState::GivenUp {
            self.stuck.fetch_sub(1, Ordering::AcqRel);
        }
        *state = LifeState::Ended;
    }
}

/// Tells that a script has ended, on every path of its thread.
struct End(Arc<Life>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// One script for a thread.
struct Order {
    job: Job,
    limits: Arc<ScriptLimits>,
    told: tokio::sync::mpsc::Sender<Told>,
    replies: mpsc::Receiver<HostReply>,
    stop: Arc<AtomicBool>,
    end: End,
}

/// The threads of one engine. Dropping it ends those that are idle; the others end with what
/// they run.
#[derive(Clone)]
pub(crate) struct Workers {
    idle: Arc<Mutex<Vec<mpsc::Sender<Order>>>>,
    limits: Arc<ScriptLimits>,
    stuck: Arc<AtomicUsize>,
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("stuck", &self.stuck.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

impl Workers {
    pub(crate) fn new(limits: Arc<ScriptLimits>) -> Self {
        Self {
            idle: Arc::default(),
            limits,
            stuck: Arc::default(),
        }
    }

    /// Whether so many ended scripts are still busy that no more should be begun.
    pub(crate) fn are_stuck(&self) -> bool {
        self.stuck.load(Ordering::Acquire) >= MOST_STUCK
    }

    #[cfg(test)]
    pub(crate) fn stuck(&self) -> usize {
        self.stuck.load(Ordering::Acquire)
    }

    #[cfg(test)]
    pub(crate) fn idle(&self) -> usize {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Begins a script on an idle thread, or on a new one.
    pub(crate) fn begin(&self, job: Job) -> Result<Running, ScriptError> {
        let (told, told_end) = tokio::sync::mpsc::channel(TOLD_ROOM);
        let (replies, replies_end) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let life = Arc::new(Life {
            state: Mutex::new(LifeState::Runs),
            stuck: Arc::clone(&self.stuck),
        });
        let running = Running {
            told: told_end,
            replies,
            stop: Arc::clone(&stop),
            life: Arc::clone(&life),
        };
        let mut order = Order {
            job,
            limits: Arc::clone(&self.limits),
            told,
            replies: replies_end,
            stop,
            end: End(life),
        };
        loop {
            let idle = self
                .idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop();
            let Some(idle) = idle else { break };
            match idle.send(order) {
                Ok(()) => return Ok(running),
                Err(mpsc::SendError(back)) => order = back,
            }
        }
        let idle = Arc::downgrade(&self.idle);
        std::thread::Builder::new()
            .name("yiem-script".to_owned())
            .stack_size(self.limits.stack_bytes() + STACK_ROOM)
            .spawn(move || work(order, &idle))
            .map_err(|e| {
                ScriptError::new(
                    ScriptErrorKind::Engine,
                    format!("no thread could be had for the script: {e}"),
                )
            })?;
        Ok(running)
    }
}

/// Runs one order after another, until nobody wants this thread.
fn work(first: Order, idle: &Weak<Mutex<Vec<mpsc::Sender<Order>>>>) {
    let limits = Arc::clone(&first.limits);
    let mut order = first;
    let mut ready = None;
    loop {
        run(order, ready.take());
        // The next script finds its sandbox made.
        ready = catch_unwind(|| Sandbox::new(&limits).ok()).ok().flatten();
        let (send, receive) = mpsc::channel();
        {
            let Some(idle) = idle.upgrade() else { return };
            let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() >= IDLE_THREADS {
                return;
            }
            idle.push(send);
        }
        match receive.recv() {
            Ok(next) => order = next,
            Err(_) => return,
        }
    }
}

fn run(order: Order, ready: Option<Sandbox>) {
    let Order {
        job,
        limits,
        told,
        replies,
        stop,
        end,
    } = order;
    let port = Rc::new(Port {
        told: told.clone(),
        replies,
        open: Cell::new(0),
        received: Cell::new(0),
        most_open: limits.open_requests,
        log_lines: Cell::new(limits.log_lines),
    });
    let mut sandbox = ready;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let made = match sandbox.take() {
            Some(sandbox) => sandbox,
            None => Sandbox::new(&limits)?,
        };
        sandbox.insert(made).run(&job, &limits, &stop, port)
    }));
    let result = result.unwrap_or_else(|_| {
        Err(ScriptError::new(
            ScriptErrorKind::Engine,
            "the script engine panicked; the call may have done part of its work",
        ))
    });
    drop(end);
    // Nobody may wait any more.
    let _ = told.blocking_send(Told::Done(result));
    let _ = catch_unwind(AssertUnwindSafe(|| drop(sandbox)));
}

struct Port {
    told: tokio::sync::mpsc::Sender<Told>,
    replies: mpsc::Receiver<HostReply>,
    open: Cell<usize>,
    received: Cell<u64>,
    most_open: usize,
    log_lines: Cell<usize>,
}

impl HostPort for Port {
    fn send(&self, request: HostRequest) -> Result<(), String> {
        match request {
            HostRequest::Log(_) => match self.log_lines.get() {
                0 => return Ok(()),
                left => self.log_lines.set(left - 1),
            },
            HostRequest::Progress(_) => {}
            HostRequest::CallTool { .. } | HostRequest::Fetch { .. } => {
                if self.open.get() >= self.most_open {
                    return Err(format!(
                        "at most {} requests may be open at once",
                        self.most_open
                    ));
                }
                self.open.set(self.open.get() + 1);
            }
        }
        self.told
            .blocking_send(Told::Asked(request))
            .map_err(|_| "the call is over".to_owned())
    }

    fn open(&self) -> usize {
        self.open.get()
    }

    fn receive(&self) -> Option<HostReply> {
        let reply = match self.replies.try_recv() {
            Ok(reply) => reply,
            Err(_) => {
                let received = self.received.get();
                self.told.blocking_send(Told::Waiting { received }).ok()?;
                self.replies.recv().ok()?
            }
        };
        self.open.set(self.open.get().saturating_sub(1));
        self.received.set(self.received.get() + 1);
        Some(reply)
    }
}

#[cfg(test)]
mod tests;
