//! The words of a script.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use yiem_agent::{
    AgentConfig, HookPoint, QueueMode, SteeringPoint, TerminatePolicy, ToolExecution,
};
use yiem_core::{ModelErrorKind, StopReason};

use super::place::{Does, Place};
use crate::model::Reply;
use crate::tool::{self, TestTool};

/// A line that is none of the script's.
#[derive(Debug)]
pub struct ScriptError {
    line: String,
    problem: String,
}

impl std::fmt::Display for ScriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.line, self.problem)
    }
}

impl std::error::Error for ScriptError {}

/// What is wrong with the script as a whole.
pub(super) fn problem(problem: &str) -> ScriptError {
    ScriptError {
        line: "the script".to_owned(),
        problem: problem.to_owned(),
    }
}

/// A script, read.
pub(super) struct Script {
    pub(super) config: AgentConfig,
    pub(super) tools: Vec<ScriptTool>,
    pub(super) refusals: Vec<(String, String, bool)>,
    pub(super) questions: Vec<Asked>,
    pub(super) places: Vec<(Where, Arc<Place>)>,
    pub(super) wanted: Option<Value>,
    pub(super) replies: Vec<Reply>,
    pub(super) steps: Vec<UserStep>,
}

/// A tool of the script.
pub(super) enum ScriptTool {
    Own(TestTool),
    /// An agent of the same model that has the tools before it.
    Agent(String),
}

/// A question to a person about the calls of a tool.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) question: String,
    pub(super) within: Option<Duration>,
}

/// Where something is done.
pub(super) enum Where {
    Hook(HookPoint),
    /// A sink, at events of that kind alone.
    Sink(Option<String>),
    Journal,
    /// A required source of that name, with one tool `far`.
    Source(String),
}

/// What a user does, and what happens while the agent works on it.
pub(super) struct UserStep {
    pub(super) what: UserAct,
    pub(super) then: Vec<(Duration, Act)>,
}

pub(super) enum UserAct {
    Say(String),
    /// The same, waited for.
    Prompt(String),
    Continue,
}

#[derive(Clone)]
pub(super) enum Act {
    Steer(String),
    FollowUp(String),
    Abort,
    Clear,
    Stop,
    /// Lets go of what is waited for.
    Drop,
    /// Says yes, with these arguments if any.
    Allow(Option<Value>),
    Deny(String),
}

enum Token {
    Word(String),
    Text(String),
    Json(Value),
}

pub(super) fn parse(lines: &[String]) -> Result<Script, ScriptError> {
    let mut script = Script {
        config: AgentConfig::default(),
        tools: Vec::new(),
        refusals: Vec::new(),
        questions: Vec::new(),
        places: Vec::new(),
        wanted: None,
        replies: Vec::new(),
        steps: Vec::new(),
    };
    for line in lines {
        read_line(&mut script, line).map_err(|problem| ScriptError {
            line: line.clone(),
            problem,
        })?;
    }
    Ok(script)
}

fn read_line(script: &mut Script, line: &str) -> Result<(), String> {
    let what = if let Some(text) = line.strip_prefix("user:") {
        Some(UserAct::Say(text.trim().to_owned()))
    } else if let Some(text) = line.strip_prefix("prompt:") {
        Some(UserAct::Prompt(text.trim().to_owned()))
    } else {
        (line == "continue:").then_some(UserAct::Continue)
    };
    if let Some(what) = what {
        let then = Vec::new();
        script.steps.push(UserStep { what, then });
        return Ok(());
    }
    if let Some(reply) = line.strip_prefix("model:") {
        script.replies.push(reply_of(reply)?);
        return Ok(());
    }
    let mut words = Words::new(line)?;
    match words.word()?.as_str() {
        "set" => setting(&mut script.config, &mut words),
        "tool" => {
            script.tools.push(tool_of(&mut words)?);
            Ok(())
        }
        "refuse" => {
            let (name, reason) = (words.word()?, words.text()?);
            script
                .refusals
                .push((name, reason, words.flag("terminate")));
            Ok(())
        }
        "ask" => {
            script.questions.push(Asked {
                tool: words.word()?,
                question: words.text()?,
                within: words.next_word().map(|w| duration(&w)).transpose()?,
            });
            Ok(())
        }
        "hook" => {
            let point = point(&words.word()?)?;
            let place = place_of(&mut words)?;
            script.places.push((Where::Hook(point), place));
            Ok(())
        }
        "sink" => {
            let is_event = |w: &str| !["slow", "panics", "hangs"].contains(&w);
            let event = words.next_word_if(is_event);
            let place = place_of(&mut words)?;
            script.places.push((Where::Sink(event), place));
            Ok(())
        }
        "journal" => {
            let place = place_of(&mut words)?;
            script.places.push((Where::Journal, place));
            Ok(())
        }
        "source" => {
            let name = words.word()?;
            let place = place_of(&mut words)?;
            script.places.push((Where::Source(name), place));
            Ok(())
        }
        "want" => {
            script.wanted = Some(words.json()?);
            Ok(())
        }
        "at" => {
            let when = words.word()?;
            let when = duration(when.trim_end_matches(':'))?;
            let act = match words.word()?.as_str() {
                "steer" => Act::Steer(words.text()?),
                "follow-up" => Act::FollowUp(words.text()?),
                "abort" => Act::Abort,
                "clear" => Act::Clear,
                "stop" => Act::Stop,
                "drop" => Act::Drop,
                "allow" => Act::Allow(words.next_json()),
                "deny" => Act::Deny(words.text()?),
                other => return Err(format!("nobody can {other}")),
            };
            let step = script
                .steps
                .last_mut()
                .ok_or("`at` comes before any `user:`")?;
            step.then.push((when, act));
            Ok(())
        }
        other => Err(format!("no line begins with {other}")),
    }
}

fn point(word: &str) -> Result<HookPoint, String> {
    Ok(match word {
        "transform-context" => HookPoint::TransformContext,
        "before-model" => HookPoint::BeforeModelCall,
        "before-call" => HookPoint::BeforeToolCall,
        "after-call" => HookPoint::AfterToolCall,
        "stop-after-turn" => HookPoint::ShouldStopAfterTurn,
        "next-turn" => HookPoint::PrepareNextTurn,
        "compact" => HookPoint::Compact,
        other => return Err(format!("no hook is asked at {other}")),
    })
}

fn place_of(words: &mut Words) -> Result<Arc<Place>, String> {
    let does = match words.word()?.as_str() {
        "slow" => Does::Slow(duration(&words.word()?)?),
        "fails" => Does::Fails(words.text()?),
        "panics" => Does::Panics,
        "hangs" => Does::Hangs,
        other => return Err(format!("it cannot {other}")),
    };
    let time = if words.flag("time") {
        Some(words.number()?)
    } else {
        None
    };
    Ok(Arc::new(Place::new(does, time)))
}

fn setting(config: &mut AgentConfig, words: &mut Words) -> Result<(), String> {
    match words.word()?.as_str() {
        "sequential" => config.tool_execution = ToolExecution::Sequential,
        "terminate" => {
            config.terminate = match words.word()?.as_str() {
                "all" => TerminatePolicy::All,
                _ => TerminatePolicy::Any,
            }
        }
        "steering" => config.steering_mode = mode(&words.word()?),
        "follow-ups" => config.follow_up_mode = mode(&words.word()?),
        "interrupt" => config.steering_point = SteeringPoint::BetweenCalls,
        "max-parallel" => config.max_parallel = words.number()?,
        "turns" => config.limits.turns = words.number()?,
        "tool-calls" => config.limits.tool_calls = Some(words.number()?),
        "tokens" => config.limits.tokens = Some(words.number()?),
        "session-tokens" => config.limits.session_tokens = Some(words.number()?),
        "repairs" => config.output_repairs = words.number()?,
        "identical" => {
            let limits = &mut config.limits;
            limits.identical_calls_warn = words.number()?;
            limits.identical_calls_stop = words.number()?;
        }
        "wall" => config.limits.wall_time = Some(duration(&words.word()?)?),
        "retries" => config.retry.retries = words.number()?,
        "grace" => config.grace = duration(&words.word()?)?,
        "tool-time" => config.tool_time = duration(&words.word()?)?,
        "result-bytes" => config.result_bytes = words.number()?,
        other => return Err(format!("there is no setting {other}")),
    }
    Ok(())
}

fn mode(word: &str) -> QueueMode {
    if word == "all" {
        QueueMode::All
    } else {
        QueueMode::OneAtATime
    }
}

fn tool_of(words: &mut Words) -> Result<ScriptTool, String> {
    let name = words.word()?;
    if words.flag("agent") {
        return Ok(ScriptTool::Agent(name));
    }
    let made = match words.word()?.as_str() {
        "echo" => tool::echo().define(|d| d.name.clone_from(&name)),
        "slow" => tool::slow(name, duration(&words.word()?)?, words.text()?),
        "deaf" => tool::deaf(name, duration(&words.word()?)?, words.text()?),
        "fails" => tool::failing(name, words.text()?),
        "panics" => tool::panicking(name),
        "never" => tool::never(name),
        "terminates" => tool::terminating(name, words.text()?),
        "calls" => tool::calling(name, words.word()?, words.json()?),
        "updates" => tool::updating(name, words.number()?, duration(&words.word()?)?),
        other => return Err(format!("no tool can {other}")),
    };
    let made = if words.flag("sequential") {
        made.sequential()
    } else {
        made
    };
    let asks = words.flag("asks");
    Ok(ScriptTool::Own(made.define(|d| d.needs_approval = asks)))
}

fn reply_of(text: &str) -> Result<Reply, String> {
    let mut reply = Reply::default();
    let mut words = Words::new(text)?;
    while let Some(word) = words.next_word() {
        reply = match word.as_str() {
            "&" => reply,
            "say" => {
                let mut pieces = vec![words.text()?];
                while let Some(piece) = words.next_text() {
                    pieces.push(piece);
                }
                reply.and_pieces(pieces)
            }
            "think" => reply.and_think(words.text()?),
            "restart" => reply.and_restart(),
            "call" => {
                let name = words.word()?;
                let args = words.json()?;
                match words.next_word_if(|w| w.starts_with("id=")) {
                    Some(id) => reply.and_call_with_id(&id[3..], name, args),
                    None => reply.and_call(name, args),
                }
            }
            "raw" => {
                let name = words.word()?;
                reply.and_call_raw("", name, words.text()?)
            }
            "stop" => reply.stop(StopReason::from(words.word()?.as_str())),
            "usage" => {
                let (input, output) = (words.number()?, words.number()?);
                reply.usage(input, output)
            }
            "after" => reply.after(duration(&words.word()?)?),
            "every" => reply.every(duration(&words.word()?)?),
            "whole" => reply.whole(),
            "fail" => {
                let kind = kind(&words.word()?)?;
                let reply = reply.then_fail(kind, words.text()?);
                match words.next_word_if(|w| duration(w).is_ok()) {
                    Some(wait) => reply.retry_after(duration(&wait)?),
                    None => reply,
                }
            }
            "break-off" => reply.then_break_off(),
            "hang" => reply.then_hang(),
            "panic" => reply.then_panic(),
            other => return Err(format!("a model cannot {other}")),
        };
    }
    Ok(reply)
}

fn kind(word: &str) -> Result<ModelErrorKind, String> {
    serde_json::from_value(Value::String(word.to_owned()))
        .map_err(|_| format!("there is no kind of failure {word}"))
}

fn duration(word: &str) -> Result<Duration, String> {
    let number = |digits: &str| {
        digits
            .parse::<u64>()
            .map_err(|_| format!("{word} is no time; write 2s or 500ms"))
    };
    if let Some(ms) = word.strip_suffix("ms") {
        return number(ms).map(Duration::from_millis);
    }
    let seconds = word
        .strip_suffix('s')
        .ok_or(format!("{word} is no time; write 2s or 500ms"))?;
    number(seconds).map(Duration::from_secs)
}

/// The words of a line: bare ones, texts in quotes, JSON objects.
struct Words(std::iter::Peekable<std::vec::IntoIter<Token>>);

impl Words {
    fn new(line: &str) -> Result<Self, String> {
        let mut tokens = Vec::new();
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            if rest.starts_with(['"', '{']) {
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                let value = values
                    .next()
                    .ok_or("a value is missing")?
                    .map_err(|e| format!("a value cannot be read: {e}"))?;
                let end = values.byte_offset();
                tokens.push(match value {
                    Value::String(text) => Token::Text(text),
                    other => Token::Json(other),
                });
                rest = rest[end..].trim_start();
            } else {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..end].to_owned()));
                rest = rest[end..].trim_start();
            }
        }
        Ok(Self(tokens.into_iter().peekable()))
    }

    fn next_word(&mut self) -> Option<String> {
        self.next_word_if(|_| true)
    }

    fn next_word_if(&mut self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let token = self
            .0
            .next_if(|t| matches!(t, Token::Word(w) if wanted(w)))?;
        match token {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    fn next_text(&mut self) -> Option<String> {
        match self.0.next_if(|t| matches!(t, Token::Text(_)))? {
            Token::Text(text) => Some(text),
            _ => None,
        }
    }

    fn word(&mut self) -> Result<String, String> {
        self.next_word().ok_or("a word is missing".to_owned())
    }

    fn text(&mut self) -> Result<String, String> {
        self.next_text()
            .ok_or("a text in quotes is missing".to_owned())
    }

    fn next_json(&mut self) -> Option<Value> {
        match self.0.next_if(|t| matches!(t, Token::Json(_)))? {
            Token::Json(value) => Some(value),
            _ => None,
        }
    }

    fn json(&mut self) -> Result<Value, String> {
        self.next_json()
            .ok_or("a JSON object is missing".to_owned())
    }

    fn number<N: std::str::FromStr>(&mut self) -> Result<N, String> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("{word} is no number"))
    }

    fn flag(&mut self, word: &str) -> bool {
        self.next_word_if(|w| w == word).is_some()
    }
}
