//! Which name a server's tool is offered by (M-6).
//!
//! Knows: prefixes, the length that providers allow, how a name is cut without becoming another's.
//! Does not know: which names are taken.

/// The most characters of an offered name.
pub const MAX_NAME_CHARS: usize = 64;

/// What happens when two sources have a tool of the same name (M-6). One's own and built-in
/// tools always keep their names; a source's tool that clashes with one is refused and reported
/// unless it is prefixed anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClashPolicy {
    /// The tool of the source that is configured later is offered as `source__tool`.
    #[default]
    OnCollision,
    /// Every source's tools are offered as `source__tool`, whether they clash or not.
    AlwaysPrefix,
    /// The tool of the source that is configured later is refused and reported.
    Refuse,
}

/// `source__tool`, within 64 characters.
pub(crate) fn prefixed(source: &str, tool: &str) -> String {
    bounded(&format!("{source}__{tool}"))
}

/// The name itself, or a readable head and a hash of the whole when it is too long.
pub(crate) fn bounded(name: &str) -> String {
    if name.chars().count() <= MAX_NAME_CHARS {
        name.to_owned()
    } else {
        with_hash(name, name)
    }
}

/// A head of `name` and a hash of `of`, together at most 64 characters.
pub(crate) fn with_hash(name: &str, of: &str) -> String {
    let head: String = name.chars().take(MAX_NAME_CHARS - 9).collect();
    format!("{head}_{:08x}", fnv1a(of) & 0xffff_ffff)
}

/// FNV-1a: stable over versions and machines, so that names stay the same.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Why a name cannot be offered at all.
pub(crate) fn unusable(name: &str) -> Option<&'static str> {
    if name.trim().is_empty() {
        Some("its name is empty")
    } else if name.chars().any(char::is_control) {
        Some("its name holds control characters")
    } else if name.len() > 4_096 {
        Some("its name is longer than 4,096 bytes")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_a_readable_head_and_differ() {
        let a = bounded(&"a".repeat(200));
        let b = bounded(&format!("{}b", "a".repeat(199)));
        assert_eq!((a.chars().count(), b.chars().count()), (64, 64));
        assert!(a.starts_with("aaaa") && a != b);
        assert_eq!(bounded("getWeather"), "getWeather");
        assert_eq!(prefixed("git", "status"), "git__status");
        let unicode = bounded(&"ü".repeat(100));
        assert_eq!(unicode.chars().count(), 64);
    }
}
