//! The text of a tool file, from what `writeTool` is given.
//!
//! Knows: how a person would write such a module. Does not know: files.

use serde_json::Value;
use yiem_core::Timestamp;

/// What `writeTool` is given of a tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    pub(crate) parallel: Option<bool>,
    pub(crate) execute: String,
    pub(crate) validate: Option<String>,
    pub(crate) prepare: Option<String>,
}

/// The module, with a header that says what made it.
pub(crate) fn module(draft: &Draft, now: Timestamp) -> String {
    let date = now.to_string();
    let mut out = format!("// Made by writeTool on {}.\n", &date[..date.len().min(10)]);
    out.push_str("export const tool = {\n");
    for (key, value) in [
        ("name", Value::from(draft.name.as_str())),
        ("label", draft.label.as_str().into()),
        ("description", draft.description.as_str().into()),
        ("inputSchema", draft.input_schema.clone()),
    ] {
        out.push_str(&format!("    {key}: "));
        literal(&value, 1, &mut out);
        out.push_str(",\n");
    }
    if let Some(parallel) = draft.parallel {
        out.push_str(&format!("    parallel: {parallel},\n"));
    }
    out.push_str("};\n");
    if let Some(code) = &draft.prepare {
        function("function prepare(args)", code, &mut out);
    }
    if let Some(code) = &draft.validate {
        function("function validate(args)", code, &mut out);
    }
    function(
        "async function execute(args, host)",
        &draft.execute,
        &mut out,
    );
    out
}

fn function(head: &str, body: &str, out: &mut String) {
    out.push_str(&format!("\nexport {head} {{\n"));
    out.push_str(&indented(body));
    out.push_str("}\n");
}

/// Code indented by four, except where a line begins inside a text or comment that spans lines:
/// there, spaces would change what the text says.
pub(crate) fn indented(code: &str) -> String {
    let code = code.replace("\r\n", "\n").replace('\r', "\n");
    let inside = lines_inside_text(&code);
    let mut out = String::with_capacity(code.len() + 64);
    for (line, inside) in code.trim_end_matches('\n').split('\n').zip(inside) {
        if !inside && !line.trim().is_empty() {
            out.push_str("    ");
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// For each line of code, whether it begins inside a template text.
fn lines_inside_text(code: &str) -> Vec<bool> {
    let mut inside = vec![false];
    // Open braces of `${…}`, innermost last: how many plain braces are open in each.
    let mut nested: Vec<usize> = Vec::new();
    let mut in_template = false;
    // The last character that says whether a slash divides or begins a regular expression.
    let mut before = ' ';
    let mut word = String::new();
    let mut gap = false;
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\n' {
            inside.push(in_template);
        }
        if in_template {
            match c {
                '\\' => escaped(&mut chars, &mut inside),
                '`' => {
                    in_template = false;
                    before = '`';
                }
                '$' if chars.peek() == Some(&'{') => {
                    chars.next();
                    nested.push(0);
                    in_template = false;
                    before = '{';
                    word.clear();
                }
                _ => {}
            }
            continue;
        }
        match c {
            '`' => in_template = true,
            '"' | '\'' => {
                while let Some(next) = chars.next() {
                    match next {
                        '\\' => escaped(&mut chars, &mut inside),
                        '\n' => {
                            inside.push(false);
                            break;
                        }
                        _ if next == c => break,
                        _ => {}
                    }
                }
                before = c;
                word.clear();
            }
            '/' if chars.peek() == Some(&'/') => {
                while chars.next_if(|next| *next != '\n').is_some() {}
            }
            '/' if chars.peek() == Some(&'*') => {
                chars.next();
                let mut star = false;
                for next in chars.by_ref() {
                    if next == '\n' {
                        inside.push(false);
                    }
                    if star && next == '/' {
                        break;
                    }
                    star = next == '*';
                }
            }
            '/' if begins_regex(before, &word) => {
                let mut in_class = false;
                while let Some(next) = chars.next_if(|next| *next != '\n') {
                    match next {
                        '\\' => {
                            let _ = chars.next_if(|next| *next != '\n');
                        }
                        '[' => in_class = true,
                        ']' => in_class = false,
                        '/' if !in_class => break,
                        _ => {}
                    }
                }
                before = ')';
                word.clear();
            }
            '{' => {
                if let Some(open) = nested.last_mut() {
                    *open += 1;
                }
                before = c;
                word.clear();
            }
            '}' => {
                match nested.last_mut() {
                    Some(0) => {
                        nested.pop();
                        in_template = true;
                    }
                    Some(open) => *open -= 1,
                    None => {}
                }
                before = c;
                word.clear();
            }
            _ if c.is_whitespace() => gap = true,
            _ => {
                if is_word(c) {
                    if gap || !is_word(before) {
                        word.clear();
                    }
                    word.push(c);
                } else {
                    word.clear();
                }
                gap = false;
                before = c;
            }
        }
    }
    inside
}

/// Whether a slash after that begins a regular expression.
fn begins_regex(before: char, word: &str) -> bool {
    const BEFORE_VALUES: [&str; 14] = [
        "return",
        "typeof",
        "case",
        "in",
        "of",
        "do",
        "else",
        "void",
        "delete",
        "throw",
        "new",
        "instanceof",
        "yield",
        "await",
    ];
    if is_word(before) {
        return BEFORE_VALUES.contains(&word);
    }
    !matches!(before, ')' | ']' | '"' | '\'' | '`')
}

/// Passes over the character after a backslash, which may be the end of a line.
fn escaped(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, inside: &mut Vec<bool>) {
    if chars.next() == Some('\n') {
        inside.push(true);
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// A JSON value as a person would write it in JavaScript.
fn literal(value: &Value, depth: usize, out: &mut String) {
    let pad = "    ".repeat(depth + 1);
    let end = "    ".repeat(depth);
    match value {
        Value::Object(object) if !object.is_empty() => {
            out.push_str("{\n");
            for (key, value) in object {
                out.push_str(&pad);
                out.push_str(&key_of(key));
                out.push_str(": ");
                literal(value, depth + 1, out);
                out.push_str(",\n");
            }
            out.push_str(&end);
            out.push('}');
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            out.push_str("[\n");
            for item in items {
                out.push_str(&pad);
                literal(item, depth + 1, out);
                out.push_str(",\n");
            }
            out.push_str(&end);
            out.push(']');
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            out.push('[');
            out.push_str(&items.join(", "));
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// A key as it stands in an object: plain where it can. `__proto__` would set the prototype.
fn key_of(key: &str) -> String {
    let mut chars = key.chars();
    let plain = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '$')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    match key {
        "__proto__" => "[\"__proto__\"]".to_owned(),
        _ if plain => key.to_owned(),
        _ => Value::from(key).to_string(),
    }
}

#[cfg(test)]
mod tests;
