//! One QuickJS runtime: what a script can see, and how one call of it is driven.
//!
//! Knows: the engine, the prelude, limits on memory and stack, the flag that ends a run.
//! Does not know: threads, clocks, async, tools. Requests to the host go out through a
//! [`HostPort`], answers come in through the same.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rquickjs::context::intrinsic::{
    Date, Eval, Json, MapSet, Promise as Promises, RegExp, RegExpCompiler, TypedArrays,
};
use rquickjs::module::Evaluated;
use rquickjs::promise::PromiseState;
use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Exception, Function, Module, Object, Persistent,
    Promise, Runtime, Value,
};

use crate::error::{ScriptError, ScriptErrorKind, ScriptPlace};
use crate::limits::ScriptLimits;

const PRELUDE: &str = include_str!("sandbox/prelude.js");

/// The file name of the prelude in stacks; such frames are not a script's own.
const PRELUDE_NAME: &str = "<host>";

// No Proxy, WeakRef, performance, DOMException: nothing that a tool needs, and each a way to
// deceive the bounds of the prelude or to tell the time.
type Intrinsics = (
    Date,
    Eval,
    RegExpCompiler,
    RegExp,
    Json,
    MapSet,
    TypedArrays,
    Promises,
);

/// What a script asks of its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostRequest {
    /// A line for the log, as a JSON text.
    Log(String),
    /// A report of progress, as JSON.
    Progress(String),
    /// Another tool: JSON with `name` and `args`.
    CallTool { id: u32, payload: String },
    /// An HTTP request: JSON with `url`, `method`, `headers`, `body`.
    Fetch { id: u32, payload: String },
}

/// The answer to a request with an id: JSON, or the text of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostReply {
    pub(crate) id: u32,
    pub(crate) result: Result<String, String>,
}

/// The way from a running script to its host.
pub(crate) trait HostPort {
    /// Takes a request; may wait. The error is thrown into the script.
    fn send(&self, request: HostRequest) -> Result<(), String>;

    /// How many requests with an id are not answered yet.
    fn open(&self) -> usize;

    /// Waits for the next answer; nothing when the call is over.
    fn receive(&self) -> Option<HostReply>;
}

/// What is to be done with a script.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The file's name, for places in errors.
    pub(crate) file: Arc<str>,
    /// The text of the module.
    pub(crate) source: Arc<str>,
    /// What to do with it.
    pub(crate) task: Task,
    /// The seed of `Math.random`.
    pub(crate) seed: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Only reads the module; runs nothing.
    Parse,
    /// Reads and runs the module: gives JSON of `[tool, [names of its functions]]`.
    Describe,
    /// Calls an export with arguments that are JSON: gives the JSON of its result. With
    /// `changes`, a function that returns nothing gives its arguments.
    Call {
        function: &'static str,
        args: String,
        changes: bool,
    },
}

/// A fresh runtime with the prelude and nothing of any script in it. Serves one job.
pub(crate) struct Sandbox {
    // Before the runtime that it is of: it has to go first.
    prelude: Option<Persistent<Object<'static>>>,
    link: Rc<Link>,
    context: Context,
    runtime: Runtime,
}

/// The job that a sandbox serves, for the functions that it was given before it had one.
#[derive(Default)]
struct Link {
    port: RefCell<Option<Rc<dyn HostPort>>>,
    stop: RefCell<Arc<AtomicBool>>,
}

impl Link {
    fn send(&self, kind: &str, id: u32, payload: String) -> Result<(), String> {
        let request = match kind {
            "log" => HostRequest::Log(payload),
            "progress" => HostRequest::Progress(payload),
            "callTool" => HostRequest::CallTool { id, payload },
            _ => HostRequest::Fetch { id, payload },
        };
        let port = self.port.borrow().clone();
        port.map_or_else(
            || Err("the call is over".to_owned()),
            |port| port.send(request),
        )
    }

    fn is_over(&self) -> bool {
        self.stop.borrow().load(Ordering::Relaxed)
    }
}

impl Sandbox {
    /// Makes one. To be called on the thread that will use it, no deeper in its stack.
    pub(crate) fn new(limits: &ScriptLimits) -> Result<Self, ScriptError> {
        let runtime = Runtime::new().map_err(|e| engine_failed(&e))?;
        runtime.set_max_stack_size(limits.stack_bytes());
        let context = Context::custom::<Intrinsics>(&runtime).map_err(|e| engine_failed(&e))?;
        let link = Rc::new(Link::default());
        let prelude = context.with(|ctx| {
            let prelude = prelude(&ctx, &link, limits).catch(&ctx);
            prelude
                .map(|prelude| Persistent::save(&ctx, prelude))
                .map_err(|e| engine_failed(&e))
        })?;
        Ok(Self {
            prelude: Some(prelude),
            link,
            context,
            runtime,
        })
    }

    /// Does the job, and gives JSON. Ends soon after `stop` is set. To be dropped afterwards; that
    /// takes its time, which nobody who waits for the result has to wait for.
    pub(crate) fn run(
        &mut self,
        job: &Job,
        limits: &ScriptLimits,
        stop: &Arc<AtomicBool>,
        port: Rc<dyn HostPort>,
    ) -> Result<String, ScriptError> {
        self.runtime.set_memory_limit(limits.memory_bytes());
        let flag = Arc::clone(stop);
        self.runtime
            .set_interrupt_handler(Some(Box::new(move || flag.load(Ordering::Relaxed))));
        self.link.port.replace(Some(Rc::clone(&port)));
        self.link.stop.replace(Arc::clone(stop));
        let Some(prelude) = self.prelude.take() else {
            return Err(engine_failed(&"it has served a job already"));
        };
        let result = self.context.with(|ctx| {
            let prelude = prelude.restore(&ctx).map_err(|e| engine_failed(&e))?;
            let run = Run {
                ctx: ctx.clone(),
                job,
                limits,
                stop,
                port,
            };
            run.start(&prelude)
        });
        self.link.port.take();
        if stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        result
    }
}

/// Sets up the prelude and gives its functions.
fn prelude<'js>(
    ctx: &Ctx<'js>,
    link: &Rc<Link>,
    limits: &ScriptLimits,
) -> rquickjs::Result<Object<'js>> {
    let mut options = rquickjs::context::EvalOptions::default();
    options.filename = Some(PRELUDE_NAME.to_owned());
    let make: Function<'js> = ctx.eval_with_options(PRELUDE, options)?;
    let sender = Rc::clone(link);
    let send = Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, kind: String, id: u32, payload: String| {
            let sent = sender.send(&kind, id, payload);
            sent.map_err(|text| Exception::throw_type(&ctx, &text))
        },
    )?;
    let link = Rc::clone(link);
    let expired = Function::new(ctx.clone(), move |ctx: Ctx<'js>| {
        if link.is_over() {
            return Err(Exception::throw_message(&ctx, "the call is over"));
        }
        Ok(())
    })?;
    make.call((send, expired, limits.output as f64))
}

fn stopped() -> ScriptError {
    ScriptError::new(ScriptErrorKind::Cancelled, "the script was stopped")
}

fn engine_failed(error: &dyn std::fmt::Display) -> ScriptError {
    ScriptError::new(
        ScriptErrorKind::Engine,
        format!("the script engine could not be made ready: {error}"),
    )
}

struct Run<'a, 'js> {
    ctx: Ctx<'js>,
    job: &'a Job,
    limits: &'a ScriptLimits,
    stop: &'a Arc<AtomicBool>,
    port: Rc<dyn HostPort>,
}

impl<'js> Run<'_, 'js> {
    fn start(self, prelude: &Object<'js>) -> Result<String, ScriptError> {
        if let Task::Parse = self.job.task {
            self.declare(None)?;
            return Ok("null".to_owned());
        }
        let seed: Function<'js> = self.explained(prelude.get("seed"), prelude)?;
        self.explained(seed.call::<_, ()>((self.job.seed,)), prelude)?;
        let (module, ready) = {
            let declared = self.declare(Some(prelude))?;
            self.explained(declared.eval(), prelude)?
        };
        self.settle(&ready, prelude, "the module's top level")?;
        match &self.job.task {
            Task::Parse => Ok("null".to_owned()),
            Task::Describe => self.describe(&module, prelude),
            Task::Call {
                function,
                args,
                changes,
            } => {
                let f: Value<'js> = self.explained(module.get(*function), prelude)?;
                let call: Function<'js> = self.explained(prelude.get("call"), prelude)?;
                let promise: Promise<'js> =
                    self.explained(call.call((f, args.as_str(), *changes)), prelude)?;
                let result = self.settle(&promise, prelude, function)?;
                self.text(result, prelude)
            }
        }
    }

    fn declare(&self, prelude: Option<&Object<'js>>) -> Result<Module<'js>, ScriptError> {
        let declared = Module::declare(
            self.ctx.clone(),
            self.job.file.as_bytes(),
            self.job.source.as_bytes(),
        );
        declared.map_err(|error| {
            let mut failed = match (error, prelude) {
                (rquickjs::Error::InvalidString(nul), _) => {
                    let place = place_of_offset(&self.job.source, nul.nul_position());
                    ScriptError::new(
                        ScriptErrorKind::Syntax,
                        "a NUL character cannot stand in a script",
                    )
                    .at(Some(self.placed(place)))
                }
                (error, Some(prelude)) => self.explain(error, prelude),
                (error, None) => self.explain_plain(error),
            };
            if failed.kind == ScriptErrorKind::Thrown {
                failed.kind = ScriptErrorKind::Syntax;
                failed.message = failed.message.replacen("SyntaxError: ", "", 1);
            }
            failed
        })
    }

    fn describe(
        &self,
        module: &Module<'js, Evaluated>,
        prelude: &Object<'js>,
    ) -> Result<String, ScriptError> {
        let tool: Value<'js> = self.explained(module.get("tool"), prelude)?;
        if tool.is_undefined() {
            return Err(ScriptError::new(
                ScriptErrorKind::Module,
                "the file has no `export const tool = { name, label, description, inputSchema }`",
            ));
        }
        let json: Function<'js> = self.explained(prelude.get("json"), prelude)?;
        let tool: Value<'js> = self.explained(json.call((tool,)), prelude)?;
        let tool = self.text(tool, prelude)?;
        let names: Function<'js> = self.explained(prelude.get("functions"), prelude)?;
        let module = self.explained(module.namespace(), prelude)?;
        let names: Value<'js> = self.explained(names.call((module,)), prelude)?;
        let names = self.text(names, prelude)?;
        Ok(format!("[{tool},{names}]"))
    }

    /// Runs what is to be run until the promise settles, answering the script's requests.
    fn settle(
        &self,
        promise: &Promise<'js>,
        prelude: &Object<'js>,
        what: &str,
    ) -> Result<Value<'js>, ScriptError> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(stopped());
            }
            if promise.state() != PromiseState::Pending {
                return match promise.result::<Value<'js>>() {
                    Some(result) => self.explained(result, prelude),
                    None => Err(stopped()),
                };
            }
            if self.ctx.execute_pending_job() {
                continue;
            }
            if self.port.open() == 0 {
                return Err(ScriptError::new(
                    ScriptErrorKind::NeverSettles,
                    format!(
                        "{what} waits for a promise that nothing will settle, or that ran out of memory"
                    ),
                ));
            }
            let Some(reply) = self.port.receive() else {
                return Err(stopped());
            };
            let settle: Function<'js> = self.explained(prelude.get("settle"), prelude)?;
            let (ok, payload) = match reply.result {
                Ok(payload) => (true, payload),
                Err(text) => (false, text),
            };
            self.explained(settle.call::<_, ()>((reply.id, ok, payload)), prelude)?;
        }
    }

    fn text(&self, value: Value<'js>, prelude: &Object<'js>) -> Result<String, ScriptError> {
        self.explained(value.get::<String>(), prelude)
    }

    fn explained<T>(
        &self,
        result: rquickjs::Result<T>,
        prelude: &Object<'js>,
    ) -> Result<T, ScriptError> {
        result.map_err(|error| self.explain(error, prelude))
    }

    /// What a thrown value says, read with care: its getters may be the script's own.
    fn explain(&self, error: rquickjs::Error, prelude: &Object<'js>) -> ScriptError {
        if !matches!(error, rquickjs::Error::Exception) {
            return self.explain_plain(error);
        }
        let thrown = self.ctx.catch();
        if self.stop.load(Ordering::Relaxed) {
            return stopped();
        }
        // Where there is not even room for an error, the engine throws null.
        if thrown.is_null() {
            let mut error = self.thrown("out of memory".to_owned(), "");
            error.message.push_str(", or threw null");
            return error;
        }
        let explained = prelude
            .get("explain")
            .and_then(|explain: Function<'js>| explain.call::<_, Vec<String>>((thrown.clone(),)));
        match explained {
            Ok(parts) => {
                let message = parts.first().cloned().unwrap_or_default();
                let stack = parts.get(1).cloned().unwrap_or_default();
                self.thrown(message, &stack)
            }
            Err(_) => {
                let _ = self.ctx.catch();
                self.thrown(String::new(), "")
            }
        }
    }

    /// The same before there is a prelude: the thrown value is the engine's own.
    fn explain_plain(&self, error: rquickjs::Error) -> ScriptError {
        match CaughtError::from_error(&self.ctx, error) {
            CaughtError::Exception(e) => self.thrown(
                e.message().unwrap_or_default(),
                &e.stack().unwrap_or_default(),
            ),
            CaughtError::Value(_) => self.thrown(String::new(), ""),
            CaughtError::Error(rquickjs::Error::Allocation) => {
                self.thrown("out of memory".to_owned(), "")
            }
            CaughtError::Error(e) => ScriptError::new(
                ScriptErrorKind::Engine,
                format!("the script engine failed: {e}"),
            ),
        }
    }

    fn thrown(&self, message: String, stack: &str) -> ScriptError {
        let place = self.place_in(stack);
        let engines_own = match message.split_once(": ") {
            Some(("InternalError" | "RangeError" | "Error", rest)) => rest,
            _ => &message,
        };
        let (kind, message) = if engines_own == "out of memory" {
            let mib = self.limits.memory_bytes() as f64 / f64::from(1 << 20);
            (
                ScriptErrorKind::Memory,
                format!("the script needs more memory than the {mib:.0} MiB that it may use"),
            )
        } else if engines_own == "Maximum call stack size exceeded" {
            (
                ScriptErrorKind::Stack,
                "the script calls itself too deep".to_owned(),
            )
        } else if message.starts_with("RangeError: ") && message.ends_with(" are allowed") {
            (ScriptErrorKind::Output, engines_own.to_owned())
        } else if message.is_empty() {
            (
                ScriptErrorKind::Thrown,
                "the script threw an error without a text".to_owned(),
            )
        } else {
            (ScriptErrorKind::Thrown, with_hint(message))
        };
        ScriptError::new(kind, message).at(place)
    }

    /// The first place in a stack that is in the script's own file.
    fn place_in(&self, stack: &str) -> Option<ScriptPlace> {
        stack.lines().find_map(|frame| {
            let at = frame.rfind(&format!("{}:", self.job.file))?;
            let rest = &frame[at + self.job.file.len() + 1..];
            let mut numbers = rest.trim_end_matches(')').splitn(2, ':');
            let line = numbers.next()?.parse().ok()?;
            let column = numbers.next()?.parse().ok()?;
            Some(self.placed((line, column)))
        })
    }

    fn placed(&self, (line, column): (u32, u32)) -> ScriptPlace {
        ScriptPlace {
            file: self.job.file.to_string(),
            line,
            column,
        }
    }
}

/// The line and column of a byte.
fn place_of_offset(text: &str, offset: usize) -> (u32, u32) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    (
        u32::try_from(line).unwrap_or(u32::MAX),
        u32::try_from(column).unwrap_or(u32::MAX),
    )
}

/// Says what to use in place of a global that browsers or Node have and a tool has not.
fn with_hint(message: String) -> String {
    const HINTS: &[(&str, &str)] = &[
        (
            "fetch",
            "use `await host.fetch(url)`, if the tool was granted hosts",
        ),
        (
            "require",
            "a tool stands alone and cannot load other modules",
        ),
        (
            "process",
            "a tool cannot see the process or its environment",
        ),
        ("Deno", "a tool cannot see the process or its environment"),
        ("setTimeout", "a tool has no clock and no timers"),
        ("setInterval", "a tool has no clock and no timers"),
        ("performance", "a tool has no clock"),
        ("WebAssembly", "a tool is JavaScript alone"),
        ("Proxy", "a tool has no Proxy"),
        (
            "XMLHttpRequest",
            "use `await host.fetch(url)`, if the tool was granted hosts",
        ),
    ];
    if message.starts_with("ReferenceError: could not load module ") {
        return format!("{message}: a tool stands alone and cannot load other modules");
    }
    let Some(subject) = message
        .strip_prefix("ReferenceError: ")
        .and_then(|rest| rest.strip_suffix(" is not defined"))
    else {
        return message;
    };
    match HINTS
        .iter()
        .find(|(name, _)| *name == subject.trim_matches('\''))
    {
        Some((_, hint)) => format!("{message}: {hint}"),
        None => message,
    }
}

#[cfg(test)]
mod tests;
