//! Text without a secret.
//!
//! Knows: where a secret stands in a text. Does not know: where it comes from.

/// From this length on a secret is taken out wherever it stands.
const LONG: usize = 8;

/// The text with `***` in place of the secret. A short one (`k`, `test`, as people give servers
/// that want none) is taken out only where it stands as a word of its own, so that it does not
/// tear holes into what a server says.
pub(super) fn without(text: &str, secret: &str) -> String {
    if secret.is_empty() {
        return text.to_owned();
    }
    if secret.len() >= LONG {
        return text.replace(secret, "***");
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, found) in text.match_indices(secret) {
        let end = at + found.len();
        let before = text[..at].chars().next_back();
        let after = text[end..].chars().next();
        let inside = |neighbour: Option<char>| neighbour.is_some_and(char::is_alphanumeric);
        if !inside(before) && !inside(after) {
            out.push_str(&text[from..at]);
            out.push_str("***");
            from = end;
        }
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn a_secret_is_hidden_and_words_that_hold_a_short_one_stay() {
        for (text, secret, left) in [
            ("bad key sk-12345678.", "sk-12345678", "bad key ***."),
            ("xsk-12345678x", "sk-12345678", "x***x"),
            ("check the key k: k", "k", "check the key ***: ***"),
            (
                "\"test\" is tested, key=test",
                "test",
                "\"***\" is tested, key=***",
            ),
            ("é-é", "é", "***-***"),
            ("nothing", "", "nothing"),
        ] {
            assert_eq!(without(text, secret), left, "{text}");
        }
    }
}
