//! What a server asks a person, one line at a time (M-9).
//!
//! Knows: which field comes next, what a line means for it, when all is known. Does not know: the screen, or who
//! waits for the answer.

use serde_json::{Map, Value};
use yiem::mcp::{Elicitation, ElicitationAnswer, ElicitationKind};

use super::slash::Slash;
use crate::screen::on_one_line;

/// How many characters of a server's words are shown.
const SHOWN: usize = 400;
/// An address is shown whole: a person decides by it.
const ADDRESS: usize = 4_000;

/// A question of a server on its way to an answer.
#[derive(Debug)]
pub(super) struct Form {
    server: String,
    message: String,
    /// The address to visit, in place of fields.
    url: Option<String>,
    fields: Vec<Field>,
    values: Map<String, Value>,
    at: usize,
    /// What is said next, once a line was taken.
    next: Option<String>,
}

#[derive(Debug)]
struct Field {
    name: String,
    schema: Value,
    required: bool,
}

/// What a line came to.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Ask this next.
    Ask(String),
    /// That is the answer.
    Done(ElicitationAnswer),
}

impl Form {
    pub(super) fn new(question: &Elicitation) -> Self {
        let (url, fields) = match &question.kind {
            ElicitationKind::Url { url, .. } => (Some(url.clone()), Vec::new()),
            ElicitationKind::Form { schema } => (None, fields(schema)),
            _ => (None, Vec::new()),
        };
        Self {
            server: question.server.to_string(),
            message: question.message.clone(),
            url,
            fields,
            values: Map::new(),
            at: 0,
            next: None,
        }
    }

    /// What is said before the next line.
    pub(super) fn text(&self) -> String {
        self.next.clone().unwrap_or_else(|| self.begin())
    }

    /// What is said before the first line.
    pub(super) fn begin(&self) -> String {
        let asks = format!(
            "{} asks: {}",
            on_one_line(&self.server, 80),
            on_one_line(&self.message, SHOWN)
        );
        match &self.url {
            Some(url) => format!(
                "{asks} — it wants you to open {} ; [y]es when you have, [n]o",
                on_one_line(url, ADDRESS)
            ),
            None if self.fields.is_empty() => format!("{asks} — [y]es or [n]o"),
            None => format!("{asks} (/no declines)\n{}", self.prompt()),
        }
    }

    /// Takes a line of the person's.
    pub(super) fn take(&mut self, line: &str) -> Step {
        let step = self.step(line);
        if let Step::Ask(text) = &step {
            self.next = Some(text.clone());
        }
        step
    }

    fn step(&mut self, line: &str) -> Step {
        let line = line.trim();
        if Slash::read(line) == Some(Slash::No) {
            return Step::Done(ElicitationAnswer::Decline);
        }
        let Some(field) = self.fields.get(self.at) else {
            return Step::Done(match yes_or_no(line) {
                Some(true) => ElicitationAnswer::Accept(Map::new()),
                _ => ElicitationAnswer::Decline,
            });
        };
        match field.read(line) {
            Ok(value) => {
                if let Some(value) = value {
                    self.values.insert(field.name.clone(), value);
                }
                self.at += 1;
            }
            Err(why) => return Step::Ask(format!("{why}\n{}", self.prompt())),
        }
        if self.at < self.fields.len() {
            return Step::Ask(self.prompt());
        }
        Step::Done(ElicitationAnswer::Accept(std::mem::take(&mut self.values)))
    }

    fn prompt(&self) -> String {
        self.fields
            .get(self.at)
            .map(Field::prompt)
            .unwrap_or_default()
    }
}

fn fields(schema: &Value) -> Vec<Field> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)));
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Field {
            name: name.clone(),
            schema: schema.clone(),
            required: is_required(name),
        })
        .collect()
}

impl Field {
    fn text(&self, key: &str) -> Option<&str> {
        self.schema.get(key).and_then(Value::as_str)
    }

    /// What can be chosen: the value, and the words for it.
    fn choices(&self) -> Vec<(Value, String)> {
        let items = self.schema.get("items").unwrap_or(&self.schema);
        let words = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        for key in ["oneOf", "anyOf"] {
            if let Some(options) = items.get(key).and_then(Value::as_array) {
                return options
                    .iter()
                    .filter_map(|option| {
                        let value = option.get("const")?.clone();
                        let title = option.get("title").and_then(Value::as_str);
                        let title = title.map_or_else(|| words(&value), str::to_owned);
                        Some((value, title))
                    })
                    .collect();
            }
        }
        let titles = items.get("enumNames").and_then(Value::as_array);
        let options = items.get("enum").and_then(Value::as_array);
        options
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(at, value)| {
                let title = titles.and_then(|titles| titles.get(at)?.as_str());
                (
                    value.clone(),
                    title.map_or_else(|| words(value), str::to_owned),
                )
            })
            .collect()
    }

    fn kind(&self) -> &str {
        match self.text("type") {
            Some("array") => "several, with commas",
            Some("integer") => "a whole number",
            Some("number") => "a number",
            Some("boolean") => "yes or no",
            _ => self.text("format").unwrap_or("text"),
        }
    }

    fn prompt(&self) -> String {
        let title = self.text("title").unwrap_or(&self.name);
        let mut prompt = on_one_line(title, 80);
        if let Some(words) = self.text("description") {
            prompt.push_str(&format!(": {}", on_one_line(words, SHOWN)));
        }
        prompt.push_str(&format!(" ({}", self.kind()));
        for (at, (_, title)) in self.choices().iter().enumerate().take(50) {
            prompt.push_str(&format!("; {} {}", at + 1, on_one_line(title, 80)));
        }
        match self.schema.get("default").filter(|value| !value.is_null()) {
            Some(default) => {
                let shown = on_one_line(&default.to_string(), 80);
                prompt.push_str(&format!("; empty for {shown}"));
            }
            None if !self.required => prompt.push_str("; empty for none"),
            None => {}
        }
        prompt.push(')');
        prompt
    }

    /// The value that a line means; none where the field is left out.
    fn read(&self, line: &str) -> Result<Option<Value>, String> {
        if line.is_empty() {
            return match self.schema.get("default").filter(|value| !value.is_null()) {
                Some(default) => Ok(Some(default.clone())),
                None if !self.required => Ok(None),
                None => Err("this has to be told".to_owned()),
            };
        }
        let choices = self.choices();
        if self.text("type") == Some("array") {
            let chosen = line.split(',').map(str::trim).filter(|one| !one.is_empty());
            let chosen: Result<Vec<Value>, String> =
                chosen.map(|one| choose(&choices, one)).collect();
            let chosen = chosen?;
            self.holds("minItems", "maxItems", chosen.len() as f64, "many")?;
            return Ok(Some(Value::Array(chosen)));
        }
        if !choices.is_empty() {
            return choose(&choices, line).map(Some);
        }
        let value = match self.text("type") {
            Some("boolean") => yes_or_no(line)
                .map(Value::Bool)
                .ok_or("say yes or no".to_owned())?,
            Some("integer") => {
                let number: i64 = line.parse().map_err(|_| "that is no whole number")?;
                #[expect(clippy::cast_precision_loss, reason = "compared with a bound")]
                self.holds("minimum", "maximum", number as f64, "large")?;
                number.into()
            }
            Some("number") => {
                let number: f64 = line.parse().map_err(|_| "that is no number")?;
                self.holds("minimum", "maximum", number, "large")?;
                serde_json::Number::from_f64(number)
                    .map(Value::Number)
                    .ok_or("that is no number")?
            }
            _ => {
                #[expect(clippy::cast_precision_loss, reason = "a line's length")]
                self.holds(
                    "minLength",
                    "maxLength",
                    line.chars().count() as f64,
                    "long",
                )?;
                line.into()
            }
        };
        Ok(Some(value))
    }

    fn holds(&self, least: &str, most: &str, value: f64, word: &str) -> Result<(), String> {
        let bound = |key: &str| self.schema.get(key).and_then(Value::as_f64);
        match (bound(least), bound(most)) {
            (Some(least), _) if value < least => {
                Err(format!("not {word} enough: at least {least}"))
            }
            (_, Some(most)) if value > most => Err(format!("too {word}: at most {most}")),
            _ => Ok(()),
        }
    }
}

/// A choice by its number, its value or its words.
fn choose(choices: &[(Value, String)], said: &str) -> Result<Value, String> {
    let by_words = choices.iter().find(|(value, title)| {
        let written = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        written == said || title.eq_ignore_ascii_case(said)
    });
    let by_number = || {
        let number: usize = said.parse().ok()?;
        choices.get(number.checked_sub(1)?)
    };
    match by_words.or_else(by_number) {
        Some((value, _)) => Ok(value.clone()),
        None if choices.is_empty() => Ok(said.into()),
        None => Err(format!("{} cannot be chosen", on_one_line(said, 40))),
    }
}

fn yes_or_no(line: &str) -> Option<bool> {
    match line.to_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
