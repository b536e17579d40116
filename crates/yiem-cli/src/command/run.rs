//! `yiem run`: one question, one answer.
//!
//! Knows: when the answer is streamed, and what ends the run. Does not know: how it is drawn.

use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use yiem::{AgentEvent, ApprovalAnswer, EventKind, Outcome, SystemEnv};

use crate::args::{RunArgs, Shared};
use crate::conversation::{Conversation, verdict};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::screen::{Progress, Show, ShowConfig, Style, is_dumb, terminal_width};
use crate::sources;
use crate::watch::Watch;

/// How long the agent has to let go of its servers at the end.
const PARTING: Duration = Duration::from_secs(5);

pub(crate) async fn run(args: &RunArgs, shared: &Shared) -> Result<(), Failure> {
    let prompt = prompt(&args.prompt)?;
    let mut interrupts = Interrupts::listen()?;
    let mut conversation = Conversation::begin(shared, None)?;
    let done = tokio::select! {
        () = conversation.await_servers() => {
            let mut teller = Teller::new(args, &conversation.endpoint);
            tell(&mut conversation, &prompt, &mut teller, &mut interrupts).await
        }
        _ = interrupts.next() => Err(Failure::interrupted()),
    };
    tokio::select! {
        _ = conversation.agent.stop_within(PARTING) => {}
        _ = interrupts.next() => {}
    }
    match done? {
        Some(outcome) => verdict(&outcome, &conversation.endpoint, shared),
        None => Ok(()),
    }
}

/// The words of the command line, `-` replaced by what stands on standard input.
fn prompt(words: &[String]) -> Result<String, Failure> {
    let mut parts = Vec::new();
    let mut input = None;
    for word in words {
        if word == "-" && input.is_none() {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(|error| {
                Failure::usage(format!("standard input could not be read: {error}"))
            })?;
            parts.push(input.insert(text).trim_end().to_owned());
        } else {
            parts.push(word.clone());
        }
    }
    let prompt = parts.join(" ");
    if prompt.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty; say what to ask"));
    }
    Ok(prompt)
}

/// Who is told of the run: a person, or a program that reads JSON lines.
enum Teller {
    Person {
        show: Box<Show<io::Stdout, io::Stderr>>,
        watch: Watch,
    },
    Program {
        /// Why lines can no longer be written.
        unwritten: Option<io::Error>,
    },
}

impl Teller {
    fn new(args: &RunArgs, endpoint: &Endpoint) -> Self {
        if args.json {
            return Self::Program { unwritten: None };
        }
        let (out, err) = (io::stdout(), io::stderr());
        let progress = if args.quiet {
            Progress::Quiet
        } else if err.is_terminal() && !is_dumb() {
            Progress::Live
        } else if args.verbose || *endpoint == Endpoint::Demonstration {
            // The demonstration is there to be looked at.
            Progress::Lines
        } else {
            Progress::Quiet
        };
        let config = ShowConfig {
            streams: out.is_terminal(),
            reasoning: progress == Progress::Live,
            out: Style::of(&out),
            err: Style::of(&err),
            progress,
            width: if err.is_terminal() {
                terminal_width()
            } else {
                200
            },
        };
        Self::Person {
            show: Box::new(Show::new(out, err, config)),
            watch: Watch::default(),
        }
    }

    fn event(&mut self, event: &AgentEvent) {
        match self {
            Self::Person { show, watch } => watch.event(show, event, now()),
            Self::Program { unwritten: Some(_) } => {}
            Self::Program { unwritten } => {
                let line = serde_json::to_string(event).unwrap_or_default() + "\n";
                let mut out = io::stdout().lock();
                let done = out.write_all(line.as_bytes());
                *unwritten = done.and_then(|()| out.flush()).err();
            }
        }
    }

    fn tick(&mut self) {
        if let Self::Person { show, .. } = self {
            show.tick(now());
        }
    }

    fn finished(&mut self, answer: &str) {
        if let Self::Person { show, .. } = self {
            show.finished(answer);
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::Person { show, .. } => show.is_closed(),
            Self::Program { unwritten } => unwritten.is_some(),
        }
    }

    fn written(&mut self) -> io::Result<()> {
        match self {
            Self::Person { show, .. } => show.written(),
            Self::Program { unwritten } => unwritten.take().map_or(Ok(()), Err),
        }
    }
}

fn now() -> Duration {
    SystemEnv::shared().elapsed()
}

/// Runs and tells, until the run is over; the user may end it. No outcome when nobody read the
/// answer any more.
async fn tell(
    conversation: &mut Conversation,
    prompt: &str,
    teller: &mut Teller,
    interrupts: &mut Interrupts,
) -> Result<Option<Outcome>, Failure> {
    let agent = &conversation.agent;
    let events = &mut conversation.events;
    let mut outcome = std::pin::pin!(agent.prompt(prompt).into_future());
    let mut ticks = interval(Duration::from_millis(100));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut interrupted = false;
    let outcome = loop {
        tokio::select! {
            biased;
            _ = interrupts.next() => {
                if std::mem::replace(&mut interrupted, true) {
                    // Asked twice: whatever holds the run up is left behind.
                    teller.finished("");
                    return Err(Failure::interrupted());
                }
                agent.abort();
            }
            Some(event) = events.recv() => {
                teller.event(&event);
                if let EventKind::ApprovalRequested { approval_id, tool_name, .. } = &event.kind {
                    let reason = "This call needs a person's approval, and nobody is there to \
                                  give it; it was not run.";
                    if agent.answer(approval_id, ApprovalAnswer::deny(reason)) {
                        sources::warn(&format!(
                            "{tool_name} needs approval, which nobody can give in `yiem run`; `yiem chat` asks"
                        ));
                    }
                }
                if teller.is_closed() {
                    agent.abort();
                }
            }
            outcome = &mut outcome => break outcome,
            _ = ticks.tick() => teller.tick(),
        }
    };
    // All events were sent before the outcome; what has not been drawn yet is drawn now.
    while let Ok(event) = events.try_recv() {
        teller.event(&event);
    }
    match outcome {
        Ok(outcome) => {
            teller.finished(if interrupted { "" } else { outcome.text() });
            let unread = teller.is_closed();
            Failure::unless_written(teller.written())?;
            Ok((!unread).then_some(outcome))
        }
        Err(error) => {
            teller.finished("");
            Err(Failure::new(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_its_words() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(prompt(&words("what is it")).unwrap(), "what is it");
        assert_eq!(prompt(&words("a --- b")).unwrap(), "a --- b");
        assert!(prompt(&[String::from("  ")]).is_err());
    }
}
