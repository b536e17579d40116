//! A run as a person sees it: the answer as it comes, tool calls with their durations, a spinner.
//!
//! Knows: what stands on the screen and in which state the line is. Does not know: where the
//! facts come from; time comes in as an argument.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::Value;

use super::markdown::Markdown;
use super::style::{Style, harmless, on_one_line};

/// How much of a run's progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// Nothing.
    Quiet,
    /// A line for each tool call that has ended.
    Lines,
    /// The same, and a line below that moves while something is waited for.
    Live,
}

/// How a run is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShowConfig {
    /// Whether the answer is written as it comes; else it is left to whoever has it whole.
    pub(crate) streams: bool,
    /// Whether what the model thinks is shown.
    pub(crate) reasoning: bool,
    /// How the answer is styled.
    pub(crate) out: Style,
    /// How the progress is styled.
    pub(crate) err: Style,
    /// How much progress is shown.
    pub(crate) progress: Progress,
    /// How many characters a line of progress may have.
    pub(crate) width: usize,
}

/// What is on the screen.
pub(crate) struct Show<O, E> {
    out: O,
    err: E,
    config: ShowConfig,
    markdown: Markdown,
    /// What the line that is not ended yet consists of.
    line: Line,
    calls: Vec<Call>,
    /// Since when the model is waited for.
    waiting: Option<Duration>,
    frame: usize,
    spinner_drawn: bool,
    /// Why the answer can no longer be written.
    unwritten: Option<io::Error>,
    /// The text of the message that was streamed last.
    streamed: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Empty,
    Answer,
    Reasoning,
}

#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    args: String,
    started: Duration,
    status: String,
}

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl<O: Write, E: Write> Show<O, E> {
    /// An empty screen.
    pub(crate) fn new(out: O, err: E, config: ShowConfig) -> Self {
        Self {
            out,
            err,
            config,
            markdown: Markdown::default(),
            line: Line::Empty,
            calls: Vec::new(),
            waiting: None,
            frame: 0,
            spinner_drawn: false,
            unwritten: None,
            streamed: String::new(),
        }
    }

    /// Whether what is written does not get anywhere any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.unwritten.is_some()
    }

    /// What became of writing the answer so far.
    pub(crate) fn written(&mut self) -> io::Result<()> {
        self.unwritten.take().map_or(Ok(()), Err)
    }

    /// Whether there is a line that moves, so that [`tick`](Self::tick) has something to do.
    pub(crate) fn is_live(&self) -> bool {
        self.config.progress == Progress::Live
    }

    /// The model is asked.
    pub(crate) fn model_asked(&mut self, now: Duration) {
        self.waiting = Some(now);
        self.streamed.clear();
        self.draw_spinner(now);
    }

    /// More of the answer.
    pub(crate) fn text(&mut self, text: &str) {
        self.streamed.push_str(text);
        self.waiting = None;
        if !self.config.streams || text.is_empty() {
            return;
        }
        self.begin(Line::Answer);
        let shown = if self.config.out.is_on() {
            self.markdown.push(text)
        } else {
            harmless(text)
        };
        self.write_out(&shown);
    }

    /// More of what the model thinks; shown with the progress.
    pub(crate) fn reasoning(&mut self, text: &str) {
        if !self.config.reasoning || text.is_empty() {
            return;
        }
        self.waiting = None;
        self.begin(Line::Reasoning);
        let text = self.config.err.dim(&harmless(text));
        self.write_err(&text);
    }

    /// The message is whole.
    pub(crate) fn message_ended(&mut self) {
        self.waiting = None;
        self.end_line();
    }

    /// What came of this reply so far does not count: told where it was shown.
    pub(crate) fn reply_begins_anew(&mut self) {
        self.streamed.clear();
        self.message_ended();
        if self.config.streams {
            self.tell("the reply begins anew: what stands above does not count");
        }
    }

    /// A call begins to run.
    pub(crate) fn call_started(&mut self, id: &str, name: &str, args: &Value, now: Duration) {
        self.waiting = None;
        self.calls.push(Call {
            id: id.to_owned(),
            name: on_one_line(name, 64),
            args: args.to_string(),
            started: now,
            status: String::new(),
        });
        self.draw_spinner(now);
    }

    /// A running call tells of its progress.
    pub(crate) fn call_updated(&mut self, id: &str, partial: &Value, now: Duration) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
            call.status = status_of(partial);
        }
        self.draw_spinner(now);
    }

    /// A call has run.
    pub(crate) fn call_ended(&mut self, id: &str, result: &str, is_error: bool, now: Duration) {
        let Some(at) = self.calls.iter().position(|call| call.id == id) else {
            return;
        };
        let call = self.calls.remove(at);
        let took = format!("({})", duration(now.saturating_sub(call.started)));
        self.call_line(is_error, &call.name, &call.args, result, &took);
        self.draw_spinner(now);
    }

    /// A call was not run.
    pub(crate) fn call_rejected(&mut self, name: &str, why: &str) {
        self.call_line(true, &on_one_line(name, 64), "", why, "(not run)");
    }

    /// Something to tell beside the run, on a line of its own.
    pub(crate) fn note(&mut self, text: &str) {
        if self.config.progress == Progress::Quiet {
            return;
        }
        self.tell(text);
    }

    /// Something that has to be told however little is shown.
    pub(crate) fn tell(&mut self, text: &str) {
        self.end_line();
        self.clear_spinner();
        let line = format!("{}\n", self.config.err.yellow(&on_one_line(text, 5000)));
        self.write_err(&line);
    }

    /// Something that the command itself says, dimmed, on a line of its own.
    pub(crate) fn say(&mut self, text: &str) {
        if self.config.progress == Progress::Quiet {
            return;
        }
        self.end_line();
        self.clear_spinner();
        let line = format!("{}\n", self.config.err.dim(&on_one_line(text, 2000)));
        self.write_err(&line);
    }

    /// Lines that were asked for, each with its line break.
    pub(crate) fn block(&mut self, lines: &str) {
        self.end_line();
        self.clear_spinner();
        self.write_out(&harmless(lines));
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Duration) {
        self.frame = (self.frame + 1) % FRAMES.len();
        self.draw_spinner(now);
    }

    /// The run is over and this is its answer; what was not shown of it is shown now.
    pub(crate) fn finished(&mut self, answer: &str) {
        self.calls.clear();
        self.waiting = None;
        self.end_line();
        self.clear_spinner();
        let shown_already = self.config.streams && self.streamed.trim() == answer.trim();
        if shown_already || answer.is_empty() {
            return;
        }
        let mut text = if self.config.out.is_on() {
            self.markdown.push(answer) + &self.markdown.finish()
        } else if self.config.streams {
            harmless(answer)
        } else {
            answer.to_owned()
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.write_out(&text);
    }

    fn call_line(&mut self, failed: bool, name: &str, args: &str, result: &str, took: &str) {
        if self.config.progress == Progress::Quiet {
            return;
        }
        self.end_line();
        self.clear_spinner();
        let style = self.config.err;
        let mark = if failed {
            style.red("✗")
        } else {
            style.green("✓")
        };
        // What is left of the line is shared by arguments and result.
        let left = self
            .config
            .width
            .saturating_sub(name.chars().count() + took.len() + 8)
            .max(24);
        let args = on_one_line(if args == "{}" { "" } else { args }, left / 2);
        let result = on_one_line(result, left.saturating_sub(args.chars().count()).max(12));
        let mut line = format!("{mark} {}", style.bold(name));
        if !args.is_empty() {
            line.push(' ');
            line.push_str(&args);
        }
        if !result.is_empty() {
            line.push_str(&style.dim(" → "));
            line.push_str(&result);
        }
        line.push(' ');
        line.push_str(&style.dim(took));
        line.push('\n');
        self.write_err(&line);
    }

    /// Makes the line ready for that kind of text.
    fn begin(&mut self, line: Line) {
        self.clear_spinner();
        if self.line != line {
            self.end_line();
            self.line = line;
        }
    }

    fn end_line(&mut self) {
        match std::mem::replace(&mut self.line, Line::Empty) {
            Line::Empty => {}
            Line::Answer => {
                let rest = if self.config.out.is_on() {
                    self.markdown.finish()
                } else {
                    String::new()
                };
                self.write_out(&(rest + "\n"));
            }
            Line::Reasoning => self.write_err("\n"),
        }
    }

    fn draw_spinner(&mut self, now: Duration) {
        if !self.is_live() || self.line != Line::Empty {
            return;
        }
        let since = |start: Duration| match now.saturating_sub(start).as_secs() {
            0 => String::new(),
            seconds => format!(" {seconds} s"),
        };
        let text = match (self.calls.as_slice(), self.waiting) {
            ([], None) => return self.clear_spinner(),
            ([], Some(start)) => format!("thinking…{}", since(start)),
            ([call], _) if call.status.is_empty() => {
                format!("{}{}", call.name, since(call.started))
            }
            ([call], _) => format!("{}: {}{}", call.name, call.status, since(call.started)),
            ([first, ..], _) => {
                let names: Vec<&str> = self.calls.iter().map(|call| call.name.as_str()).collect();
                format!(
                    "{} calls: {}{}",
                    names.len(),
                    names.join(", "),
                    since(first.started)
                )
            }
        };
        let text = on_one_line(&text, self.config.width.saturating_sub(4));
        let line = format!(
            "\r\x1b[K{} {}",
            self.config.err.cyan(FRAMES[self.frame]),
            self.config.err.dim(&text)
        );
        self.spinner_drawn = true;
        self.write_err(&line);
    }

    fn clear_spinner(&mut self) {
        if std::mem::take(&mut self.spinner_drawn) {
            self.write_err("\r\x1b[K");
        }
    }

    fn write_out(&mut self, text: &str) {
        if self.unwritten.is_none() {
            let done = self.out.write_all(text.as_bytes());
            self.unwritten = done.and_then(|()| self.out.flush()).err();
        }
    }

    fn write_err(&mut self, text: &str) {
        // Progress that nobody reads is no reason to stop.
        let _ = self
            .err
            .write_all(text.as_bytes())
            .and_then(|()| self.err.flush());
    }
}

/// What a tool says of its progress, as text: its `status`, `message` or `text` if it has one.
pub(crate) fn status_of(partial: &Value) -> String {
    // Over MCP whatever a tool says travels as text.
    let inside = partial
        .get("message")
        .and_then(Value::as_str)
        .filter(|text| text.starts_with('{'));
    if let Some(inside @ Value::Object(_)) = inside.and_then(|text| serde_json::from_str(text).ok())
    {
        return status_of(&inside);
    }
    let said = ["status", "message", "text"]
        .iter()
        .find_map(|key| partial.get(key)?.as_str());
    let amount = partial
        .get("progress")
        .and_then(Value::as_f64)
        .map(
            |progress| match partial.get("total").and_then(Value::as_f64) {
                Some(total) if total > 0.0 => format!("{:.0} %", progress / total * 100.0),
                _ => format!("{progress}"),
            },
        );
    let text = match (said, amount, partial) {
        (Some(said), Some(amount), _) => format!("{said} ({amount})"),
        (Some(said), None, _) => said.to_owned(),
        (None, Some(amount), _) => amount,
        (None, None, Value::String(text)) => text.clone(),
        (None, None, Value::Null) => String::new(),
        (None, None, other) => other.to_string(),
    };
    on_one_line(&text, 60)
}

/// A duration as people read it: `12 ms`, `1.4 s`, `2 min 05 s`.
pub(crate) fn duration(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        millis @ 1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        millis => format!("{} min {:02} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests;
