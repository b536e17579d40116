//! Values written as text and texts that are values: what can be turned without loss.
//!
//! Knows: JSON's own writing of numbers, booleans, arrays and objects.
//! Does not know: schemas.

use serde_json::{Number, Value};

use crate::function::whole_number;

/// The number that a text writes, if nothing is lost by it: `"42"` is, `"4,2"`, `"042"` and
/// digits that no number here can hold are not.
pub(super) fn number(text: &str) -> Option<Number> {
    let plausible = text.len() <= 400
        && text
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    if !plausible {
        return None;
    }
    let number: Number = serde_json::from_str(text).ok()?;
    (decimal(text)? == decimal(&number.to_string())?).then_some(number)
}

/// The whole number that a text writes: `"42"`, and `"42.0"` and `"4.2e1"` as well.
pub(super) fn integer(text: &str) -> Option<Number> {
    let number = number(text)?;
    if number.is_i64() || number.is_u64() {
        return Some(number);
    }
    whole_number(number.as_f64()?)
}

/// An array or object that a text writes.
pub(super) fn compound(text: &str) -> Option<Value> {
    let start = text.trim_start().bytes().next()?;
    if !matches!(start, b'[' | b'{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Sign, digits without outer zeros, and exponent: equal exactly when two texts write the same
/// number.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m, e.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let trimmed = digits.trim_start_matches('0');
    let significant = trimmed.trim_end_matches('0');
    if significant.is_empty() {
        return Some((negative, String::new(), 0));
    }
    let zeros = i64::try_from(trimmed.len() - significant.len()).ok()?;
    let point = i64::try_from(fraction.len()).ok()?;
    Some((
        negative,
        significant.to_owned(),
        exponent.checked_sub(point)?.checked_add(zeros)?,
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_texts_that_lose_nothing_become_numbers() {
        for (text, want) in [
            ("42", json!(42)),
            ("-7", json!(-7)),
            ("0", json!(0)),
            ("4.2", json!(4.2)),
            ("1e3", json!(1e3)),
            ("18446744073709551615", json!(18446744073709551615_u64)),
            ("0.1", json!(0.1)),
        ] {
            assert_eq!(number(text).map(Value::Number), Some(want), "{text}");
        }
        for text in [
            "",
            " 42",
            "42 ",
            "042",
            "+1",
            "1,5",
            "0x10",
            "NaN",
            "Infinity",
            "1e400",
            "abc",
            "1_000",
            "123456789012345678901234567890",
            "0.1000000000000000055511151231257827",
            "--1",
            "1.",
            ".5",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_told_from_others() {
        for (text, want) in [
            ("42", Some(42)),
            ("42.0", Some(42)),
            ("4.2e1", Some(42)),
            ("42.1", None),
            ("1e30", None),
        ] {
            assert_eq!(integer(text).and_then(|n| n.as_i64()), want, "{text}");
        }
    }

    #[test]
    fn only_arrays_and_objects_are_taken_out_of_text() {
        assert_eq!(compound("[1,2]"), Some(json!([1, 2])));
        assert_eq!(compound(" {\"a\":null} "), Some(json!({ "a": null })));
        for text in ["", "1", "\"a\"", "null", "true", "[1,", "{a:1}", "[1] 2"] {
            assert_eq!(compound(text), None, "{text}");
        }
    }
}
