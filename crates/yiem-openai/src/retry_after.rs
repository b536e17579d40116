//! How long a server asks to wait.
//!
//! Knows: seconds, milliseconds, HTTP dates and the headers that carry them.
//! Does not know: the time of day; it is an argument.

use std::time::Duration;

use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{PrimitiveDateTime, UtcOffset};
use yiem_core::Timestamp;

/// Headers with milliseconds; they are finer than `retry-after` and come before it.
const MILLISECONDS: [&str; 2] = ["retry-after-ms", "x-ms-retry-after-ms"];

/// The forms of an HTTP date, the current one first.
const DATES: [&[BorrowedFormatItem<'_>]; 3] = [
    format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    ),
    format_description!("[day] [month repr:short] [year] [hour]:[minute]:[second] GMT"),
    format_description!(
        "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
    ),
];

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
        seconds(value).or_else(|| date(value, now))
    })
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
    let parse = |value: &str| {
        DATES
            .iter()
            .find_map(|form| PrimitiveDateTime::parse(value, form).ok())
    };
    let parsed = parse(value).or_else(|| parse(&in_full(value)?))?;
    let then = parsed.assume_offset(UtcOffset::UTC).unix_timestamp();
    Some(Timestamp::from_millis(then.checked_mul(1_000)?).since(now))
}

/// The date of the oldest form, `Monday, 30-Nov-26 10:00:00 GMT`, with the whole year.
fn in_full(value: &str) -> Option<String> {
    let (_, date) = value.split_once(", ")?;
    let mut parts = date.splitn(3, '-');
    let (day, month, rest) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{day} {month} 20{rest}"))
}
