//! Spans of time as people write them: `20s`, `500ms`, `2m`, `1h`, `1.5s`.
//!
//! Knows: units. Does not know: what the time is for.

/// Milliseconds of a span; a bare number is seconds.
pub(crate) fn millis(text: &str) -> Result<u64, String> {
    let refuse = || {
        format!(
            "{text:?} is no span of time; write a number and a unit: \"500ms\", \"20s\", \"2m\", \"1h\""
        )
    };
    let text = text.trim();
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let number: f64 = text[..digits]
        .replace('_', "")
        .parse()
        .map_err(|_| refuse())?;
    let factor = match text[digits..].trim() {
        "ms" => 1.0,
        "" | "s" => 1_000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return Err(refuse()),
    };
    let millis = number * factor;
    if !(1.0..=1e15).contains(&millis) {
        return Err(format!("{text:?} is no useful span of time"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "held within 1 and 10^15"
    )]
    Ok(millis.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::millis;

    #[test]
    fn spans_are_read_and_nonsense_is_refused() {
        for (text, want) in [
            ("20s", 20_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1.5 s", 1_500),
            ("30", 30_000),
        ] {
            assert_eq!(millis(text), Ok(want), "{text}");
        }
        for text in ["", "s", "20 parsecs", "-1s", "0s", "1..2s"] {
            assert!(millis(text).is_err(), "{text}");
        }
    }
}
