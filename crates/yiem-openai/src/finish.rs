//! What the word means that a server gives as the reason of an end.
//!
//! Knows: vendors' words, as data, and parts of words that tell the meaning of one not seen
//! before. Does not know: whether calls came, which beats most reasons.

use yiem_core::ModelErrorKind;

/// The meaning of a `finish_reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    End,
    Calls,
    Length,
    Filter,
    Failure(ModelErrorKind),
    /// A word of no known meaning; it counts as an end.
    Unknown,
}

use Meaning::{Calls, End, Failure, Filter, Length};
use ModelErrorKind::{Malformed, Overloaded, Quota, RateLimit, Server};

/// Whole words, without regard to case, with `_` for whatever stands between letters.
const WORDS: &[(&str, Meaning)] = &[
    ("stop", End),
    ("eos", End),
    ("eos_token", End),
    ("end", End),
    ("end_turn", End),
    ("end_of_text", End),
    ("end_of_turn", End),
    ("im_end", End),
    ("stop_sequence", End),
    ("stop_token", End),
    ("stop_word", End),
    ("complete", End),
    ("completed", End),
    ("finish", End),
    ("finished", End),
    ("done", End),
    ("success", End),
    ("tool_calls", Calls),
    ("tool_call", Calls),
    ("tool_use", Calls),
    ("function_call", Calls),
    ("function_calls", Calls),
    ("length", Length),
    ("max_tokens", Length),
    ("max_output_tokens", Length),
    ("max_completion_tokens", Length),
    ("max_new_tokens", Length),
    ("max_length", Length),
    ("model_length", Length),
    ("model_context_window_exceeded", Length),
    ("limit", Length),
    ("incomplete", Length),
    ("num_predict", Length),
    ("error_limit", Length),
    ("content_filter", Filter),
    ("safety", Filter),
    ("recitation", Filter),
    ("blocklist", Filter),
    ("spii", Filter),
    ("refusal", Filter),
    ("sensitive", Filter),
    ("guardrail_intervened", Filter),
    ("language", Filter),
    ("risk", Filter),
    ("unexpected_tool_call", Failure(Malformed)),
    ("too_many_tool_calls", Failure(Malformed)),
    ("insufficient_system_resource", Failure(Overloaded)),
    ("abort", Failure(Server)),
    ("aborted", Failure(Server)),
    ("cancelled", Failure(Server)),
    ("canceled", Failure(Server)),
    ("timeout", Failure(Server)),
    ("oom", Failure(Overloaded)),
];

/// Parts of a word that tell its meaning; the first that fits counts.
const PARTS: &[(&str, Meaning)] = &[
    ("toxic", Filter),
    ("malformed", Failure(Malformed)),
    ("invalid", Failure(Malformed)),
    ("missing", Failure(Malformed)),
    ("bad_", Failure(Malformed)),
    ("parse_error", Failure(Malformed)),
    ("parser_error", Failure(Malformed)),
    ("parsing_error", Failure(Malformed)),
    ("rate_limit", Failure(RateLimit)),
    ("throttl", Failure(RateLimit)),
    ("quota", Failure(Quota)),
    ("no_resource", Failure(Overloaded)),
    ("out_of_memory", Failure(Overloaded)),
    ("resource", Failure(Overloaded)),
    ("overload", Failure(Overloaded)),
    ("capacity", Failure(Overloaded)),
    ("busy", Failure(Overloaded)),
    ("error", Failure(Server)),
    ("fail", Failure(Server)),
    ("exception", Failure(Server)),
    ("timed_out", Failure(Server)),
    ("unavailable", Failure(Server)),
    ("disconnect", Failure(Server)),
    ("crash", Failure(Server)),
    ("abort", Failure(Server)),
    ("cancel", Failure(Server)),
    ("interrupt", Failure(Server)),
    ("filter", Filter),
    ("safety", Filter),
    ("sensitive", Filter),
    ("moderat", Filter),
    ("prohibited", Filter),
    ("block", Filter),
    ("policy", Filter),
    ("unsafe", Filter),
    ("harm", Filter),
    ("refus", Filter),
    ("guardrail", Filter),
    ("flagged", Filter),
    ("recitation", Filter),
    ("inappropriate", Filter),
    ("length", Length),
    ("max_token", Length),
    ("token_limit", Length),
    ("tokens_limit", Length),
    ("token_budget", Length),
    ("out_of_token", Length),
    ("max_output", Length),
    ("output_limit", Length),
    ("too_long", Length),
    ("context_window", Length),
    ("truncat", Length),
    ("tool_call", Calls),
    ("tool_use", Calls),
    ("function_call", Calls),
    ("eos", End),
    ("stop", End),
];

/// Whether it is a word at all, and not how a program writes that it has none.
pub(crate) fn is_word(word: &str) -> bool {
    !["null", "none", "undefined", "nil"]
        .iter()
        .any(|none| word.trim().eq_ignore_ascii_case(none))
        && !word.trim().is_empty()
}

/// Reads the word by its meaning.
pub(crate) fn meaning(word: &str) -> Meaning {
    let known = |word: &str| {
        let found = WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, meaning)| *meaning)
    };
    // Most come as they stand in the list.
    if let Some(meaning) = known(word) {
        return meaning;
    }
    let word = plain(word);
    if let Some(meaning) = known(&word) {
        return meaning;
    }
    PARTS
        .iter()
        .find(|(part, _)| word.contains(part))
        .map_or(Meaning::Unknown, |(_, meaning)| *meaning)
}

/// Lower case; what is no letter or digit, and a border between lower and upper case, is `_`.
pub(crate) fn plain(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut lower = false;
    for c in word.trim().chars() {
        if c.is_alphanumeric() {
            if lower && c.is_uppercase() {
                out.push('_');
            }
            lower = c.is_lowercase();
            out.extend(c.to_lowercase());
        } else {
            lower = false;
            if !out.is_empty() && !out.ends_with('_') {
                out.push('_');
            }
        }
    }
    out.truncate(out.trim_end_matches('_').len());
    out
}
