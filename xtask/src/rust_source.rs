//! Rust source as far as the house rules need to understand it.
//!
//! Knows: what is comment, text or code; which items stand at a level; what the tests are.
//! Does not know: types, macros, name resolution. A check that needs those belongs to clippy.

/// The source with comments, string and character literals replaced by spaces, so that a search
/// finds code only. Lines and columns stay where they were.
pub(crate) fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = skip_text(source, at);
        if end == at {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        out.extend(
            bytes[at..end]
                .iter()
                .map(|b| if *b == b'\n' { b'\n' } else { b' ' }),
        );
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where the comment or literal that begins at `at` ends; `at` itself when none begins there.
fn skip_text(source: &str, at: usize) -> usize {
    let rest = &source.as_bytes()[at..];
    let after_word = at > 0 && is_word(source.as_bytes()[at - 1]);
    let length = match rest {
        [b'/', b'/', ..] => rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest, 1),
        [b'b' | b'c', b'"', ..] if !after_word => quoted(rest, 2),
        [b'r', b'"' | b'#', ..] if !after_word => raw(rest, 1),
        [b'b' | b'c', b'r', b'"' | b'#', ..] if !after_word => raw(rest, 2),
        [b'\'', b'\\', ..] => quoted_by(rest, 1, b'\''),
        [b'\'', ..] => character(&source[at..]),
        _ => 0,
    };
    at + length
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(rest: &[u8], from: usize) -> usize {
    quoted_by(rest, from, b'"')
}

fn quoted_by(rest: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`; 0 when it is a raw identifier.
fn raw(rest: &[u8], from: usize) -> usize {
    let hashes = rest[from..].iter().take_while(|b| **b == b'#').count();
    if rest.get(from + hashes) != Some(&b'"') {
        return 0;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let body = from + hashes + 1;
    let end = rest[body..]
        .windows(close.len())
        .position(|window| window == close);
    end.map_or(rest.len(), |end| body + end + close.len())
}

/// `'x'`; 0 when it is a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, first)), Some((end, '\''))) if first != '\'' => end + 1,
        _ => 0,
    }
}

/// One item at a level: its attributes, its head (up to `;`, `=` or its braces) and its body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) line: usize,
    pub(crate) attributes: String,
    pub(crate) head: String,
    /// What stands between its braces, if it has any.
    pub(crate) body: Option<String>,
    /// The line in which the body begins.
    pub(crate) body_line: usize,
}

/// The items of `code` (already without comments and texts), not those inside of them.
pub(crate) fn items(code: &str, first_line: usize) -> Vec<Item> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, first_line);
    loop {
        while at < bytes.len() && bytes[at].is_ascii_whitespace() {
            line += usize::from(bytes[at] == b'\n');
            at += 1;
        }
        if at >= bytes.len() {
            return found;
        }
        let start = at;
        while bytes[at..].starts_with(b"#") {
            let open = at + bytes[at..].iter().position(|b| *b == b'[').unwrap_or(0);
            at = closing(bytes, open);
            while at < bytes.len() && bytes[at].is_ascii_whitespace() {
                at += 1;
            }
        }
        let attributes = &code[start..at];
        let head_start = at;
        let mut body = None;
        let mut body_start = at;
        while at < bytes.len() {
            match bytes[at] {
                b';' => break,
                b'(' | b'[' => at = closing(bytes, at),
                b'{' => {
                    let end = closing(bytes, at);
                    body = Some(&code[at + 1..end.saturating_sub(1).max(at + 1)]);
                    body_start = at;
                    at = end;
                    // A value or an import may go on behind its braces; anything else ends there.
                    if !goes_on_after_braces(&code[head_start..body_start]) {
                        break;
                    }
                }
                _ => at += 1,
            }
        }
        let head_end = if body.is_some() { body_start } else { at };
        let head = code[head_start..head_end].trim().to_owned();
        let lines = |text: &str| text.bytes().filter(|b| *b == b'\n').count();
        if !head.is_empty() {
            found.push(Item {
                line: line + lines(&code[start..head_start]),
                attributes: attributes.trim().to_owned(),
                head,
                body: body.map(str::to_owned),
                body_line: line + lines(&code[start..body_start]),
            });
        }
        if bytes.get(at) == Some(&b';') {
            at += 1;
        }
        line += lines(&code[start..at]);
    }
}

fn goes_on_after_braces(head: &str) -> bool {
    let mut words = head
        .split_whitespace()
        .skip_while(|word| word.starts_with("pub"));
    let first = words.next().unwrap_or_default();
    // `const fn` is a function.
    matches!(first, "use" | "static" | "type") || (first == "const" && words.next() != Some("fn"))
}

/// The position after the bracket that closes the one at `open`.
fn closing(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

/// Whether `word` stands in `code` as a whole word or path.
pub(crate) fn holds_word(code: &str, word: &str) -> bool {
    line_of_word(code, word).is_some()
}

/// The line (from 1) of the first place where `word` stands as a whole word.
pub(crate) fn line_of_word(code: &str, word: &str) -> Option<usize> {
    let bytes = code.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_none_or(|byte| !is_word(*byte));
    let (starts_word, ends_word) = (
        is_word(word.as_bytes()[0]),
        is_word(word.as_bytes()[word.len() - 1]),
    );
    code.match_indices(word).find_map(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let whole =
            (!starts_word || edge(before)) && (!ends_word || edge(bytes.get(at + word.len())));
        whole.then(|| 1 + code[..at].bytes().filter(|b| *b == b'\n').count())
    })
}

/// The names of the test functions in a file: those marked `#[test]`, `#[tokio::test]` and the
/// like, those inside `proptest!`, and those of macros that make tests of a list of names.
pub(crate) fn test_names(source: &str) -> Vec<String> {
    let code = code_only(source);
    let mut names = Vec::new();
    let mut marked = false;
    for line in code.lines().map(str::trim) {
        if line.starts_with("#[") && line.contains("test") && !line.starts_with("#[cfg") {
            marked = true;
        }
        let head = line.split('(').next().unwrap_or_default();
        if let Some((_, name)) = head.split_once("fn ") {
            if marked {
                let name = name.split('<').next().unwrap_or_default();
                names.push(name.trim().to_owned());
            }
            marked = false;
        }
    }
    names
}

#[cfg(test)]
mod tests;
