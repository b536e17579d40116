//! The name that was most likely meant.
//!
//! Knows: how far two names are apart. Does not know: what they name.

/// The candidate nearest to a name, if one is near enough to be a guess worth making: the same
/// but for case and separators, or at most a third of it mistyped.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = folded(name);
    if plain.is_empty() {
        return None;
    }
    candidates
        .into_iter()
        .take(5_000)
        .filter(|candidate| candidate.len() <= 200 && name.len() <= 200)
        .map(|candidate| (distance(&plain, &folded(candidate)), candidate))
        .filter(|(distance, candidate)| {
            let length = plain.chars().count().max(candidate.chars().count());
            *distance <= (length / 3).max(1) && *distance < length
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A part of the other (`location` and `location_name`) counts as one step away.
fn distance(a: &str, b: &str) -> usize {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let edits = strsim::damerau_levenshtein(a, b);
    if short.len() >= 3 && (long.starts_with(short) || long.ends_with(short)) {
        edits.min(1)
    } else {
        edits
    }
}

fn folded(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' ' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_guessed_and_far_ones_are_not() {
        let names = ["city", "units", "max_results", "query"];
        for (typed, meant) in [
            ("citty", Some("city")),
            ("unit", Some("units")),
            ("maxResults", Some("max_results")),
            ("qurey", Some("query")),
            ("QUERY", Some("query")),
            ("temperature", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, names), meant, "{typed}");
        }
    }
}
