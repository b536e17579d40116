//! JSON with the faults that real servers make, made readable where each fault has one meaning.

/// Rewrites bytes that failed to parse: invalid UTF-8 is replaced, raw control characters in texts are
/// escaped, lone surrogates become U+FFFD, unknown escapes keep their backslash, and outside of texts
/// `NaN`, `Infinity` and numbers beyond a double become null.
pub(super) fn repair(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = &*text;
    while let Some(c) = rest.chars().next() {
        match c {
            '"' => rest = string(rest, &mut out),
            '-' | '0'..='9' | 'N' | 'I' => rest = token(rest, &mut out),
            _ => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// Copies one text, from its quote to its closing quote; returns what follows.
fn string<'a>(input: &'a str, out: &mut String) -> &'a str {
    out.push('"');
    let mut rest = &input[1..];
    while let Some(c) = rest.chars().next() {
        match c {
            '"' => {
                out.push('"');
                return &rest[1..];
            }
            '\\' => rest = escape(rest, out),
            c if u32::from(c) < 0x20 => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
                rest = &rest[1..];
            }
            c => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    rest
}

fn escape<'a>(input: &'a str, out: &mut String) -> &'a str {
    let after = &input[1..];
    match after.chars().next() {
        Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
            out.push_str(&input[..2]);
            &input[2..]
        }
        Some('u') => match hex4(&after[1..]) {
            Some(unit @ 0xd800..=0xdbff) => {
                let low = after[5..].strip_prefix("\\u").and_then(hex4);
                if matches!(low, Some(0xdc00..=0xdfff)) {
                    out.push_str(&input[..12]);
                    return &input[12..];
                }
                let _ = unit;
                out.push_str("\\ufffd");
                &input[6..]
            }
            Some(0xdc00..=0xdfff) => {
                out.push_str("\\ufffd");
                &input[6..]
            }
            Some(_) => {
                out.push_str(&input[..6]);
                &input[6..]
            }
            None => {
                out.push_str("\\\\");
                after
            }
        },
        _ => {
            out.push_str("\\\\");
            after
        }
    }
}

fn hex4(text: &str) -> Option<u32> {
    let digits = text.as_bytes().get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Copies one number or word outside of texts, or null in its place.
fn token<'a>(input: &'a str, out: &mut String) -> &'a str {
    let end = input
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')))
        .unwrap_or(input.len());
    let (word, rest) = input.split_at(end.max(1));
    let is_word = matches!(word.trim_start_matches('-'), "NaN" | "Infinity");
    let is_beyond = word.parse::<f64>().is_ok_and(|number| !number.is_finite());
    out.push_str(if is_word || is_beyond { "null" } else { word });
    rest
}
