//! Which words mean nearly the same.
//!
//! Knows: the table `related.txt`. Does not know: which words tools have.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::word::stem;

/// How much a word of the same group counts.
const SAME: f64 = 0.7;
/// How much a word counts for one that is a kind of it.
const KIND: f64 = 0.6;

static TABLE: LazyLock<HashMap<String, Vec<(String, f64)>>> =
    LazyLock::new(|| read(include_str!("related.txt")));

/// The stems that mean nearly the same as a stem, each with how much it counts.
pub(super) fn related(word: &str) -> &'static [(String, f64)] {
    TABLE.get(word).map_or(&[], Vec::as_slice)
}

fn read(text: &str) -> HashMap<String, Vec<(String, f64)>> {
    let mut table: HashMap<String, Vec<(String, f64)>> = HashMap::new();
    let mut add = |from: &str, to: &str, weight: f64| {
        if from == to {
            return;
        }
        let others = table.entry(from.to_owned()).or_default();
        match others.iter_mut().find(|(other, _)| other == to) {
            Some((_, known)) => *known = known.max(weight),
            None => others.push((to.to_owned(), weight)),
        }
    };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (same, kinds) = line.split_once(':').unwrap_or((line, ""));
        let same: Vec<String> = same.split_whitespace().map(stem).collect();
        for from in &same {
            for to in &same {
                add(from, to, SAME);
            }
        }
        for kind in kinds.split_whitespace().map(stem) {
            for to in &same {
                add(&kind, to, KIND);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{KIND, SAME, TABLE, read, related};

    #[test]
    fn a_group_stands_for_each_other_and_a_kind_leads_to_it_alone() {
        let table = read("# a line for people\npicture image : selfie sketch\n");
        assert_eq!(table["pictur"], [("imag".to_owned(), SAME)]);
        assert_eq!(
            table["selfi"],
            [("pictur".to_owned(), KIND), ("imag".to_owned(), KIND)]
        );
        assert!(table["imag"].iter().all(|(word, _)| word == "pictur"));
    }

    #[test]
    fn the_table_is_read_and_a_word_it_does_not_have_has_no_others() {
        assert!(TABLE.len() > 500);
        assert!(related("folder").is_empty() || !related("fold").is_empty());
        assert!(related("zyzzyva").is_empty());
    }
}
