//! Texts of a function: its doc comment, the words of its name.
//!
//! Knows: how doc comments come as attributes. Does not know: what is made of them.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// A doc comment as text: its lines without the space after the slashes.
pub(crate) fn doc_comment(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(ExprLit {
                lit: Lit::Str(line),
                ..
            }) = &pair.value
        {
            // A block comment is one attribute with line breaks, a line comment one without.
            for line in line.value().split('\n') {
                lines.push(line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned());
            }
        }
    }
    lines.join("\n").trim().to_owned()
}

/// `get_weather` as `Get Weather`.
pub(crate) fn label(name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for c in name.chars() {
        let new_word = before == '_' || c.is_uppercase() && before.is_lowercase();
        if c != '_' {
            match words.last_mut().filter(|_| !new_word) {
                Some(word) => word.push(c),
                None => words.push(c.to_uppercase().collect()),
            }
        }
        before = c;
    }
    words.join(" ")
}

/// An identifier as text, `r#type` as `type`.
pub(crate) fn plain(ident: &syn::Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn a_label_is_the_words_of_a_name() {
        for (name, want) in [
            ("get_weather", "Get Weather"),
            ("getWeather", "Get Weather"),
            ("ping", "Ping"),
            ("list_all_2", "List All 2"),
            ("_hidden", "Hidden"),
        ] {
            assert_eq!(label(name), want);
        }
    }
}
