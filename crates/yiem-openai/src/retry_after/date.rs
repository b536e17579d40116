//! Dates as servers write them in a header.
//!
//! Knows: the three forms of an HTTP date, that of the internet's own timestamps, and what
//! servers make of them (any case, names of the zone, one digit, two or four digits of the year).
//! Does not know: the time of day; it is an argument.

use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};
use yiem_core::Timestamp;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// How zones that are none are written.
const ZERO_ZONES: [&str; 4] = ["gmt", "utc", "ut", "z"];

/// A year of two digits that would lie further ahead is one of the past.
const YEARS_AHEAD: i32 = 50;

/// Reads a date; `None` when it is none.
pub(super) fn read(value: &str, now: Timestamp) -> Option<Timestamp> {
    let value = value.trim();
    let then = OffsetDateTime::parse(&value.to_uppercase(), &Rfc3339)
        .ok()
        .or_else(|| words(value, now))?;
    Some(Timestamp::from_millis(
        then.unix_timestamp().checked_mul(1_000)?,
    ))
}

/// The parts of a date, in whatever order they stand: `Wed, 21 Oct 2026 07:29:30 GMT`,
/// `Wednesday, 21-Oct-26 07:29:30 GMT`, `Wed Oct 21 07:29:30 2026`.
fn words(value: &str, now: Timestamp) -> Option<OffsetDateTime> {
    let (mut day, mut month, mut year, mut time) = (None, None, None, None);
    let mut zone = UtcOffset::UTC;
    // The day of the week is not needed, and wrong at times.
    let value = value.split_once(',').map_or(value, |(_, date)| date);
    for word in value.split_whitespace() {
        let word = word.to_lowercase();
        if word.contains(':') {
            put(&mut time, clock(&word)?)?;
        } else if let Some(offset) = offset(&word).filter(|_| time.is_some()) {
            zone = offset;
        } else if ZERO_ZONES.contains(&&*word) && time.is_some() {
        } else {
            for part in word.split('-') {
                match (part.parse::<i32>(), MONTHS.iter().position(|m| *m == part)) {
                    (Ok(number @ 1..=31), _) if day.is_none() && part.len() <= 2 => {
                        day = Some(number);
                    }
                    (Ok(number), _) => put(&mut year, full(number, part.len(), now)?)?,
                    (_, Some(at)) => put(&mut month, at)?,
                    // Only the day of the week may stand there, in front.
                    _ if day.is_none() && month.is_none() && part.len() >= 3 => {}
                    _ => return None,
                }
            }
        }
    }
    let month = Month::try_from(u8::try_from(month? + 1).ok()?).ok()?;
    let date = Date::from_calendar_date(year?, month, u8::try_from(day?).ok()?).ok()?;
    Some(PrimitiveDateTime::new(date, time?).assume_offset(zone))
}

/// Puts a part of a date where none was.
fn put<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

fn clock(word: &str) -> Option<Time> {
    let mut parts = word.splitn(3, ':').map(|part| part.parse::<u8>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    // A leap second is none.
    let second = if second == 60 { 59 } else { second };
    Time::from_hms(hour, minute, second).ok()
}

/// `+0200`.
fn offset(word: &str) -> Option<UtcOffset> {
    let sign = match word.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = word[1..].parse::<i16>().ok().filter(|_| word.len() == 5)?;
    let hours = i8::try_from(digits / 100).ok()?;
    let minutes = i8::try_from(digits % 100).ok()?;
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
}

/// The whole year: of two digits it is the one that lies less than fifty years ahead.
fn full(year: i32, digits: usize, now: Timestamp) -> Option<i32> {
    match digits {
        4 => Some(year),
        2 => {
            let now = OffsetDateTime::from_unix_timestamp(now.as_millis() / 1_000).ok()?;
            let latest = now.year() + YEARS_AHEAD;
            Some(latest - (latest - year).rem_euclid(100))
        }
        _ => None,
    }
}
