//! The body of an answer: JSON or a stream of events, whatever its content type says.

use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{Answer, excerpt};
use crate::transport::Exchange;
use reqwest::StatusCode;
use std::time::Duration;
use yiem_sse::{BodyKind, SseError, SseLimits, SseReader};

/// What was seen of a body so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The id of the last event, by which a stream is read on.
    pub(super) last_id: Option<String>,
    /// How long to wait before.
    pub(super) retry: Option<Duration>,
    /// The beginning of a body that is none of both.
    odd: String,
    events: usize,
}

impl Reading {
    pub(super) fn ended_without_answer(&self, status: StatusCode) -> McpError {
        if !self.odd.is_empty() {
            return McpError::unreadable(format!("HTTP {}: {}", status.as_u16(), self.odd));
        }
        if self.events > 0 {
            return McpError::lost(format!(
                "the stream ended after {} events, before the answer",
                self.events
            ));
        }
        McpError::unreadable(format!("HTTP {} with an empty body", status.as_u16()))
    }
}

/// Reads a body until the answer to the exchange; what else is in it goes to the exchange's inbox.
pub(super) async fn read_answer(
    mut response: reqwest::Response,
    exchange: &Exchange,
    cap: usize,
    reading: &mut Reading,
) -> Result<Option<Answer>, McpError> {
    let mut reader = reader(cap);
    let mut found: Option<Answer> = None;
    // Answers under another id than ours: the last resort, once the stream has ended.
    let mut stranger: Option<Answer> = None;
    let mut take = |reading: &mut Reading, name: Option<&str>, data: &str| {
        reading.events += 1;
        if found.is_some() {
            return true;
        }
        match take_event(exchange, name, data) {
            Some(answer) if exchange.is_answered_by(&answer) => found = Some(answer),
            other => stranger = stranger.take().or(other),
        }
        found.is_some()
    };
    loop {
        let piece = match response.chunk().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(error) => {
                note_place(&reader, reading);
                if reading.last_id.is_some() {
                    return Ok(None);
                }
                return Err(McpError::lost("the answer broke off").with_source(error.without_url()));
            }
        };
        let mut done = false;
        let fed = reader.feed(&piece, |event| {
            done = take(reading, event.name, event.data);
        });
        note_place(&reader, reading);
        if done {
            return Ok(found);
        }
        fed.map_err(|error| too_large(error, cap))?;
    }
    let ended = reader.finish(|event| {
        take(reading, event.name, event.data);
    });
    ended.map_err(|error| too_large(error, cap))?;
    note_place(&reader, reading);
    let mut found = found.or(stranger);
    if found.is_none() && matches!(reader.kind(), BodyKind::Json | BodyKind::Markup) {
        found = if reader.kind() == BodyKind::Json {
            exchange.take(reader.body())
        } else {
            None
        };
        if found.is_none() {
            reading.odd = excerpt(reader.body());
        }
    }
    Ok(found)
}

pub(super) fn reader(cap: usize) -> SseReader {
    SseReader::with_limits(SseLimits {
        event_bytes: cap,
        body_bytes: cap,
    })
}

fn note_place(reader: &SseReader, reading: &mut Reading) {
    if let Some(id) = reader.last_event_id()
        && !id.is_empty()
        && reading.last_id.as_deref() != Some(id)
    {
        reading.last_id = Some(id.to_owned());
    }
    if let Some(millis) = reader.retry_ms() {
        reading.retry = Some(Duration::from_millis(millis));
    }
}

fn take_event(exchange: &Exchange, name: Option<&str>, data: &str) -> Option<Answer> {
    if data.is_empty() || !matches!(name, None | Some("message")) {
        return None;
    }
    exchange.take(data.as_bytes())
}

pub(super) fn too_large(error: SseError, cap: usize) -> McpError {
    McpError::new(McpErrorKind::TooLarge {
        what: "the answer".into(),
        size: cap as u64 + 1,
        limit: cap as u64,
    })
    .with_source(error)
}

/// Reads at most `cap` bytes of a body.
pub(super) async fn read_capped(
    mut response: reqwest::Response,
    cap: usize,
) -> Result<Vec<u8>, McpError> {
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| McpError::lost("the answer broke off").with_source(error.without_url()))?
    {
        let left = cap - body.len();
        body.extend_from_slice(&piece[..piece.len().min(left)]);
        if body.len() == cap {
            break;
        }
    }
    Ok(body)
}
