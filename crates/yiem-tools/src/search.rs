//! Which tools fit some words: BM25 over names, labels, descriptions and parameters (T-5).
//!
//! Knows: how rare a word is, where it stands, and what comes near it. Does not know: catalogs,
//! and what tools do.

mod related;
mod word;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use yiem_core::ToolDefinition;

use related::related;
use word::{asked, folded, stem, words};

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
/// The values of an `enum` say what can be chosen.
const CHOICE: f64 = 0.3;

/// How much a word counts that no tool has, for what comes near it: the same beginning, the
/// words that it is made of, one slip of the hand.
const BEGINNING: f64 = 0.4;
const PART: f64 = 0.8;
const SLIP: f64 = 0.7;

/// How much of a tool's score hangs on how much of the question it answers: of two tools the one
/// that has two words a little comes before the one that has one of them strongly.
const COVERAGE: f64 = 0.6;

/// How many parameters are read, and how far inside each other.
const MOST_PARAMETERS: usize = 100;
const DEEPEST_PARAMETER: usize = 4;
/// How many words of a question are looked for.
const MOST_WORDS: usize = 100;

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
/// that have one of the words, or one that means nearly the same.
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
        let mut taken = Taken::default();
        taken.take(&definition.name, NAME);
        if folded(&definition.label) != folded(&definition.name) {
            taken.take(&definition.label, LABEL);
        }
        let description = &definition.description;
        taken.take(description, DESCRIPTION);
        let first = description
            .split_once(". ")
            .map_or(description.as_str(), |(first, _)| first);
        taken.take(first, FIRST_SENTENCE);
        taken.parameters(&definition.input_schema, 0);
        let id = self.names.len();
        self.names.push(definition.name.as_str().into());
        self.lengths.push(taken.length);
        for (word, weight) in taken.weights {
            self.postings.entry(word).or_default().push((id, weight));
        }
    }

    /// The tools that fit the words best, best first; equal ones in the order of the tools.
    #[must_use]
    pub fn search(&self, words_wanted: &str, limit: usize) -> Vec<SearchHit> {
        let mut scores: HashMap<usize, f64> = HashMap::new();
        let mut answered: HashMap<usize, f64> = HashMap::new();
        let mut whole = 0.0;
        for word in self.known(words_wanted) {
            let found = self.score(&word);
            let rarity = self.rarity(found.len());
            whole += rarity;
            for (id, score) in found {
                *scores.entry(id).or_default() += score;
                *answered.entry(id).or_default() += rarity;
            }
        }
        for (id, score) in &mut scores {
            *score *= 1.0 - COVERAGE + COVERAGE * answered[id] / whole;
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

    /// What to look for: each word of the question with all that stands for it.
    fn known(&self, question: &str) -> Vec<Vec<(String, f64)>> {
        let (mut wanted, joined) = asked(question);
        wanted.truncate(MOST_WORDS);
        let written_apart = joined
            .into_iter()
            .filter(|word| self.postings.contains_key(word))
            .take(MOST_WORDS);
        let mut known: Vec<Vec<(String, f64)>> =
            written_apart.map(|word| vec![(word, 1.0)]).collect();
        for word in wanted {
            let others = related(&word);
            if self.postings.contains_key(&word) || !others.is_empty() {
                let mut all = vec![(word, 1.0)];
                all.extend(others.iter().cloned());
                known.push(all);
            } else {
                known.extend(self.near(&word));
            }
        }
        known
    }

    /// What a word can stand for that neither a tool nor the table has.
    fn near(&self, word: &str) -> Vec<Vec<(String, f64)>> {
        if let Some(parts) = self.parts(word) {
            return parts
                .into_iter()
                .map(|part| {
                    let mut all: Vec<_> = related(&part)
                        .iter()
                        .map(|(other, weight)| (other.clone(), weight * PART))
                        .collect();
                    all.push((part, PART));
                    all
                })
                .collect();
        }
        let near = |have: &dyn Fn(&str) -> bool, weight| -> Vec<(String, f64)> {
            let mut found: Vec<_> = self
                .postings
                .keys()
                .filter(|other| have(other))
                .map(|other| (other.clone(), weight))
                .collect();
            found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            found
        };
        let beginning = near(&|other| same_beginning(word, other), BEGINNING);
        let found = if beginning.is_empty() && word.len() <= 40 {
            near(&|other| one_slip(word, other), SLIP)
        } else {
            beginning
        };
        if found.is_empty() {
            Vec::new()
        } else {
            vec![found]
        }
    }

    /// The two words that a word is made of (`filesystem`), if tools have both.
    fn parts(&self, word: &str) -> Option<[String; 2]> {
        if !word.is_ascii() || word.len() > 40 {
            return None;
        }
        (3..word.len().saturating_sub(2))
            .map(|at| [stem(&word[..at]), stem(&word[at..])])
            .find(|parts| parts.iter().all(|part| self.postings.contains_key(part)))
    }

    /// How well each tool fits a word, of which the best of all that stands for it counts.
    fn score(&self, word: &[(String, f64)]) -> HashMap<usize, f64> {
        let mut best: HashMap<usize, f64> = HashMap::new();
        let parts = |word: &str, weight: f64| {
            let found = self.postings.get(word).map_or(&[][..], Vec::as_slice);
            found.iter().map(move |&(id, frequency)| {
                let norm = 1.0 - LENGTH + LENGTH * self.lengths[id] / self.mean_length;
                let part = frequency * (SATURATION + 1.0) / (frequency + SATURATION * norm);
                (id, weight * part)
            })
        };
        let (exact, other): (Vec<_>, Vec<_>) = word.iter().partition(|(_, weight)| *weight >= 1.0);
        for (word, weight) in other {
            for (id, score) in parts(word, *weight) {
                let best = best.entry(id).or_default();
                *best = best.max(score);
            }
        }
        // Words that mean the same are as rare as they are together.
        let rarity = self.rarity(best.len());
        for score in best.values_mut() {
            *score *= rarity;
        }
        for (word, weight) in exact {
            let rarity = self.rarity(self.postings.get(word).map_or(0, Vec::len));
            for (id, score) in parts(word, *weight) {
                let best = best.entry(id).or_default();
                *best = best.max(score * rarity);
            }
        }
        best
    }

    fn rarity(&self, having: usize) -> f64 {
        let (all, having) = (count(self.names.len()), count(having));
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }
}

/// The words of one tool.
#[derive(Default)]
struct Taken {
    weights: HashMap<String, f64>,
    length: f64,
    parameters: usize,
}

impl Taken {
    fn take(&mut self, text: &str, weight: f64) {
        for word in words(text) {
            *self.weights.entry(word).or_default() += weight;
            self.length += weight;
        }
    }

    /// The names and descriptions of parameters, those inside of others too.
    fn parameters(&mut self, schema: &Value, depth: usize) {
        if depth > DEEPEST_PARAMETER {
            return;
        }
        if let Some(items) = schema.get("items") {
            self.parameters(items, depth + 1);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            self.parameters += 1;
            if self.parameters > MOST_PARAMETERS {
                return;
            }
            self.take(name, PARAMETER);
            for key in ["title", "description"] {
                if let Some(text) = property.get(key).and_then(Value::as_str)
                    && folded(text) != folded(name)
                {
                    self.take(text, PARAMETER_DESCRIPTION);
                }
            }
            let choices = property.get("enum").and_then(Value::as_array);
            for choice in choices.into_iter().flatten().take(20) {
                self.take(choice.as_str().unwrap_or_default(), CHOICE);
            }
            self.parameters(property, depth + 1);
        }
    }
}

/// `percent` and `percentage`: one is the beginning of the other, and long enough to tell.
fn same_beginning(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let enough = if long.len() <= 2 * short.len() { 4 } else { 5 };
    short.len() >= enough && long.starts_with(short)
}

/// `calender` and `calendar`: one letter added, left out, changed or swapped with the next.
fn one_slip(a: &str, b: &str) -> bool {
    a.len().min(b.len()) >= 5
        && a.len().abs_diff(b.len()) <= 1
        && a.as_bytes()[0] == b.as_bytes()[0]
        && strsim::osa_distance(a, b) <= 1
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}
