//! The words of a text, in the form in which they are compared.
//!
//! Knows: where words end, which say nothing, and their stems. Does not know: what they mean.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// How much of a text is read.
const LONGEST: usize = 20_000;

/// The words of a text as stems: parted at anything but letters and digits and inside
/// `camelCase`, in lower case, without those that say nothing. What a hyphen ties is there as
/// one word as well (`to-do`, `todo`), and writing without spaces is there in pairs of signs.
pub(super) fn words(text: &str) -> Vec<String> {
    let pieces = pieces(text);
    let mut found = Vec::with_capacity(pieces.len());
    for (at, piece) in pieces.iter().enumerate() {
        if piece.text.chars().any(without_spaces) {
            found.extend(pairs(&piece.text));
            continue;
        }
        if let Some(next) = pieces.get(at + 1).filter(|_| piece.tied) {
            found.push(stem(&format!("{}{}", piece.text, next.text)));
        }
        if !EMPTY.contains(piece.text.as_str()) {
            found.push(stem(&piece.text));
        }
    }
    found
}

/// The words of a question: those of a text, and what neighbours say when they are written as
/// one (`screen shot`), each with what came before it. What is expressly not wanted (`without
/// deleting it`) is left out.
pub(super) fn asked(text: &str) -> (Vec<String>, Vec<String>) {
    let pieces = pieces(text);
    let mut kept = String::new();
    let mut joined = Vec::new();
    let mut before: Option<&str> = None;
    for piece in &pieces {
        let word = piece.text.as_str();
        let unwanted = before.is_some_and(|b| ["without", "not", "never", "than"].contains(&b))
            && word.ends_with("ing")
            && word.len() > 4;
        if unwanted {
            before = None;
            continue;
        }
        if let Some(before) = before
            && before.len() + word.len() <= 40
        {
            joined.push(stem(&format!("{before}{word}")));
        }
        kept.push_str(word);
        kept.push(if piece.tied { '-' } else { ' ' });
        before = Some(word);
    }
    let mut wanted = words(&kept);
    wanted.sort_unstable();
    wanted.dedup();
    joined.sort_unstable();
    joined.dedup();
    joined.retain(|w| wanted.binary_search(w).is_err());
    (wanted, joined)
}

/// Letters and digits alone, in lower case: what is left of `get_weather` and `Get weather`.
pub(super) fn folded(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

struct Piece {
    text: String,
    /// A hyphen ties it to the next.
    tied: bool,
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let mut chars = text.chars().take(LONGEST).peekable();
    let mut end = |word: &mut String, tied| {
        if !word.is_empty() {
            let text = std::mem::take(word);
            found.push(Piece { text, tied });
        }
    };
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        let hump = c.is_uppercase()
            && (before.is_lowercase() || before.is_uppercase() && next.is_lowercase());
        let apostrophe = matches!(c, '\'' | '’') && next.is_alphabetic();
        if apostrophe && !word.is_empty() {
            // `don't` is one word; what comes after the apostrophe in `Ana's` is dropped below.
            before = c;
            word.push('\'');
            continue;
        }
        if !c.is_alphanumeric() || hump {
            end(&mut word, c == '-' && next.is_alphabetic());
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    end(&mut word, false);
    for piece in &mut found {
        if let Some((head, tail)) = piece.text.split_once('\'') {
            piece.text = match tail {
                "t" => "not".to_owned(),
                _ => head.to_owned(),
            };
        }
    }
    found
}

/// Han, kana, Hangul, Thai: a word's end cannot be seen.
fn without_spaces(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1100}'..='\u{11ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn pairs(text: &str) -> Vec<String> {
    let signs: Vec<char> = text.chars().collect();
    if signs.len() < 2 {
        return vec![text.to_owned()];
    }
    signs.windows(2).map(|w| w.iter().collect()).collect()
}

/// Words that stand in questions and descriptions alike and tell no tools apart.
static EMPTY: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "a an and any are as at be been being both but by can could did do does doing done for from \
    had has have having he her him his how i if in into is it its just let like may me might \
    mine must my need no not now of off on one only onto or our out own please s shall she \
    should so some something somewhere such tell than that the their them then there these \
    they thing things this those through to too tool tools upon us use used uses using very \
    via want wants was we were what when where whether which while who whom whose why will \
    with within without would yet you your"
        .split_ascii_whitespace()
        .collect()
});

/// What does not follow the rules of [`stem`].
static IRREGULAR: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    "ate:eat eaten:eat began:begin begun:begin bought:buy brought:bring built:build \
    caught:catch children:child chose:choose chosen:choose conversion:convert \
    criteria:criterion decision:decide description:describe did:do done:do drawn:draw \
    drew:draw driven:drive drove:drive feet:foot felt:feel flew:fly flown:fly fought:fight \
    found:find gave:give given:give gone:go got:get gotten:get grew:grow grown:grow heard:hear \
    held:hold hidden:hide hid:hide indices:index indexes:index kept:keep knew:know known:know \
    led:lead left:leave lent:lend lost:lose made:make matrices:matrix meant:mean men:man \
    met:meet mice:mouse movies:movie paid:pay permission:permit permitted:permit \
    persons:person ran:run rung:ring said:say sang:sing sat:sit saw:see seen:see sent:send \
    shown:show shrank:shrink shrunk:shrink sold:sell sought:seek spent:spend spoke:speak \
    spoken:speak stood:stand subscription:subscribe sung:sing taken:take taught:teach \
    thought:think threw:throw thrown:throw told:tell took:take understood:understand \
    vertices:vertex went:go withdrawn:withdraw woke:wake woken:wake women:woman won:win \
    written:write wrote:write"
        .split_ascii_whitespace()
        .filter_map(|pair| pair.split_once(':'))
        .collect()
});

/// Words that only look as if they had an ending.
static WHOLE: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "address amount archive bed business canvas centre comment during element evening feed \
    letter morning news number offer paper process red series shed speed spring status string \
    thing water"
        .split_ascii_whitespace()
        .collect()
});

/// A word without its ending: a few steps of what English does, enough that `files`, `filing`
/// and `filed` meet. Other languages keep their words.
pub(super) fn stem(word: &str) -> String {
    if word.len() < 3 || !word.is_ascii() {
        return word.to_owned();
    }
    if let Some(regular) = IRREGULAR.get(word) {
        return stem(regular);
    }
    if word.len() < 4 || WHOLE.contains(word) {
        return word.to_owned();
    }
    let mut stem = word.to_owned();
    for endings in [&PLURAL[..], &INFLECTED, &DERIVED] {
        for &(ending, instead, least) in endings {
            if let Some(head) = stem.strip_suffix(ending)
                && head.len() >= least
                && !(ending == "s" && head.ends_with(['s', 'u', 'i']))
            {
                stem = undoubled(format!("{head}{instead}"));
                break;
            }
        }
        if WHOLE.contains(stem.as_str()) {
            return stem;
        }
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    stem
}

/// An ending, what stands in its place, and how much has to be before it.
type Ending = (&'static str, &'static str, usize);

const PLURAL: [Ending; 6] = [
    ("ies", "y", 3),
    ("sses", "ss", 2),
    ("ches", "ch", 3),
    ("shes", "sh", 3),
    ("xes", "x", 2),
    ("s", "", 3),
];

const INFLECTED: [Ending; 6] = [
    ("ingly", "", 3),
    ("ing", "", 3),
    ("edly", "", 3),
    ("ied", "y", 3),
    ("ed", "", 3),
    ("ly", "", 4),
];

const DERIVED: [Ending; 13] = [
    ("ification", "ify", 3),
    ("ational", "ate", 3),
    ("ization", "ize", 3),
    ("ation", "ate", 3),
    ("ition", "", 4),
    ("ion", "", 5),
    ("ment", "", 3),
    ("ness", "", 3),
    ("ally", "al", 3),
    ("al", "", 5),
    ("ery", "", 4),
    ("er", "", 4),
    ("or", "", 4),
];

/// `runn` is `run`, `stopp` is `stop`.
fn undoubled(mut stem: String) -> String {
    if let [.., a, b] = stem.as_bytes()
        && a == b
        && !b"aeiolsz".contains(a)
        && stem.len() > 3
    {
        stem.pop();
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::{asked, stem, words};

    #[test]
    fn forms_of_a_word_meet_and_other_words_do_not() {
        for forms in [
            "file files filed filing",
            "deliver delivers delivered delivering delivery",
            "filter filters filtered filtering",
            "convert converts converted converter conversion",
            "translate translates translated translating translation translator",
            "stop stops stopped stopping",
            "notify notifies notified notification",
            "create creates created creating creation creator",
            "reply replies replied replying",
            "run runs ran running runner",
            "pay pays paid payment payments",
            "send sends sent sending sender",
            "city cities",
            "box boxes",
            "permit permits permitted permission",
            "comment comments commented",
        ] {
            let mut stems: Vec<String> = forms.split(' ').map(stem).collect();
            stems.dedup();
            assert_eq!(stems.len(), 1, "{forms}: {stems:?}");
        }
        for (one, other) in [
            ("comment", "com"),
            ("archive", "arch"),
            ("news", "new"),
            ("thing", "the"),
            ("number", "numb"),
        ] {
            assert_ne!(stem(one), stem(other));
        }
    }

    #[test]
    fn words_end_at_humps_lines_and_hyphens() {
        for (text, expected) in [
            ("getHTTPStatus", "get http status"),
            ("list_pull-requests", "list pullrequest pull request"),
            ("my to-do list", "todo list"),
            ("Ana's file isn't here", "ana fil her"),
            ("天气预报", "天气 气预 预报"),
            ("", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_wanted_is_not_looked_for() {
        assert_eq!(asked("hide it without deleting it").0, ["hid"]);
        assert!(
            asked("a photo without background")
                .0
                .contains(&stem("background"))
        );
        assert!(asked("a screen shot").1.contains(&stem("screenshot")));
    }
}
