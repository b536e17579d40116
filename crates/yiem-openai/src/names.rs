//! Tool names as the wire takes them, there and back.
//!
//! Knows: the pattern `^[a-zA-Z0-9_-]{1,64}$`, how another name is mapped into it without
//! collision, and how a name that a model gives is found again.
//! Does not know: tools.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::calls::clean_name;

const LONGEST: usize = 64;

/// What models put in front of the name of a tool, as if it stood in a module of theirs.
const MODULES: [&str; 6] = [
    "functions.",
    "functions:",
    "default_api.",
    "default_api:",
    "tools.",
    "tool.",
];

/// The name under which the wire knows a tool: the same if it fits the pattern, else its
/// readable part and a hash. A function of this one name, so that it never changes with the
/// other tools of a request.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if !name.is_empty() && name.len() <= LONGEST && name.bytes().all(fits) {
        return Cow::Borrowed(name);
    }
    let hash = format!("{:016x}", hash(name.as_bytes()));
    let readable: String = name
        .chars()
        .map(|c| {
            if c.is_ascii() && fits(c as u8) {
                c
            } else {
                '_'
            }
        })
        .take(LONGEST - hash.len() - 1)
        .collect();
    Cow::Owned(format!("{readable}_{hash}"))
}

/// FNV-1a in 64 bits: the same on every machine and in every version, which a hasher of the
/// standard library does not promise.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A name without the number of its call, which some models write behind it: `get_weather:0`.
fn uncounted(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((head, count))
            if !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            head
        }
        _ => name,
    }
}

/// The tools that a request offered: what a name of the model's is looked up in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfferedTools {
    /// By the wire's name.
    originals: HashMap<String, String>,
}

impl OfferedTools {
    /// The tools of these names.
    pub fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        let originals = names
            .into_iter()
            .map(|name| {
                (
                    wire_name(name.as_ref()).into_owned(),
                    name.as_ref().to_owned(),
                )
            })
            .collect();
        Self { originals }
    }

    /// The name of an offered tool that the model meant, if it is one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&str> {
        let cleaned = clean_name(name);
        let bare = MODULES
            .iter()
            .find_map(|module| cleaned.strip_prefix(module))
            .unwrap_or(cleaned);
        [name, cleaned, bare, uncounted(bare)]
            .into_iter()
            .find_map(|name| {
                let direct = self.originals.get(name);
                // The model may also know the tool by its own name, from the system prompt.
                direct.or_else(|| self.originals.get(&*wire_name(name)))
            })
            .map(String::as_str)
    }

    /// The name of the tool as its owner knows it; of a tool that was not offered, what the
    /// model said, without a template's control tokens.
    #[must_use]
    pub fn original(&self, name: &str) -> String {
        self.original_of(name.to_owned())
    }

    /// The same of a name that nobody else needs.
    pub(crate) fn original_of(&self, name: String) -> String {
        let known = self.find(&name).unwrap_or_else(|| clean_name(&name));
        match known == name {
            true => name,
            false => known.to_owned(),
        }
    }
}
