//! A conversation as a text: what tools and model do, what a user does when, what comes of it.
//!
//! Knows: the words of a script and how it is played through the public `Agent` on a paused
//! clock. Does not know: what should come of it; the test says that.
//!
//! ```text
//! set sequential                       settings: sequential, terminate all, steering
//! set turns 3                          one-at-a-time, follow-ups all, interrupt, max-parallel 3,
//!                                      tool-calls 2, tokens 100, session-tokens 100, wall 5s,
//!                                      identical 3 6, retries 0, repairs 2, grace 1s
//! tool echo echo                       tools: echo, slow 2s "x", deaf 60s "x", fails "x",
//! tool a slow 2s "done" sequential     panics, never, terminates "x", updates 3 10ms; `asks` at
//!                                      the end: it needs approval
//! tool b calls a {"n":1}               a tool that calls another one; `tool b agent` is an agent
//! refuse a "not here"                  a hook that refuses a tool's calls
//! ask a "May it?" 5s                   a hook that asks a person, for so long
//! hook before-call hangs time 2        a hook that is slow 2s, fails "x", panics or hangs (each
//!                                      time without `time`): transform-context, before-model,
//!                                      before-call, after-call, stop-after-turn, next-turn, compact
//! sink turnEnd hangs                   the same of a sink at events of a kind, or at each; of a
//! journal fails "full" time 3          journal; of a required source with one tool `far`
//! source server slow 2s
//! want {"type":"integer"}              each `prompt:` asks for a value of that schema
//! model: say "Hel" "lo"                replies: say, think, call NAME {…}, raw NAME "…",
//! model: call echo {"value":"x"}       restart (what stands before it is void); with & stop length,
//! model: fail server "gone"            usage 10 5, after 2s, every 10ms, whole, fail KIND "x" 2s,
//!                                      break-off, hang, panic
//! user: hi                             what the user does, one after another
//! prompt: hi                           the same, waited for
//! at 1s: steer "and Rome?"             after the user's line: steer, follow-up, abort, clear,
//! at 2s: abort                         stop, allow, allow {…}, deny "no", drop (what is waited for)
//! continue:                            goes on from the history
//! ```

mod parse;
mod place;
mod play;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use yiem_agent::{AgentEvent, Outcome};
use yiem_core::{ChatRequest, History, Message};

pub use parse::ScriptError;

/// A conversation as a text; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    lines: Vec<String>,
}

/// What came of a scenario.
#[derive(Debug)]
#[non_exhaustive]
pub struct Played {
    /// Every event, run after run.
    pub events: Vec<AgentEvent>,
    /// The outcomes, in the order in which the runs ended.
    pub outcomes: Vec<Outcome>,
    /// What the model was asked.
    pub requests: Vec<ChatRequest>,
    /// What was said.
    pub history: History,
    /// What still waits in the queues, and what `stop` gave back.
    pub undelivered: Vec<std::sync::Arc<Message>>,
    /// What was sent, in order, and taken in by the agent.
    pub sent: Vec<String>,
    /// How many runs nobody waits for any more, since their `prompt:` was dropped.
    pub dropped: usize,
    /// What was wrong with requests.
    pub breaches: Vec<String>,
    /// Sentences about what could not be done, such as a `continue:` with nothing to go on from.
    pub refused: Vec<String>,
    /// Whether everything came to an end within an hour of the script's time.
    pub ended: bool,
    /// How long it took on the script's clock.
    pub took: Duration,
}

impl Scenario {
    /// The lines, without comments and blank ones.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// A scenario of these lines, checked when it is played.
    #[must_use]
    pub fn of_lines(lines: Vec<String>) -> Self {
        Self { lines }
    }

    /// Plays it. Needs a tokio runtime whose clock is paused.
    ///
    /// # Errors
    /// A line that is none of the script's.
    pub async fn play(&self) -> Result<Played, ScriptError> {
        play::play(&parse::parse(&self.lines)?).await
    }
}

impl FromStr for Scenario {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let lines: Vec<String> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect();
        parse::parse(&lines)?;
        Ok(Self { lines })
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

impl Played {
    /// Everything as one text: events, outcomes, the history in letters (`u a t`), how often the
    /// model was asked, what was left over.
    #[must_use]
    pub fn transcript(&self) -> String {
        let mut text = crate::transcript::of_events(&self.events);
        for outcome in &self.outcomes {
            text.push_str(&crate::transcript::outcome_line(outcome));
            text.push('\n');
        }
        for refused in &self.refused {
            text.push_str(&format!("refused: {refused}\n"));
        }
        text.push_str(&format!("history {}\n", self.letters()));
        text.push_str(&format!("model asked {} times\n", self.requests.len()));
        for message in &self.undelivered {
            text.push_str(&format!(
                "left over: {}\n",
                crate::transcript::message_line(message)
            ));
        }
        text
    }

    /// The history in letters: `u` user, `a` assistant, `t` tool result, `c` custom; `!` marks a
    /// broken or failed one.
    #[must_use]
    pub fn letters(&self) -> String {
        let letters: Vec<String> = self.history.iter().map(|m| letter(m)).collect();
        letters.join(" ")
    }
}

fn letter(message: &Message) -> String {
    match message {
        Message::User(_) => "u".to_owned(),
        Message::Assistant(m) if m.is_broken() => "a!".to_owned(),
        Message::Assistant(_) => "a".to_owned(),
        Message::ToolResult(m) if m.is_error => "t!".to_owned(),
        Message::ToolResult(_) => "t".to_owned(),
        Message::Custom(_) => "c".to_owned(),
    }
}
