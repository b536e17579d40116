//! How long a server asks to wait.
//!
//! Knows: seconds, milliseconds, HTTP dates and the headers that carry them; fields of an error
//! and the words of its message that tell a wait where no header does.
//! Does not know: the time of day; it is an argument.

use std::time::Duration;

use serde_json::Value;
use yiem_core::Timestamp;

mod date;

/// Headers with milliseconds; they are finer than `retry-after` and come before it.
const MILLISECONDS: [&str; 2] = ["retry-after-ms", "x-ms-retry-after-ms"];

/// Reads the headers; a name may be in any case.
pub(crate) fn read<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a str)> + Clone,
    now: Timestamp,
) -> Option<Duration> {
    let find = |wanted: &str| {
        headers
            .clone()
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim())
    };
    let fine = MILLISECONDS
        .iter()
        .find_map(|name| duration(find(name)?, 1e-3));
    fine.or_else(|| {
        let value = find("retry-after")?;
        seconds(value)
            .or_else(|| date(value, now))
            .or_else(|| span(value))
    })
}

/// How deep a wait may stand in an error.
const DEPTH: usize = 12;

/// Fields with a wait, in lower case and without what stands between words, and their unit in
/// seconds.
const FIELDS: [(&str, f64); 5] = [
    ("retryafter", 1.0),
    ("retryafterseconds", 1.0),
    ("retryaftersecs", 1.0),
    ("retryafterms", 1e-3),
    // Of google.rpc.RetryInfo.
    ("retrydelay", 1.0),
];

/// The first wait that stands in a field of its own, anywhere in the body of an error.
pub(crate) fn in_fields(value: &Value) -> Option<Duration> {
    deep(value, DEPTH)
}

fn deep(value: &Value, depth: usize) -> Option<Duration> {
    let depth = depth.checked_sub(1)?;
    match value {
        Value::Object(object) => {
            let own = object.iter().find_map(|(key, value)| {
                let name: String = key.chars().filter(|c| c.is_alphanumeric()).collect();
                let (_, unit) = FIELDS.iter().find(|(f, _)| name.eq_ignore_ascii_case(f))?;
                field(value, *unit)
            });
            own.or_else(|| object.values().find_map(|inner| deep(inner, depth)))
        }
        Value::Array(items) => items.iter().find_map(|inner| deep(inner, depth)),
        // What the server behind the server said.
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            deep(&serde_json::from_str(text).ok()?, depth)
        }
        _ => None,
    }
}

fn field(value: &Value, unit: f64) -> Option<Duration> {
    match value {
        Value::Number(number) => Duration::try_from_secs_f64(number.as_f64()? * unit).ok(),
        Value::String(text) => duration(text, unit).or_else(|| span(text)),
        Value::Object(parts) => {
            let part = |key: &str| match parts.get(key) {
                None => Some(0.0),
                Some(Value::String(text)) => text.trim().parse().ok(),
                Some(value) => value.as_f64(),
            };
            parts.get("seconds").or(parts.get("nanos"))?;
            Duration::try_from_secs_f64(part("seconds")? + part("nanos")? * 1e-9).ok()
        }
        _ => None,
    }
}

/// Words that a wait stands behind, in lower case.
const LEADS: [&str; 13] = [
    "try again in",
    "try again after",
    "retry in",
    "retry after",
    "retry-after:",
    "retry_after:",
    "please wait",
    "must wait",
    "to wait",
    "should wait",
    "reset in",
    "resets in",
    "reset after",
];

/// The wait that the message of an error tells: "Please try again in 6m0s."
pub(crate) fn in_words(message: &str) -> Option<Duration> {
    let message = message.to_lowercase();
    LEADS.iter().find_map(|lead| {
        message.match_indices(lead).find_map(|(at, _)| {
            let mut rest = message[at + lead.len()..].trim_start();
            for filler in ["for", "about", "approximately", "at least", "~"] {
                rest = rest.strip_prefix(filler).unwrap_or(rest).trim_start();
            }
            span(rest)
        })
    })
}

/// Units of time as people and programs write them, in seconds.
const UNITS: [(&[&str], f64); 7] = [
    (&["ns", "nanosecond", "nanoseconds"], 1e-9),
    (&["us", "µs", "μs", "microsecond", "microseconds"], 1e-6),
    (
        &["ms", "msec", "msecs", "millisecond", "milliseconds"],
        1e-3,
    ),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600.0),
    (&["d", "day", "days"], 86_400.0),
];

/// A span at the beginning of a text: "1.2s", "6m0s", "2 minutes and 5 seconds". A number alone
/// counts as seconds.
fn span(text: &str) -> Option<Duration> {
    let (mut rest, mut total, mut any) = (text.trim_start(), 0.0, false);
    loop {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        // A full stop behind the number ends the sentence.
        let number = rest[..digits].trim_end_matches('.');
        let behind = rest[number.len()..].trim_start();
        let letters = behind
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(behind.len());
        let word = behind[..letters].to_lowercase();
        let unit = UNITS.iter().find(|(words, _)| words.contains(&&*word));
        match (number.parse::<f64>(), unit) {
            (Ok(number), Some((_, unit))) => {
                total += number * unit;
                any = true;
            }
            (Ok(seconds), None)
                if !any && word.is_empty() && !behind.starts_with(['-', '/', ':', '%']) =>
            {
                return Duration::try_from_secs_f64(seconds).ok();
            }
            _ => break,
        }
        rest = behind[letters..].trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start();
    }
    any.then(|| Duration::try_from_secs_f64(total).ok())
        .flatten()
}

fn seconds(value: &str) -> Option<Duration> {
    if let Some(number) = value.strip_suffix("ms") {
        return duration(number, 1e-3);
    }
    duration(value.strip_suffix('s').unwrap_or(value), 1.0)
}

fn duration(number: &str, unit: f64) -> Option<Duration> {
    let number = number.trim();
    if !number.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok()
}

/// A date; one that has passed means no wait.
fn date(value: &str, now: Timestamp) -> Option<Duration> {
    date::read(value, now).map(|then| then.since(now))
}
