//! What a question asks for, as far as the demonstration understands it.
//!
//! Knows: words for weather and time, where places stand in a sentence, follow-ups.
//! Does not know: which tools there are, nor what they answer. This is no understanding of
//! language: it is word lists, so that `yiem` can show an agent at work without a model.

use serde_json::{Value, json};
use yiem::{JsonObject, ToolArguments};

use super::place;
use words::{
    BEFORE_A_PLACE, BETWEEN_PLACES, NO_NAME, REFERRING, REGIONS, SHORTENED, TIME, UNITS, WEATHER,
};

mod words;

/// Something that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wish {
    /// A call of a tool.
    Call {
        /// The tool.
        name: String,
        /// Its arguments, perhaps unreadable.
        arguments: ToolArguments,
    },
    /// Which tools there are.
    Tools,
    /// Nothing but a greeting.
    Greeting,
    /// Nothing but thanks.
    Thanks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topic {
    Weather,
    Time,
}

#[derive(Clone, Debug, PartialEq)]
enum Spot {
    City(String),
    Zone(String),
}

/// What a conversation was about so far: what a follow-up leaves out is taken from there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Talk {
    topics: Vec<Topic>,
    spots: Vec<Spot>,
}

/// Topics and places that belong together.
#[derive(Clone, Debug, Default)]
struct Group {
    topics: Vec<Topic>,
    spots: Vec<Spot>,
    units: Option<String>,
    spot_first: bool,
    /// Whether it speaks of what was spoken of before ("there").
    refers: bool,
}

impl Talk {
    /// Takes in what the user says; gives what is asked for, nothing when it was not understood.
    /// `offered` are the names of the tools that there are.
    pub(crate) fn hear(&mut self, text: &str, offered: &[&str]) -> Vec<Wish> {
        if let Some(call) = plain_call(text, offered) {
            return vec![call];
        }
        let tokens = tokens(text);
        let mut wishes: Vec<Wish> = Vec::new();
        for group in self.complete(Reader::new(&tokens).read()) {
            self.topics.clone_from(&group.topics);
            if !group.spots.is_empty() {
                self.spots.clone_from(&group.spots);
            }
            for topic in &group.topics {
                for wish in calls(*topic, &group) {
                    if !wishes.contains(&wish) {
                        wishes.push(wish);
                    }
                }
            }
        }
        if wishes.is_empty() {
            wishes.extend(small_talk(&tokens));
        }
        wishes
    }

    /// Fills in what groups leave out: places and topics from the group before, then from the
    /// conversation. Groups without a topic mean nothing.
    fn complete(&self, mut groups: Vec<Group>) -> Vec<Group> {
        let mut topics = self.topics.clone();
        let mut spots = self.spots.clone();
        let mut units = None;
        for group in &mut groups {
            if group.topics.is_empty() {
                group.topics.clone_from(&topics);
            }
            if group.spots.is_empty() {
                group.spots.clone_from(&spots);
            }
            group.units = group.units.take().or(units);
            topics.clone_from(&group.topics);
            spots.clone_from(&group.spots);
            units = group.units.clone();
        }
        // Units that are told last (`… in Rome and Oslo, in fahrenheit`) hold for all.
        for group in &mut groups {
            group.units = group.units.take().or_else(|| units.clone());
        }
        groups.retain(|group| !group.topics.is_empty());
        groups
    }
}

fn calls(topic: Topic, group: &Group) -> Vec<Wish> {
    let call = |name: &str, mut args: JsonObject| {
        if topic == Topic::Weather
            && let Some(units) = &group.units
        {
            args.insert("units".into(), json!(units));
        }
        Wish::Call {
            name: name.into(),
            arguments: args.into(),
        }
    };
    let name = match topic {
        Topic::Weather => "getWeather",
        Topic::Time => "getTime",
    };
    if group.spots.is_empty() {
        return vec![call(name, JsonObject::new())];
    }
    let spot_args = |spot: &Spot| {
        let (key, value) = match (spot, topic) {
            (Spot::City(city), _) => ("city", city.clone()),
            (Spot::Zone(zone), Topic::Time) => ("timezone", zone.clone()),
            // The weather of a timezone is that of the city that it is named after.
            (Spot::Zone(zone), Topic::Weather) => {
                let city = zone.rsplit('/').next().unwrap_or(zone);
                ("city", city.replace('_', " "))
            }
        };
        JsonObject::from_iter([(key.to_owned(), Value::from(value))])
    };
    group
        .spots
        .iter()
        .map(|spot| call(name, spot_args(spot)))
        .collect()
}

/// `call NAME {…}`: a call as it is, of any tool, with whatever arguments.
fn plain_call(text: &str, offered: &[&str]) -> Option<Wish> {
    let text = text.trim();
    let (verb, rest) = text.split_once(char::is_whitespace)?;
    if !["call", "use", "run"].contains(&verb.to_lowercase().as_str()) {
        return None;
    }
    let rest = rest.trim_start();
    let rest = rest
        .strip_prefix("the tool ")
        .or(rest.strip_prefix("tool "))
        .unwrap_or(rest);
    let end = rest
        .find(|c: char| !(c.is_alphanumeric() || "_-./".contains(c)))
        .unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let name = name.trim_end_matches('.');
    let arguments = match rest.find(['{', '[']) {
        Some(at) => ToolArguments::read(rest[at..].trim()),
        None if offered.contains(&name) => ToolArguments::default(),
        None => return None,
    };
    (!name.is_empty()).then(|| Wish::Call {
        name: name.into(),
        arguments,
    })
}

fn small_talk(tokens: &[Token<'_>]) -> Option<Wish> {
    let has = |words: &[&str]| tokens.iter().any(|t| words.contains(&t.lower.as_str()));
    if has(&["tool", "tools", "abilities"]) {
        return Some(Wish::Tools);
    }
    if has(&["thanks", "thank", "thx", "cheers"]) {
        return Some(Wish::Thanks);
    }
    let short = tokens.iter().filter(|t| t.is_word()).count() <= 4;
    (short && has(&["hello", "hi", "hey", "good", "greetings", "howdy"])).then_some(Wish::Greeting)
}

/// A word or a sign, with what it is in small letters.
#[derive(Debug)]
struct Token<'a> {
    text: &'a str,
    lower: String,
}

impl Token<'_> {
    fn is_word(&self) -> bool {
        self.text.starts_with(char::is_alphanumeric)
    }

    fn is_capital(&self) -> bool {
        // Scripts without capitals are names as soon as they stand where one may stand.
        self.text
            .starts_with(|c: char| c.is_uppercase() || (c.is_alphabetic() && !c.is_lowercase()))
    }

    fn is(&self, words: &[&str]) -> bool {
        words.contains(&self.lower.as_str())
    }
}

/// Words with the signs inside them that belong to names, and every other sign alone.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let inside = |c: char| {
            c.is_alphanumeric() || "'’-/_+.".contains(c) || ('\u{300}'..='\u{36f}').contains(&c)
        };
        let end = if first.is_alphanumeric() {
            let end = rest.find(|c: char| !inside(c)).unwrap_or(rest.len());
            let word = rest[..end]
                .trim_end_matches(|c: char| "'’-/_+.".contains(c))
                .len();
            let saint = SHORTENED.contains(&rest[..word].to_lowercase().as_str());
            if saint && rest[word..].starts_with('.') {
                word + 1
            } else {
                word
            }
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(end);
        rest = after;
        if !token.trim().is_empty() {
            // "Tokyo's" is Tokyo, "what's" is no name in any case.
            let text = token
                .strip_suffix("'s")
                .or(token.strip_suffix("’s"))
                .unwrap_or(token);
            tokens.push(Token {
                text,
                lower: text.to_lowercase(),
            });
        }
    }
    tokens
}

/// One pass over the tokens, from left to right.
struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    groups: Vec<Group>,
    group: Group,
    /// Whether a name may stand here, though it is not known: after "in", after "and" behind a
    /// place, after "weather".
    may_name: bool,
    /// Whether a timezone was spoken of just before: any word is meant as one.
    means_zone: bool,
}

impl<'a> Reader<'a> {
    fn new(tokens: &'a [Token<'a>]) -> Self {
        Self {
            tokens,
            at: 0,
            groups: Vec::new(),
            group: Group::default(),
            may_name: false,
            means_zone: false,
        }
    }

    fn read(mut self) -> Vec<Group> {
        while let Some(token) = self.tokens.get(self.at) {
            let taken = self.units(token)
                || self.zone(token)
                || self.known_place()
                || self.topic(token)
                || self.named_place(token);
            if !taken {
                self.pass(token);
            }
        }
        self.close();
        self.groups
    }

    fn close(&mut self) {
        let group = std::mem::take(&mut self.group);
        let says_nothing =
            group.topics.is_empty() && group.spots.is_empty() && group.units.is_none();
        if !says_nothing || group.refers {
            self.groups.push(group);
        }
    }

    fn pass(&mut self, token: &Token<'_>) {
        self.at += 1;
        self.group.refers |= token.is(REFERRING);
        let after_place = !self.group.spots.is_empty();
        if token.is(BEFORE_A_PLACE) || (after_place && token.is(BETWEEN_PLACES)) {
            self.may_name = true;
        } else if !token.is(&["the", "city"]) {
            self.may_name = false;
            self.means_zone = false;
        }
    }

    fn units(&mut self, token: &Token<'_>) -> bool {
        if !token.is(UNITS) {
            return false;
        }
        let word = if token.lower == "centigrade" {
            "celsius"
        } else {
            &token.lower
        };
        self.group.units = Some(word.to_owned());
        self.at += 1;
        self.may_name = false;
        true
    }

    /// A timezone: `Asia/Tokyo`, `JST` in capitals, or any word after "timezone".
    fn zone(&mut self, token: &Token<'_>) -> bool {
        let zone = if token.text.contains('/') && token.text.split('/').all(|part| !part.is_empty())
        {
            Some(token.text.to_owned())
        } else if token.text.starts_with(char::is_uppercase)
            && (token.text.len() > 1 && !token.text.chars().any(char::is_lowercase))
        {
            place::abbreviation(token.text)
        } else {
            None
        };
        let meant = || {
            let word = self.means_zone && token.is_word() && !token.is(NO_NAME) && !token.is(TIME);
            word.then(|| place::abbreviation(token.text).unwrap_or_else(|| token.text.to_owned()))
        };
        let Some(zone) = zone.or_else(meant) else {
            return false;
        };
        self.at += 1;
        self.spot(Spot::Zone(zone));
        true
    }

    /// The longest name from here on that is known.
    fn known_place(&mut self) -> bool {
        for words in (1..=4.min(self.tokens.len() - self.at)).rev() {
            let here = &self.tokens[self.at..self.at + words];
            if !here.iter().all(Token::is_word) {
                continue;
            }
            let said = here.iter().map(|t| t.text).collect::<Vec<_>>().join(" ");
            // "the Netherlands" is a name with an article, "The Hague" is not.
            let article = said
                .strip_prefix("the ")
                .is_some_and(|rest| place::find(rest).is_some());
            let Some(found) = place::find(&said).filter(|_| !article) else {
                continue;
            };
            let first = self.at == 0 || !self.tokens[self.at - 1].is_word();
            let certain = self.may_name || (here[0].is_capital() && !first);
            if place::is_ambiguous(&said) && !certain {
                continue;
            }
            self.at += words;
            let name = found.name.map_or_else(|| titled(&said), str::to_owned);
            self.spot(Spot::City(name));
            self.skip_region();
            return true;
        }
        false
    }

    fn topic(&mut self, token: &Token<'_>) -> bool {
        let topic = if token.is(WEATHER) {
            Topic::Weather
        } else if token.is(TIME) {
            Topic::Time
        } else {
            return false;
        };
        // "time zone" is one word in two.
        let zone_follows = self
            .tokens
            .get(self.at + 1)
            .is_some_and(|next| next.is(&["zone"]));
        let is_zone = token.is(&["timezone"]) || (topic == Topic::Time && zone_follows);
        self.at += 1 + usize::from(is_zone && zone_follows);
        if !self.group.topics.is_empty() && !self.group.spots.is_empty() {
            self.close();
        }
        if !self.group.topics.contains(&topic) {
            self.group.spot_first |= self.group.topics.is_empty() && !self.group.spots.is_empty();
            self.group.topics.push(topic);
        }
        self.may_name = true;
        self.means_zone = is_zone;
        true
    }

    /// A name that is not known, where one may stand.
    fn named_place(&mut self, token: &Token<'_>) -> bool {
        let behind_topic = self.at > 0 && {
            let before = &self.tokens[self.at - 1];
            before.is(WEATHER) || before.is(TIME)
        };
        // Behind "the weather" without "in" only what is written like a name is one.
        let may = if behind_topic {
            self.may_name && token.is_capital()
        } else {
            self.may_name
        };
        let before_topic = token.is_capital()
            && self.at > 0
            && self
                .tokens
                .get(self.at + 1)
                .is_some_and(|next| next.is(WEATHER) || next.is(TIME));
        if !(may || before_topic) {
            return false;
        }
        let is_part = |t: &Token<'_>| {
            t.is_word()
                && !t.is(NO_NAME)
                && !t.is(WEATHER)
                && !t.is(TIME)
                && !t.is(UNITS)
                && !t.text.starts_with(|c: char| c.is_ascii_digit())
        };
        let words = self.tokens[self.at..]
            .iter()
            .take(5)
            .take_while(|t| is_part(t))
            .count();
        if words == 0 {
            return false;
        }
        let said: Vec<&str> = self.tokens[self.at..self.at + words]
            .iter()
            .map(|t| t.text)
            .collect();
        self.at += words;
        self.spot(Spot::City(titled(&said.join(" "))));
        self.skip_region();
        true
    }

    /// `Paris, France`: what tells only where the place lies.
    fn skip_region(&mut self) {
        let [comma, region, ..] = &self.tokens[self.at..] else {
            return;
        };
        let known = place::find(region.text).is_some_and(|p| p.name.is_none());
        let state = region.text.len() == 2 && region.text.chars().all(|c| c.is_ascii_uppercase());
        let ends = self
            .tokens
            .get(self.at + 2)
            .is_none_or(|next| !next.is_word() && next.text != ",");
        let country = known && REGIONS.contains(&region.lower.as_str());
        if comma.text == "," && ends && (state || country) {
            self.at += 2;
        }
    }

    fn spot(&mut self, spot: Spot) {
        if self.group.spot_first && !self.group.topics.is_empty() {
            self.close();
        }
        if !self.group.spots.contains(&spot) {
            self.group.spots.push(spot);
        }
        self.may_name = false;
        self.means_zone = false;
    }
}

/// A name in small letters as it would be written; one with capitals stays as it was said.
fn titled(name: &str) -> String {
    if name.chars().any(char::is_uppercase) {
        return name.to_owned();
    }
    let mut titled = String::with_capacity(name.len());
    let mut begins = true;
    for c in name.chars() {
        if begins {
            titled.extend(c.to_uppercase());
        } else {
            titled.push(c);
        }
        begins = c == ' ' || c == '-';
    }
    titled
}

#[cfg(test)]
mod tests;
