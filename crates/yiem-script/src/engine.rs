//! Runs scripts: starts them, keeps their time, answers what they ask of their host.
//!
//! Knows: the limits on time, who may be asked for what, and how a call ends: by its result, by
//! a limit, by cancel, by being dropped. Does not know: files, tools' definitions.
//!
//! A script never runs on the async runtime's threads, and nothing here waits for a script's
//! thread: whatever a script does, the future of its call ends in time.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use yiem_core::{BoxFuture, CancelToken, Content, Env, JsonObject, ToolContext, ToolOutput};

use crate::error::{ScriptError, ScriptErrorKind};
use crate::limits::{ScriptGrants, ScriptLimits};
use crate::sandbox::{HostReply, HostRequest, Job, Task};
use crate::worker::{Running, Told, Workers};

/// How long to wait before looking again whether ended scripts have let go of their threads.
const STUCK_PAUSE: Duration = Duration::from_millis(5);

/// Runs the scripts of tools, each call in a sandbox of its own. Cheap to clone; clones share
/// their threads and limits.
///
/// A script sees its arguments and `host`, and nothing else: no files, network, process, clock,
/// timers or other modules, no code made from text. What `host` offers stands in
/// [`ScriptGrants`], what a call may use in [`ScriptLimits`] (T-7).
#[derive(Clone)]
pub struct ScriptEngine(Arc<Inner>);

struct Inner {
    env: Arc<dyn Env>,
    limits: Arc<ScriptLimits>,
    grants: ScriptGrants,
    workers: Workers,
    turn: Semaphore,
    #[cfg(feature = "fetch")]
    fetcher: Option<crate::fetch::Fetcher>,
}

impl fmt::Debug for ScriptEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptEngine")
            .field("limits", &self.0.limits)
            .field("grants", &self.0.grants)
            .field("workers", &self.0.workers)
            .finish_non_exhaustive()
    }
}

impl ScriptEngine {
    /// An engine with the default limits and grants.
    #[must_use]
    pub fn new(env: Arc<dyn Env>) -> Self {
        Self::with(env, ScriptLimits::default(), ScriptGrants::default())
    }

    /// An engine with these limits and grants. Starts no thread before the first script.
    #[must_use]
    pub fn with(env: Arc<dyn Env>, limits: ScriptLimits, grants: ScriptGrants) -> Self {
        let limits = Arc::new(limits);
        Self(Arc::new(Inner {
            env,
            workers: Workers::new(Arc::clone(&limits)),
            turn: Semaphore::new(limits.scripts.clamp(1, Semaphore::MAX_PERMITS)),
            #[cfg(feature = "fetch")]
            fetcher: grants.fetch.clone().map(crate::fetch::Fetcher::new),
            limits,
            grants,
        }))
    }

    /// What a call may use.
    #[must_use]
    pub fn limits(&self) -> &ScriptLimits {
        &self.0.limits
    }

    /// What a script may reach.
    #[must_use]
    pub fn grants(&self) -> &ScriptGrants {
        &self.0.grants
    }

    pub(crate) fn env(&self) -> &Arc<dyn Env> {
        &self.0.env
    }

    /// Does a task with a script and gives the JSON that comes of it.
    ///
    /// Dropping the future ends the script. `context` is the call that it belongs to: its
    /// progress, its cancel, its other tools; without one there are none.
    pub(crate) async fn run(
        &self,
        file: &Arc<str>,
        source: &Arc<str>,
        task: Task,
        context: Option<&ToolContext>,
    ) -> Result<Value, ScriptError> {
        let inner = &*self.0;
        let env: &Arc<dyn Env> = context.map_or(&inner.env, |c| &c.env);
        let cancel = context.map_or_else(CancelToken::new, |c| c.cancel.clone());
        let work = async {
            let Ok(_turn) = inner.turn.acquire().await else {
                return Err(ScriptError::new(
                    ScriptErrorKind::Engine,
                    "the script engine is closed",
                ));
            };
            while inner.workers.are_stuck() {
                env.sleep(STUCK_PAUSE).await;
            }
            let running = inner.workers.begin(Job {
                file: Arc::clone(file),
                source: Arc::clone(source),
                task,
                seed: seed(env.random()),
            })?;
            let call = Call {
                engine: inner,
                env,
                tool: context.map_or(file, |c| &c.tool_name),
                context,
                running,
            };
            call.drive().await
        };
        // The clock is asked before the script: one that never stops talking would keep it from
        // being asked at all.
        let text = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ScriptError::new(ScriptErrorKind::Cancelled, "the call was cancelled")),
            () = env.sleep(inner.limits.total) => Err(ScriptError::new(
                ScriptErrorKind::Time,
                format!("the script took longer than the {} that it may take", shown(inner.limits.total)),
            )),
            result = work => result,
        }?;
        crate::json::read(&text).map_err(|e| {
            ScriptError::new(
                ScriptErrorKind::Engine,
                format!("what the script gave could not be read as JSON: {e}"),
            )
        })
    }
}

/// A random number from 0 to 1 as a seed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number between 0 and 1 times 2^32 fits; a wrong one is a seed like any other"
)]
fn seed(random: f64) -> u32 {
    (random * 4_294_967_296.0) as u32
}

fn shown(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

/// One script that runs, with whoever it belongs to.
struct Call<'a> {
    engine: &'a Inner,
    env: &'a Arc<dyn Env>,
    tool: &'a Arc<str>,
    context: Option<&'a ToolContext>,
    running: Running,
}

impl Call<'_> {
    /// Until the script is done.
    async fn drive(mut self) -> Result<String, ScriptError> {
        let limit = self.engine.limits.running;
        let mut clock = Clock::started(self.env, limit);
        // Requests go out when the script has nothing else to do, so that its time and theirs are
        // never the same.
        let mut requests: Vec<BoxFuture<'_, HostReply>> = Vec::new();
        let mut answers = FuturesUnordered::new();
        let mut answered: u64 = 0;
        // Reports are delivered one after another; while one is, the script's next word waits.
        let mut report: Option<BoxFuture<'_, ()>> = None;
        let (engine, context) = (self.engine, self.context);
        loop {
            tokio::select! {
                biased;
                () = clock.up() => return self.running.ended().unwrap_or_else(|| Err(ScriptError::new(
                    ScriptErrorKind::Time,
                    format!("the script ran longer than the {} that it may run", shown(limit)),
                ))),
                () = until(&mut report) => {
                    report = None;
                    clock.go_on();
                }
                told = self.running.told.recv(), if report.is_none() => match told {
                    None => return Err(ScriptError::new(
                        ScriptErrorKind::Engine,
                        "the script's thread ended without a word",
                    )),
                    Some(Told::Done(result)) => return result,
                    Some(Told::Waiting { received }) => if received == answered {
                        clock.stop();
                        answers.extend(requests.drain(..));
                    },
                    Some(Told::Asked(request)) => match request {
                        HostRequest::Log(line) => self.log(&line),
                        HostRequest::Progress(json) => {
                            report = progress(engine, context, &json);
                            if report.is_some() {
                                clock.stop();
                            }
                        }
                        HostRequest::CallTool { id, payload } => {
                            requests.push(answer(id, call_tool(engine, context, payload)));
                        }
                        HostRequest::Fetch { id, payload } => {
                            requests.push(answer(id, fetch(engine, payload)));
                        }
                    },
                },
                Some(reply) = answers.next() => {
                    answered += 1;
                    self.running.reply(reply);
                    if report.is_none() {
                        clock.go_on();
                    }
                }
            }
        }
    }

    fn log(&self, line: &str) {
        if self.engine.grants.log {
            let line = crate::json::read(line).unwrap_or_default();
            tracing::info!(target: "yiem_script", tool = &**self.tool, "{}", line.as_str().unwrap_or_default());
        }
    }
}

/// The time that a script has run, which stands still while it waits for others.
struct Clock<'a> {
    env: &'a Arc<dyn Env>,
    left: Duration,
    going: Option<(Duration, BoxFuture<'static, ()>)>,
}

impl<'a> Clock<'a> {
    fn started(env: &'a Arc<dyn Env>, limit: Duration) -> Self {
        let mut clock = Self {
            env,
            left: limit,
            going: None,
        };
        clock.go_on();
        clock
    }

    fn go_on(&mut self) {
        if self.going.is_none() {
            self.going = Some((self.env.elapsed(), self.env.sleep(self.left)));
        }
    }

    fn stop(&mut self) {
        if let Some((since, _)) = self.going.take() {
            self.left = self
                .left
                .saturating_sub(self.env.elapsed().saturating_sub(since));
        }
    }

    /// Ends when the time is up; never while the clock stands still.
    async fn up(&mut self) {
        match &mut self.going {
            Some((_, timer)) => timer.await,
            None => std::future::pending().await,
        }
    }
}

/// Ends with the future, if there is one, else never.
async fn until(future: &mut Option<BoxFuture<'_, ()>>) {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

fn progress<'a>(
    engine: &Inner,
    context: Option<&'a ToolContext>,
    json: &str,
) -> Option<BoxFuture<'a, ()>> {
    let context = context.filter(|_| engine.grants.progress)?;
    let value = crate::json::read(json).ok()?;
    Some(Box::pin(context.progress(value)))
}

fn answer<'a>(
    id: u32,
    work: impl Future<Output = Result<Value, String>> + Send + 'a,
) -> BoxFuture<'a, HostReply> {
    Box::pin(async move {
        HostReply {
            id,
            result: work.await.map(|value| value.to_string()),
        }
    })
}

async fn call_tool(
    engine: &Inner,
    context: Option<&ToolContext>,
    payload: String,
) -> Result<Value, String> {
    if !engine.grants.call_tool {
        return Err("this tool may not call other tools".to_owned());
    }
    let Some(caller) = context.and_then(ToolContext::caller) else {
        return Err("other tools cannot be called from here".to_owned());
    };
    let mut request = object(&payload)?;
    let name = request
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let args = match request.remove("args") {
        None | Some(Value::Null) => JsonObject::new(),
        Some(Value::Object(args)) => args,
        Some(_) => return Err(format!("the arguments of {name} must be an object")),
    };
    match caller.call_tool(&name, args).await {
        Ok(output) => shown_output(&output),
        Err(error) => Err(error.message().to_owned()),
    }
}

/// A tool's result as a script sees it.
fn shown_output(output: &ToolOutput) -> Result<Value, String> {
    let content = serde_json::to_value(&output.content).map_err(|e| e.to_string())?;
    let text: Vec<String> = output.content.iter().map(Content::to_plain_text).collect();
    Ok(json!({
        "text": text.join("\n"),
        "content": content,
        "structured": output.structured,
        "details": output.details,
        "isError": output.is_error,
    }))
}

#[cfg(feature = "fetch")]
async fn fetch(engine: &Inner, payload: String) -> Result<Value, String> {
    match &engine.fetcher {
        Some(fetcher) => fetcher.fetch(object(&payload)?).await,
        None => Err("this tool may not fetch: no hosts are allowed".to_owned()),
    }
}

#[cfg(not(feature = "fetch"))]
async fn fetch(_: &Inner, _: String) -> Result<Value, String> {
    Err("this tool may not fetch: no hosts are allowed".to_owned())
}

fn object(payload: &str) -> Result<JsonObject, String> {
    match crate::json::read(payload) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("the request is no object".to_owned()),
        Err(e) => Err(format!("the request could not be read: {e}")),
    }
}

#[cfg(test)]
mod tests;
