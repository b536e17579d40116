//! Which tools fit some words: BM25 over names, labels, descriptions and parameters (T-5).
//!
//! Knows: words, their stems, how rare they are. Does not know: catalogs, and what tools do.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use yiem_core::ToolDefinition;

/// How soon more of the same word stops counting (BM25 k₁).
const SATURATION: f64 = 1.2;
/// How much a long text counts less (BM25 b).
const LENGTH: f64 = 0.55;

/// Where a word stands, and how much it says there.
const NAME: f64 = 2.6;
const LABEL: f64 = 2.0;
const DESCRIPTION: f64 = 1.0;
/// The first sentence of a description says what the tool does.
const FIRST_SENTENCE: f64 = 1.0;
const PARAMETER: f64 = 0.6;
const PARAMETER_DESCRIPTION: f64 = 0.3;

/// A tool that fits some words.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    name: Arc<str>,
    score: f64,
}

impl SearchHit {
    /// The name that the tool is offered by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How well it fits; only to be compared within one search.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.score
    }
}

/// An index of tools by words. Built once for a set of tools; a search looks only at the tools
/// that have one of the words.
#[derive(Debug, Default)]
pub struct SearchIndex {
    names: Vec<Arc<str>>,
    lengths: Vec<f64>,
    mean_length: f64,
    /// Per stem the tools that have it, and how much of it.
    postings: HashMap<String, Vec<(usize, f64)>>,
}

impl SearchIndex {
    /// Indexes these tools.
    pub fn new<'d>(definitions: impl IntoIterator<Item = &'d ToolDefinition>) -> Self {
        let mut index = Self::default();
        for definition in definitions {
            index.add(definition);
        }
        let total: f64 = index.lengths.iter().sum();
        index.mean_length = (total / count(index.lengths.len().max(1))).max(1.0);
        index
    }

    fn add(&mut self, definition: &ToolDefinition) {
        let mut weights: HashMap<String, f64> = HashMap::new();
        let mut length = 0.0;
        let mut take = |text: &str, weight: f64| {
            for word in words(text) {
                *weights.entry(word).or_default() += weight;
                length += weight;
            }
        };
        take(&definition.name, NAME);
        if folded(&definition.label) != folded(&definition.name) {
            take(&definition.label, LABEL);
        }
        let description = &definition.description;
        take(description, DESCRIPTION);
        let first = description
            .split_once(". ")
            .map_or(description.as_str(), |(first, _)| first);
        take(first, FIRST_SENTENCE);
        let properties = definition
            .input_schema
            .get("properties")
            .and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten().take(100) {
            take(name, PARAMETER);
            if let Some(text) = property.get("description").and_then(Value::as_str) {
                take(text, PARAMETER_DESCRIPTION);
            }
        }
        let id = self.names.len();
        self.names.push(definition.name.as_str().into());
        self.lengths.push(length);
        for (word, weight) in weights {
            self.postings.entry(word).or_default().push((id, weight));
        }
    }

    /// The tools that fit the words best, best first; equal ones in the order of the tools.
    #[must_use]
    pub fn search(&self, words_wanted: &str, limit: usize) -> Vec<SearchHit> {
        let mut scores: HashMap<usize, f64> = HashMap::new();
        let mut wanted = words(words_wanted);
        wanted.sort_unstable();
        wanted.dedup();
        for word in &wanted {
            if self.postings.contains_key(word) {
                self.score(word, 1.0, &mut scores);
            } else {
                // A word that no tool has: those that begin as it does, or that it begins with.
                for other in self
                    .postings
                    .keys()
                    .filter(|other| same_beginning(word, other))
                {
                    self.score(other, 0.5, &mut scores);
                }
            }
            for other in related(word) {
                self.score(&stem(other), 0.6, &mut scores);
            }
        }
        let whole = folded(words_wanted);
        for (id, name) in self.names.iter().enumerate() {
            if !whole.is_empty() && folded(name) == whole {
                *scores.entry(id).or_default() += 1_000.0;
            }
        }
        let mut hits: Vec<(usize, f64)> = scores.into_iter().collect();
        hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        hits.into_iter()
            .take(limit)
            .map(|(id, score)| SearchHit {
                name: Arc::clone(&self.names[id]),
                score,
            })
            .collect()
    }

    fn score(&self, word: &str, weight: f64, scores: &mut HashMap<usize, f64>) {
        let Some(postings) = self.postings.get(word) else {
            return;
        };
        let (all, having) = (count(self.names.len()), count(postings.len()));
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        for &(id, frequency) in postings {
            let norm = 1.0 - LENGTH + LENGTH * self.lengths[id] / self.mean_length;
            let part = frequency * (SATURATION + 1.0) / (frequency + SATURATION * norm);
            *scores.entry(id).or_default() += weight * rarity * part;
        }
    }
}

/// `percent` and `percentage`: one is the beginning of the other, and long enough to tell.
fn same_beginning(a: &str, b: &str) -> bool {
    a.len().min(b.len()) >= 5 && (a.starts_with(b) || b.starts_with(a))
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

/// The words of a text as stems: parted at anything but letters and digits and inside
/// `camelCase`, in lower case, without those that say nothing.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let mut chars = text.chars().take(20_000).peekable();
    while let Some(c) = chars.next() {
        let next_is_lower = chars.peek().is_some_and(|n| n.is_lowercase());
        let hump =
            c.is_uppercase() && (before.is_lowercase() || before.is_uppercase() && next_is_lower);
        if (!c.is_alphanumeric() || hump) && !word.is_empty() {
            found.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    if !word.is_empty() {
        found.push(word);
    }
    found.retain(|w| !EMPTY_WORDS.contains(&w.as_str()));
    found.iter_mut().for_each(|w| *w = stem(w));
    found
}

fn folded(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Words that stand in questions and descriptions alike and tell no tools apart.
const EMPTY_WORDS: [&str; 74] = [
    "a",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "by",
    "can",
    "could",
    "do",
    "does",
    "for",
    "from",
    "has",
    "have",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "like",
    "may",
    "me",
    "my",
    "need",
    "of",
    "on",
    "one",
    "or",
    "our",
    "please",
    "should",
    "so",
    "some",
    "something",
    "such",
    "tell",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "to",
    "tool",
    "tools",
    "us",
    "use",
    "used",
    "using",
    "want",
    "was",
    "we",
    "what",
    "when",
    "where",
    "which",
    "who",
    "will",
    "with",
    "would",
    "you",
    "your",
    "s",
];

/// A word without its ending: a few steps of what English does, enough that `files`, `filing`
/// and `filed` meet.
fn stem(word: &str) -> String {
    if word.chars().count() < 4 || !word.is_ascii() || word == "news" {
        return word.to_owned();
    }
    let mut stem = word.to_owned();
    for (ending, instead, least) in [
        ("ies", "y", 3),
        ("sses", "ss", 2),
        ("ches", "ch", 3),
        ("shes", "sh", 3),
        ("xes", "x", 2),
        ("s", "", 3),
    ] {
        if let Some(head) = stem.strip_suffix(ending)
            && head.len() >= least
            && !(ending == "s" && head.ends_with(['s', 'u', 'i']))
        {
            stem = format!("{head}{instead}");
            break;
        }
    }
    for (ending, instead, least) in [
        ("ational", "ate", 3),
        ("ization", "ize", 3),
        ("ations", "ate", 3),
        ("ation", "ate", 3),
        ("ition", "", 4),
        ("ingly", "", 3),
        ("ing", "", 3),
        ("edly", "", 3),
        ("ied", "y", 3),
        ("ed", "", 3),
        ("ment", "", 4),
        ("ness", "", 3),
        ("ally", "al", 3),
        ("ly", "", 3),
        ("er", "", 4),
        ("or", "", 4),
    ] {
        if let Some(head) = stem.strip_suffix(ending)
            && head.len() >= least
        {
            stem = undoubled(&format!("{head}{instead}"));
            break;
        }
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    stem
}

/// `runn` is `run`, `stopp` is `stop`.
fn undoubled(stem: &str) -> String {
    let bytes = stem.as_bytes();
    match bytes {
        [.., a, b] if a == b && !b"aeiolsz".contains(a) && bytes.len() > 3 => {
            stem[..stem.len() - 1].to_owned()
        }
        _ => stem.to_owned(),
    }
}

/// Words that mean nearly the same to people who ask and people who describe tools.
const RELATED: &[&[&str]] = &[
    &[
        "get", "fetch", "retrieve", "read", "show", "look", "view", "load",
    ],
    &["find", "search", "lookup", "query", "locate", "discover"],
    &["make", "create", "add", "new", "generate", "build", "start"],
    &[
        "delete", "remove", "erase", "drop", "discard", "rid", "clear",
    ],
    &[
        "change", "update", "edit", "modify", "alter", "rename", "set", "adjust",
    ],
    &["send", "post", "deliver", "mail", "email", "notify"],
    &["list", "enumerate", "overview", "all"],
    &["folder", "directory", "dir"],
    &["file", "document", "path"],
    &["picture", "image", "photo"],
    &["message", "note", "text", "reply"],
    &["run", "execute", "launch", "perform", "invoke"],
    &["compare", "diff", "difference", "versus"],
    &["copy", "duplicate", "clone"],
    &["move", "relocate", "transfer"],
    &["meeting", "event", "appointment", "calendar", "schedule"],
    &["bug", "issue", "ticket", "problem", "defect"],
    &[
        "web", "internet", "online", "url", "website", "page", "site",
    ],
    &["database", "table", "sql", "record", "row"],
    &[
        "money", "payment", "charge", "invoice", "bill", "price", "cost",
    ],
    &["person", "user", "people", "member", "contact", "customer"],
    &["weather", "forecast", "temperature", "rain", "umbrella"],
    &["time", "clock", "hour", "date", "timezone"],
    &["remember", "memory", "store", "save", "keep"],
    &[
        "translate",
        "language",
        "english",
        "french",
        "german",
        "spanish",
        "italian",
        "portuguese",
        "japanese",
        "chinese",
        "korean",
        "russian",
        "arabic",
        "hindi",
    ],
    &[
        "currency", "exchange", "euro", "dollar", "yen", "franc", "sterling", "rupee",
    ],
    &["map", "route", "directions", "navigate", "drive"],
    &["commit", "history", "log", "revision"],
    &["upload", "attach", "put"],
    &["download", "export"],
];

fn related(word: &str) -> Vec<&'static str> {
    RELATED
        .iter()
        .filter(|group| group.iter().any(|w| stem(w) == *word))
        .flat_map(|group| group.iter().copied())
        .filter(|w| stem(w) != *word)
        .collect()
}
