//! `yiem chat`: a conversation in the terminal.
//!
//! Knows: what is done with a line: said to the agent, given to whoever asked, obeyed. Does not know: editing,
//! drawing, which of these a line is (`questions`).

mod above;
mod elicit;
mod form;
mod input;
mod on_screen;
mod questions;
mod slash;

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use yiem::mcp::{Elicit, Elicitation, ElicitationAnswer};
use yiem::{
    AgentEvent, ApprovalAnswer, ApprovalRequest, EndReason, EventKind, Outcome, PrepareNextTurn,
    SystemEnv, Usage,
};

use crate::args::Shared;
use crate::command::tools;
use crate::conversation::{Conversation, verdict};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::interrupt::{Interrupts, Wish};
use crate::screen::{
    Lines, Progress, Show, ShowConfig, Style, duration, on_one_line, terminal_width,
};
use crate::watch::Watch;
use elicit::{Asked, ToPerson};
use form::{Form, Step};
use input::{Input, Said, Words};
use on_screen::OnScreen;
use questions::{Means, Number, Questions};
use slash::Slash;

/// How long the agent has to let go of its servers at the end.
const PARTING: Duration = Duration::from_secs(5);

type Out = Box<dyn Write + Send>;

/// What a person is asked.
enum Question {
    /// Whether a tool may run.
    Approval(ApprovalRequest),
    /// What a server wants to know.
    Form(Form, oneshot::Sender<ElicitationAnswer>),
}

impl Question {
    /// Whether somebody still waits for the answer, as far as it can be seen here; an approval's end is an event.
    fn is_open(&self) -> bool {
        match self {
            Self::Approval(_) => true,
            Self::Form(_, answer) => !answer.is_closed(),
        }
    }

    /// What is shown of it.
    fn text(&self) -> String {
        match self {
            Self::Approval(request) => {
                let args = Value::Object((*request.args).clone()).to_string();
                format!(
                    "{} {} {} — [y]es, [n]o, or why not",
                    request.question,
                    request.tool_name,
                    on_one_line(&args, 400)
                )
            }
            Self::Form(form, _) => form.text(),
        }
    }
}

pub(crate) async fn run(shared: &Shared) -> Result<(), Failure> {
    let mut interrupts = Interrupts::listen()?;
    // Only a person at a terminal can be asked; elsewhere servers are told that nobody can.
    let (person, asked) = ToPerson::new();
    let person = Input::is_at_a_terminal().then(|| Arc::new(person) as Arc<dyn Elicit>);
    let conversation = Conversation::begin(shared, person)?;
    tokio::select! {
        () = conversation.await_servers() => {}
        _ = interrupts.next() => return Err(Failure::interrupted()),
    }
    let words = Words::default();
    let on_screen = OnScreen::default();
    let (input, mut chat) = match Input::editor(&words, &on_screen) {
        Some((input, printer)) => {
            let lines = Lines::new(printer, terminal_width);
            let style = Style::of(&io::stdout());
            let config = ShowConfig {
                streams: true,
                reasoning: true,
                out: style,
                err: style,
                progress: Progress::Lines,
                width: terminal_width(),
            };
            let show = Show::new(
                Box::new(lines.clone()) as Out,
                Box::new(lines) as Out,
                config,
            );
            (
                input,
                Chat::new(conversation, shared, show, (words, on_screen), asked),
            )
        }
        None => {
            let is_terminal = io::stderr().is_terminal();
            let config = ShowConfig {
                streams: io::stdout().is_terminal(),
                reasoning: false,
                out: Style::of(&io::stdout()),
                err: Style::of(&io::stderr()),
                progress: if is_terminal {
                    Progress::Lines
                } else {
                    Progress::Quiet
                },
                width: if is_terminal { terminal_width() } else { 200 },
            };
            let show = Show::new(
                Box::new(io::stdout()) as Out,
                Box::new(io::stderr()) as Out,
                config,
            );
            (
                Input::plain(&on_screen),
                Chat::new(conversation, shared, show, (words, on_screen), asked),
            )
        }
    };
    let done = chat.talk(input, &mut interrupts).await;
    let done = done.and_then(|()| Failure::unless_written(chat.show.written()));
    tokio::select! {
        _ = chat.conversation.agent.stop_within(PARTING) => {}
        _ = interrupts.next() => {}
    }
    done
}

struct Chat<'a> {
    conversation: Conversation,
    shared: &'a Shared,
    show: Show<Out, Out>,
    watch: Watch,
    words: Words,
    /// What a person has not answered yet.
    questions: Questions<Question>,
    /// The one that is shown, for whoever reads lines.
    on_screen: OnScreen,
    /// What servers want to ask.
    asked: mpsc::Receiver<Asked>,
    began: Duration,
    /// Whether a run went wrong, for the exit code of a conversation that was piped in.
    failed: bool,
    /// Whether the user ended a run by a signal, for the same.
    stopped: bool,
}

impl<'a> Chat<'a> {
    fn new(
        conversation: Conversation,
        shared: &'a Shared,
        show: Show<Out, Out>,
        (words, on_screen): (Words, OnScreen),
        asked: mpsc::Receiver<Asked>,
    ) -> Self {
        Self {
            conversation,
            shared,
            show,
            watch: Watch::default(),
            words,
            questions: Questions::new(),
            on_screen,
            asked,
            began: Duration::ZERO,
            failed: false,
            stopped: false,
        }
    }

    /// Talks until the user leaves.
    async fn talk(&mut self, mut input: Input, interrupts: &mut Interrupts) -> Result<(), Failure> {
        if input.steers() {
            let model = self.conversation.agent.state().model.id;
            self.show.say(&format!(
                "Talking to {model}. /help lists the commands, Ctrl-D leaves."
            ));
        }
        self.learn_words();
        input.go_on();
        loop {
            let running = self.conversation.agent.is_running();
            let listens = input.steers() || !running || !self.questions.is_empty();
            tokio::select! {
                biased;
                Some(event) = self.conversation.events.recv() => self.event(&event),
                Some(asked) = self.asked.recv() => self.elicited(&asked.question, asked.answer),
                () = nobody_waits(self.questions.front_mut()) => self.closed(),
                outcome = self.conversation.agent.take_response(), if running || self.began > Duration::ZERO => {
                    self.ended(outcome);
                    if self.show.is_closed() {
                        return Ok(());
                    }
                }
                said = input.next(), if listens => match said {
                    Said::Line { text, begun } => {
                        if !self.line(&text, begun).await {
                            return self.parting(&input);
                        }
                        input.go_on();
                    }
                    Said::Interrupt => {
                        self.interrupted();
                        input.go_on();
                    }
                    Said::End => return self.parting(&input),
                },
                wish = interrupts.next() => {
                    // While the editor is between two lines Ctrl-C comes as a signal.
                    if wish == Wish::OfTheSystem || !(input.steers() || running) {
                        return Err(Failure::interrupted());
                    }
                    self.stopped = true;
                    self.interrupted();
                }
            }
        }
    }

    fn parting(&self, input: &Input) -> Result<(), Failure> {
        match (self.stopped, self.failed) {
            _ if input.steers() => Ok(()),
            (true, _) => Err(Failure::interrupted()),
            (false, true) => Err(Failure::told()),
            (false, false) => Ok(()),
        }
    }

    /// What Ctrl-C does: ends the run, never the program.
    fn interrupted(&mut self) {
        if self.conversation.agent.is_running() {
            self.questions.clear();
            self.ask();
            self.conversation.agent.abort();
        } else {
            self.show.say("Ctrl-D or /quit leaves.");
        }
    }

    /// Does what a line means that was begun under a question, or under none; false when the user leaves.
    async fn line(&mut self, line: &str, begun: Option<Number>) -> bool {
        self.closed();
        match self.questions.means(line, begun) {
            Means::Nothing => {}
            Means::Command(Slash::Quit) => {
                self.questions.clear();
                return false;
            }
            Means::Command(command) => self.command(command).await,
            Means::Answer => self.answer(line.trim()),
            Means::Say => self.say(line),
            Means::SayBeside => {
                self.say(line);
                self.show.say(
                    "(said to the agent: the question came while you typed; it is still open)",
                );
            }
            Means::Late => {
                let said = on_one_line(line.trim(), 60);
                self.show.say(&format!(
                    "(not sent, since it was begun for a question that is over: {said})"
                ));
            }
        }
        true
    }

    fn say(&mut self, line: &str) {
        let was_running = self.conversation.agent.is_running();
        match self.conversation.agent.run(line) {
            Ok(_) if was_running => self.show.say("(it reads that before its next step)"),
            Ok(_) => self.began = now(),
            Err(error) => self.show.tell(&error.to_string()),
        }
    }

    /// Gives the first question its answer, or a part of it.
    fn answer(&mut self, said: &str) {
        let mut done = None;
        if let Some(Question::Form(form, _)) = self.questions.front_mut() {
            match form.take(said) {
                Step::Ask(_) => {
                    self.questions.asks_anew();
                    return self.ask();
                }
                Step::Done(answer) => done = Some(answer),
            }
        }
        let taken = match (self.questions.pop(), done) {
            (Some(Question::Approval(request)), _) => {
                let answer = leave(said);
                self.conversation.agent.answer(&request.id, answer)
            }
            (Some(Question::Form(_, answer)), Some(said)) => answer.send(said).is_ok(),
            _ => true,
        };
        if !taken {
            self.show.say("(nobody waits for that answer any more)");
        }
        self.ask();
    }

    /// A server asks the person something.
    fn elicited(&mut self, question: &Elicitation, answer: oneshot::Sender<ElicitationAnswer>) {
        self.questions
            .push(Question::Form(Form::new(question), answer));
        self.closed();
    }

    /// Lets go of what nobody waits for, and shows what comes after it.
    fn closed(&mut self) {
        self.close(Question::is_open);
    }

    fn close(&mut self, still_open: impl Fn(&Question) -> bool) {
        if self.questions.retain(still_open) {
            self.show.say("(that question is closed)");
        }
        self.ask();
    }

    fn tell_lines(&mut self, text: &str) {
        for line in text.lines() {
            self.show.tell(line);
        }
    }

    /// Shows the first question, unless it stands there already.
    fn ask(&mut self) {
        if let Some(text) = self.questions.show_next().map(Question::text) {
            self.on_screen.begins();
            self.tell_lines(&text);
        }
        self.on_screen.is(self.questions.on_screen());
    }

    fn event(&mut self, event: &Arc<AgentEvent>) {
        self.watch.event(&mut self.show, event, now());
        match &event.kind {
            EventKind::ApprovalRequested { approval_id, .. } => {
                let open = self.conversation.agent.pending_approvals();
                if let Some(request) = open.into_iter().find(|open| open.id == *approval_id) {
                    self.questions.push(Question::Approval(request));
                    self.ask();
                }
            }
            EventKind::ApprovalResolved { approval_id, .. } => {
                self.close(|open| match open {
                    Question::Approval(request) => request.id != *approval_id,
                    Question::Form(..) => open.is_open(),
                });
            }
            EventKind::ToolsChanged { .. } => self.learn_words(),
            _ => {}
        }
    }

    fn ended(&mut self, outcome: Result<Outcome, yiem::RunError>) {
        // All events were sent before the outcome; what has not been drawn yet is drawn now.
        while let Ok(event) = self.conversation.events.try_recv() {
            self.event(&event);
        }
        self.close(|open| matches!(open, Question::Form(..)) && open.is_open());
        let took = now().saturating_sub(self.began);
        self.began = Duration::ZERO;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.show.tell(&error.to_string()),
        };
        let aborted = matches!(outcome.end, EndReason::Aborted);
        self.show
            .finished(if aborted { "" } else { outcome.text() });
        if aborted {
            self.show.say("(stopped)");
        } else if let Err(failure) = verdict(&outcome, &self.conversation.endpoint, self.shared) {
            self.failed = true;
            self.show.tell(failure.line());
        }
        self.show.say(&summary(&outcome, took));
    }

    async fn command(&mut self, command: Slash) {
        let agent = &self.conversation.agent;
        match command {
            Slash::Tools => {
                let tools = tools::callable(agent.tools());
                let width = io::stdout().is_terminal().then(terminal_width);
                let table = tools::table(&tools, Style::PLAIN, width);
                self.show.block(&table);
            }
            Slash::Model(None) => {
                let model = agent.state().model;
                let place = match &self.conversation.endpoint {
                    Endpoint::Demonstration => "the built-in demonstration, no LLM".to_owned(),
                    Endpoint::Server { base_url, .. } => {
                        base_url.clone().unwrap_or_else(|| "OpenAI".to_owned())
                    }
                };
                self.show.block(&format!("{} ({place})\n", model.id));
            }
            Slash::Model(Some(id)) => {
                let endpoint = self.conversation.endpoint.clone().with_model(&id);
                match endpoint.model(self.shared) {
                    Ok(Some(model)) => {
                        let mut change = PrepareNextTurn::default();
                        change.model = Some(Arc::new(model));
                        agent.change(change);
                        self.conversation.endpoint = endpoint;
                        self.show.block(&format!("{id} answers from here on\n"));
                    }
                    Ok(None) => {
                        let text =
                            "the demonstration has one model; give an endpoint with --base-url";
                        self.show.tell(text);
                    }
                    Err(failure) => self.show.tell(failure.line()),
                }
            }
            Slash::Cost => {
                let state = agent.state();
                let mut text =
                    tokens(&state.usage).unwrap_or_else(|| "no tokens are known".to_owned());
                if let Some(cost) = &state.cost {
                    text.push_str(&format!(", {:.4} in money", cost.total()));
                }
                if let Some(tools) = tokens(&state.tool_usage) {
                    text.push_str(&format!("; by tools: {tools}"));
                }
                self.show.block(&format!("{text}\n"));
            }
            Slash::Session => {
                let state = agent.state();
                let file = match &self.shared.session {
                    Some(path) => format!("kept in {}", path.display()),
                    None => "kept nowhere (--session FILE keeps it)".to_owned(),
                };
                let text = format!(
                    "{}: {} messages, {file}\n",
                    state.session_id,
                    state.messages.len()
                );
                self.show.block(&text);
            }
            Slash::Undo => self.undo().await,
            Slash::Help => self.show.block(&slash::help()),
            Slash::Unknown(name) => self
                .show
                .tell(&format!("there is no command /{name}; /help lists them")),
            Slash::No => {
                let text = match self.questions.is_empty() {
                    true => "no question is open",
                    false => "the question came while you typed; /no once more declines it",
                };
                self.show.tell(text);
            }
            Slash::Quit => {}
        }
    }

    /// Takes back the last message of the user, and all that followed.
    async fn undo(&mut self) {
        let agent = &self.conversation.agent;
        let history = agent.history();
        let Some(at) = history
            .iter()
            .rposition(|message| message.as_user().is_some())
        else {
            self.show.tell("there is nothing to take back");
            return;
        };
        let said = history
            .get(at)
            .and_then(|message| message.as_user().map(yiem::UserMessage::text));
        match agent.rewind(at).await {
            Ok(_) => {
                let said = on_one_line(&said.unwrap_or_default(), 60);
                self.show.say(&format!("(took back: {said})"));
            }
            Err(error) => self.show.tell(&error.to_string()),
        }
    }

    fn learn_words(&self) {
        let mut known: Vec<String> = Slash::names().map(str::to_owned).collect();
        let tools = self.conversation.agent.tools().all();
        known.extend(tools.iter().map(|tool| tool.name().to_owned()));
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

/// Comes when nobody waits any more for the answer of a form.
async fn nobody_waits(first: Option<&mut Question>) {
    match first {
        Some(Question::Form(_, answer)) => answer.closed().await,
        _ => std::future::pending().await,
    }
}

/// What a person said to the question whether a tool may run.
fn leave(said: &str) -> ApprovalAnswer {
    match said.to_lowercase().as_str() {
        "y" | "yes" => ApprovalAnswer::Allow,
        "" | "n" | "no" => ApprovalAnswer::deny("the user said no"),
        _ if Slash::read(said) == Some(Slash::No) => ApprovalAnswer::deny("the user said no"),
        _ => ApprovalAnswer::deny(format!("the user said no: {said}")),
    }
}

fn now() -> Duration {
    SystemEnv::shared().elapsed()
}

/// `2 calls · 1.4 s · 120 tokens in, 30 out`.
fn summary(outcome: &Outcome, took: Duration) -> String {
    let mut parts = Vec::new();
    match outcome.tool_calls {
        0 => {}
        1 => parts.push("1 call".to_owned()),
        n => parts.push(format!("{n} calls")),
    }
    parts.push(duration(took));
    parts.extend(tokens(&outcome.usage));
    parts.join(" · ")
}

fn tokens(usage: &Usage) -> Option<String> {
    let read = [usage.input, usage.cache_read, usage.cache_write]
        .into_iter()
        .flatten()
        .sum::<u64>();
    let known = usage.input.is_some() || usage.output.is_some();
    known.then(|| format!("{read} tokens in, {} out", usage.output.unwrap_or(0)))
}

#[cfg(test)]
mod tests;
