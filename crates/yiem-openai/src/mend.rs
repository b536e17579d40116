//! Bodies that are nearly JSON.
//!
//! Knows: what servers' libraries write that JSON does not allow: halves of surrogate pairs and
//! raw control characters in strings, and Python's words for numbers that are none.
//! Does not know: what the body says. Text that is JSON never comes here.

/// Words for numbers that JSON has not; they become null.
const NO_NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// The text as JSON, if mending it changed anything.
pub(crate) fn mended(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(quote) = rest.find('"') {
        outside(&rest[..quote], &mut out);
        out.push('"');
        rest = inside(&rest[quote + 1..], &mut out);
    }
    outside(rest, &mut out);
    (out != text).then_some(out)
}

/// Text between strings.
fn outside(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some((at, word)) = NO_NUMBERS
        .iter()
        .filter_map(|word| Some((rest.find(word)?, *word)))
        .min_by_key(|(at, _)| *at)
    {
        out.push_str(&rest[..at]);
        out.push_str("null");
        rest = &rest[at + word.len()..];
    }
    out.push_str(rest);
}

/// A string from behind its opening quote; gives what stands behind its closing one.
fn inside<'a>(text: &'a str, out: &mut String) -> &'a str {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                out.push('"');
                return &text[at + 1..];
            }
            '\\' => {
                let escape = &text[at..];
                match unit(escape) {
                    Some(high @ 0xD800..=0xDBFF) => {
                        let low = escape
                            .get(6..)
                            .and_then(unit)
                            .filter(|low| (0xDC00..=0xDFFF).contains(low));
                        match low {
                            Some(low) => out.push_str(&format!("\\u{high:04x}\\u{low:04x}")),
                            None => out.push(char::REPLACEMENT_CHARACTER),
                        }
                        chars.nth(if low.is_some() { 10 } else { 4 });
                    }
                    Some(0xDC00..=0xDFFF) => {
                        out.push(char::REPLACEMENT_CHARACTER);
                        chars.nth(4);
                    }
                    _ => {
                        out.push('\\');
                        if let Some((_, escaped)) = chars.next() {
                            out.push(escaped);
                        }
                    }
                }
            }
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    ""
}

/// The code unit of a `\uXXXX` at the beginning.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::mended;

    #[test]
    fn good_json_is_left_alone() {
        for text in [
            "{\"a\": \"\\ud83d\\ude00 \\\\ud83d \\n\", \"NaN\": -1}",
            "",
            "[1, 2]",
            "\"é\"",
        ] {
            assert_eq!(mended(text), None, "{text}");
        }
    }

    #[test]
    fn what_no_json_allows_is_mended() {
        for (text, expected) in [
            ("{\"a\":\"\\ud83d x\"}", "{\"a\":\"\u{fffd} x\"}"),
            (
                "{\"a\":\"\\ud83d\\ud83d\\ude00\"}",
                "{\"a\":\"\u{fffd}\\ud83d\\ude00\"}",
            ),
            ("{\"a\":\"\\ude00\"}", "{\"a\":\"\u{fffd}\"}"),
            ("{\"a\":\"x\ny\t\"}", "{\"a\":\"x\\u000ay\\u0009\"}"),
            (
                "{\"a\":NaN,\"b\":[-Infinity,Infinity],\"c\":\"NaN\"}",
                "{\"a\":null,\"b\":[null,null],\"c\":\"NaN\"}",
            ),
            ("\"cut \\ud8", "\"cut \\ud8"),
        ] {
            assert_eq!(mended(text).as_deref().unwrap_or(text), expected);
        }
    }
}
