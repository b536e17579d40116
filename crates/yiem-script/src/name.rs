//! Which names a self-made tool may have.
//!
//! Knows: what is a name on every system that a file of that name may be carried to.
//! Does not know: files.

/// Names that are devices on Windows, with whatever ending.
const DEVICES: &[&str] = &[
    "con", "prn", "aux", "nul", "clock$", "conin$", "conout$", "com0", "com1", "com2", "com3",
    "com4", "com5", "com6", "com7", "com8", "com9", "lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5",
    "lpt6", "lpt7", "lpt8", "lpt9",
];

/// Names of built-in tools, which a self-made one would stand in the way of.
const BUILT_IN: &[&str] = &["listTools", "searchTools", "writeTool", "loadTools"];

/// The longest name.
const MAX_CHARS: usize = 64;

/// Why a tool cannot have that name, if it cannot (T-7): `^[A-Za-z_][A-Za-z0-9_-]{0,63}$`.
pub(crate) fn refuse(name: &str) -> Option<String> {
    let first = name.bytes().next();
    let shown: String = name.chars().take(80).collect();
    if !first.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        || !name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        || name.len() > MAX_CHARS
    {
        return Some(format!(
            "{shown:?} cannot be a tool's name: use 1 to {MAX_CHARS} of the characters A-Z a-z 0-9 _ -, beginning with a letter or _"
        ));
    }
    if DEVICES.contains(&name.to_ascii_lowercase().as_str()) {
        return Some(format!(
            "{shown:?} cannot be a tool's name: it is the name of a device on Windows"
        ));
    }
    None
}

/// Why a new tool may not be written under that name although it is one.
pub(crate) fn refuse_new(name: &str) -> Option<String> {
    refuse(name).or_else(|| {
        BUILT_IN
            .iter()
            .any(|built_in| built_in.eq_ignore_ascii_case(name))
            .then(|| {
                format!(
                    "{name:?} cannot be a new tool's name: a built-in tool has it; choose another"
                )
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_words() {
        for name in [
            "a",
            "_",
            "searchWine",
            "a-b_c9",
            "A",
            &"x".repeat(64),
            "console",
            "com10",
            "nullable",
        ] {
            assert_eq!(refuse(name), None, "{name}");
        }
        for name in [
            "",
            " ",
            "9a",
            "-a",
            "../x",
            "..",
            ".",
            "a/b",
            "a\\b",
            "a.js",
            "a\0b",
            "\0",
            "ä",
            "a b",
            "a\n",
            "a:b",
            "con",
            "CON",
            "Nul",
            "aux",
            "prn",
            "com1",
            "LPT9",
            "com0",
            &"x".repeat(65),
            "a\u{200b}",
            "ａ",
            "%2e%2e",
            "/etc/passwd",
            "C:x",
            "~",
            "$a",
        ] {
            assert!(refuse(name).is_some(), "{name:?}");
        }
    }

    #[test]
    fn built_in_tools_keep_their_names() {
        for name in ["writeTool", "listTools", "LISTTOOLS", "searchtools"] {
            assert!(refuse_new(name).is_some(), "{name}");
            assert_eq!(refuse(name), None, "{name}");
        }
    }
}
