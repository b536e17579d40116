//! Any bytes as a reply: they end in one message or one typed error, in any pieces the same.

use std::sync::Arc;

use serde_json::Value;
use yiem_core::{AssistantMessage, Message, MessageAssembler, ModelError, StopReason};
use yiem_openai::case::Decoded;
use yiem_openai::{Asked, ChunkDecoder, OfferedTools, ReadLimits, ReadOptions};

use super::counting::{Counting, pieces, seed};

/// The most characters of an error's message.
const MESSAGE_CHARS: usize = 1_000;

/// How a reply is read, by the bits of a byte.
pub(crate) struct Reading {
    pub(crate) asked: Asked,
    pub(crate) options: ReadOptions,
}

impl Reading {
    pub(crate) fn by(flags: u8) -> Self {
        Self {
            asked: if flags & 1 == 0 {
                Asked::Stream
            } else {
                Asked::Whole
            },
            options: ReadOptions {
                offered: Arc::new(OfferedTools::new([
                    "get_weather",
                    "add",
                    "search",
                    "f",
                    "a.b c",
                ])),
                recover_leaked_calls: flags & 2 != 0,
                think_open_implied: flags & 4 != 0,
                limits: ReadLimits {
                    reply_bytes: 4 << 20,
                    event_bytes: 1 << 20,
                    calls: 100,
                },
                ..ReadOptions::default()
            },
        }
    }

    /// Reads to the end: the message, or as much of it as came before the error.
    pub(crate) fn read<'a>(
        &self,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (AssistantMessage, Option<ModelError>) {
        let mut decoder = ChunkDecoder::new(self.asked, self.options.clone(), Counting::shared());
        let mut assembler = MessageAssembler::new();
        let mut pieces = pieces.into_iter();
        let end = loop {
            match decoder.next() {
                Some(Ok(event)) => {
                    if let Some(message) = assembler.push(event) {
                        break (message, None);
                    }
                }
                Some(Err(error)) => {
                    let cause = Some(error.message.clone());
                    let message = assembler.broken_off(StopReason::Error, cause);
                    break (message, Some(error));
                }
                None if decoder.is_done() => panic!("it is done without an end"),
                None => match pieces.next() {
                    Some(piece) => decoder.feed(piece),
                    None => decoder.finish(),
                },
            }
        };
        assert!(decoder.next().is_none(), "something comes after the end");
        end
    }
}

/// Any bytes: flags, then the body.
pub fn whole_reply(data: &[u8]) {
    let Some((flags, body)) = data.split_first() else {
        return;
    };
    let (message, error) = Reading::by(*flags).read([body]);
    holds(&message, error.as_ref(), body.len());
}

/// Any bytes in any pieces: flags, the number that the pieces follow from, then the body.
pub fn stream_reply(data: &[u8]) {
    let Some((flags, rest)) = data.split_first() else {
        return;
    };
    let Some((seed, body)) = seed(rest) else {
        return;
    };
    let reading = Reading::by(*flags);
    let one = report(&reading.read([body]));
    let several = report(&reading.read(pieces(body, seed)));
    assert_eq!(one, several, "another reply in other pieces");
    if body.len() < 400 {
        let single = report(&reading.read(body.chunks(1)));
        assert_eq!(one, single, "another reply byte by byte");
    }
    if let Some(spaced) = spaced(body) {
        let (message, error) = reading.read([&spaced[..]]);
        // A message about what could not be read tells at which byte.
        if error.is_none() {
            let spaced = report(&(message, error));
            assert_eq!(
                one, spaced,
                "another reply with a space in every other event"
            );
        }
    }
}

/// The same events with white space that means nothing in every other one, so that no two in a
/// row are alike. `None` where a line is not an event of its own.
fn spaced(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    if !text.starts_with("data: {") || text.contains('\r') {
        return None;
    }
    let mut out = String::new();
    for (n, event) in text.split("\n\n").enumerate() {
        if event.contains('\n') {
            return None;
        }
        let data = event.strip_prefix("data: {");
        out.push_str(if n > 0 { "\n\n" } else { "" });
        match data.filter(|_| n % 2 == 1) {
            Some(rest) => out.push_str(&format!("data: {{ {rest}")),
            None => out.push_str(event),
        }
    }
    Some(out.into_bytes())
}

fn report((message, error): &(AssistantMessage, Option<ModelError>)) -> String {
    let report = Decoded::new(message, error.as_ref());
    serde_json::to_string(&report).expect("a report is JSON")
}

/// What is true of every reply.
pub(crate) fn holds(message: &AssistantMessage, error: Option<&ModelError>, bytes: usize) {
    let mut kept = message.text().len() + message.reasoning().len();
    let mut ids = Vec::new();
    for call in message.tool_calls() {
        kept += call.arguments.raw().len() + call.name.len() + call.id.as_str().len();
        ids.push(call.id.as_str());
        if message.stop_reason == StopReason::Length && call.arguments().is_some() {
            let raw = call.arguments.raw();
            assert!(
                matches!(serde_json::from_str::<Value>(&raw), Ok(Value::Object(_))),
                "arguments of a cut reply were mended: {raw}"
            );
        }
    }
    assert!(kept <= 8 * bytes + 4_096, "{kept} bytes out of {bytes}");
    assert!(ids.iter().all(|id| !id.is_empty()), "a call without an id");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "two calls have one id");
    match (error, &message.stop_reason) {
        (Some(error), _) => {
            let length = error.message.chars().count();
            assert!(length <= MESSAGE_CHARS, "a message of {length} characters");
            assert!(
                !error.message.trim().is_empty(),
                "an error that says nothing"
            );
        }
        (None, StopReason::Length | StopReason::ContentFilter) => {}
        (None, stop) => assert_eq!(
            *stop == StopReason::ToolCalls,
            count > 0,
            "{count} calls and {stop:?}"
        ),
    }
    let message = Message::Assistant(message.clone());
    let text = serde_json::to_string(&message).expect("a message is JSON");
    let back: Message = serde_json::from_str(&text).expect("what was written is read");
    assert_eq!(
        back, message,
        "a message that was written reads back otherwise"
    );
}
