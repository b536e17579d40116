//! Token counts, whatever a server calls them.
//!
//! Knows: the names, as data; that the prompt count includes what a cache served; that counts
//! of a stream are running totals and that an empty one says nothing.
//! Does not know: prices.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use yiem_core::Usage;

use crate::wire::{Key, NUMBER};

/// What a count is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The whole prompt, cached part included.
    Prompt,
    /// The same, where no cache counts stand apart from it; else what they leave.
    Input,
    Output,
    Total,
    /// Read from a cache; part of the prompt.
    Read,
    /// Written to a cache; part of the prompt.
    Written,
    Reasoning,
    /// Read from a cache, which [`Of::Input`] leaves out.
    ReadApart,
    /// Written to a cache, which [`Of::Input`] leaves out.
    WrittenApart,
}

const KINDS: usize = 9;

/// The names of the counts. Of those of one kind that are there, the first in this list counts;
/// a dot goes into an object.
const NAMES: &[(&str, Of)] = &[
    ("prompt_tokens", Of::Prompt),
    ("promptTokens", Of::Prompt),
    ("prompt_eval_count", Of::Prompt),
    ("promptTokenCount", Of::Prompt),
    ("input_tokens", Of::Input),
    ("inputTokens", Of::Input),
    ("input", Of::Input),
    ("completion_tokens", Of::Output),
    ("completionTokens", Of::Output),
    ("output_tokens", Of::Output),
    ("outputTokens", Of::Output),
    ("eval_count", Of::Output),
    ("generated_tokens", Of::Output),
    ("candidatesTokenCount", Of::Output),
    ("output", Of::Output),
    ("total_tokens", Of::Total),
    ("totalTokens", Of::Total),
    ("totalTokenCount", Of::Total),
    ("total", Of::Total),
    ("prompt_tokens_details.cached_tokens", Of::Read),
    ("input_tokens_details.cached_tokens", Of::Read),
    ("promptTokensDetails.cachedTokens", Of::Read),
    ("prompt_cache_hit_tokens", Of::Read),
    ("cached_tokens", Of::Read),
    ("cachedTokens", Of::Read),
    ("cachedInputTokens", Of::Read),
    ("cache_read_tokens", Of::Read),
    ("cachedContentTokenCount", Of::Read),
    ("prompt_tokens_details.cache_write_tokens", Of::Written),
    ("prompt_tokens_details.cache_creation_tokens", Of::Written),
    ("cache_write_tokens", Of::Written),
    ("completion_tokens_details.reasoning_tokens", Of::Reasoning),
    ("output_tokens_details.reasoning_tokens", Of::Reasoning),
    ("completionTokensDetails.reasoningTokens", Of::Reasoning),
    ("reasoning_tokens", Of::Reasoning),
    ("reasoningTokens", Of::Reasoning),
    ("thoughtsTokenCount", Of::Reasoning),
    ("reasoning", Of::Reasoning),
    ("cache_read_input_tokens", Of::ReadApart),
    ("cacheReadInputTokens", Of::ReadApart),
    ("cacheRead", Of::ReadApart),
    ("cache_read", Of::ReadApart),
    ("cache_creation_input_tokens", Of::WrittenApart),
    ("cacheCreationInputTokens", Of::WrittenApart),
    ("cacheWrite", Of::WrittenApart),
    ("cache_write", Of::WrittenApart),
];

/// Counts as the server gives them, `prompt` being the whole prompt.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    prompt: Option<u64>,
    output: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
    reasoning: Option<u64>,
    total: Option<u64>,
}

impl Counts {
    /// Reads a `usage` object. Anything else says nothing.
    pub(crate) fn read(raw: &RawValue) -> Self {
        let mut found = Found::default();
        let mut json = serde_json::Deserializer::from_str(raw.get());
        // It was read as JSON before: nothing can be wrong with it here.
        let _ = Field::Body.read(&mut found).deserialize(&mut json);
        Self::of(&found)
    }

    /// Counts that stand in the reply itself.
    pub(crate) fn bare(prompt: Option<&RawValue>, output: Option<&RawValue>) -> Self {
        let count = |raw: Option<&RawValue>, kind: Of| {
            let mut found = Found::default();
            let mut json = serde_json::Deserializer::from_str(raw?.get());
            let _ = Field::Known(0, kind)
                .read(&mut found)
                .deserialize(&mut json);
            found.get(kind)
        };
        Self {
            prompt: count(prompt, Of::Prompt),
            output: count(output, Of::Output),
            ..Self::default()
        }
    }

    fn of(found: &Found) -> Self {
        let (read_apart, written_apart) = (found.get(Of::ReadApart), found.get(Of::WrittenApart));
        let prompt = found.get(Of::Prompt).or_else(|| {
            Some(
                found
                    .get(Of::Input)?
                    .saturating_add(read_apart.unwrap_or(0))
                    .saturating_add(written_apart.unwrap_or(0)),
            )
        });
        let mut counts = Self {
            prompt,
            output: found.get(Of::Output),
            read: found.get(Of::Read).or(read_apart),
            written: found.get(Of::Written).or(written_apart),
            reasoning: found.get(Of::Reasoning),
            total: found.get(Of::Total),
        };
        counts.include_reasoning();
        counts
    }

    /// Some servers leave the reasoning out of the output; their total gives them away.
    fn include_reasoning(&mut self) {
        if let (Some(prompt), Some(output), Some(reasoning)) =
            (self.prompt, self.output, self.reasoning)
            && reasoning > 0
            && (self.total == Some(prompt.saturating_add(output).saturating_add(reasoning))
                || reasoning > output)
        {
            self.output = Some(output.saturating_add(reasoning));
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    fn is_zero(&self) -> bool {
        [self.prompt, self.output, self.total]
            .iter()
            .all(|count| count.unwrap_or(0) == 0)
    }

    /// Takes in later counts: they are running totals, so what they know replaces. All zeros
    /// after real numbers are a placeholder.
    pub(crate) fn update(&mut self, later: Self) {
        if later.is_zero() && !self.is_zero() {
            return;
        }
        for (known, new) in [
            (&mut self.prompt, later.prompt),
            (&mut self.output, later.output),
            (&mut self.read, later.read),
            (&mut self.written, later.written),
            (&mut self.reasoning, later.reasoning),
            (&mut self.total, later.total),
        ] {
            *known = new.or(*known);
        }
    }

    /// As yiem-core counts: input without what a cache served or took.
    pub(crate) fn usage(&self) -> Usage {
        let cached = self
            .read
            .unwrap_or(0)
            .saturating_add(self.written.unwrap_or(0));
        Usage {
            input: self.prompt.map(|prompt| prompt.saturating_sub(cached)),
            output: self.output,
            cache_read: self.read,
            cache_write: self.written,
            reasoning: self.reasoning,
            total: self.total,
        }
    }
}

/// The counts of an object: of each kind the one whose name stands first in [`NAMES`].
#[derive(Debug, Default)]
struct Found([Option<(usize, u64)>; KINDS]);

impl Found {
    fn get(&self, kind: Of) -> Option<u64> {
        self.0[kind as usize].map(|(_, count)| count)
    }

    fn note(&mut self, rank: usize, kind: Of, count: u64) {
        let slot = &mut self.0[kind as usize];
        if slot.is_none_or(|(held, _)| rank <= held) {
            *slot = Some((rank, count));
        }
    }
}

/// Where in the counts a value stands.
#[derive(Clone, Copy)]
enum Field<'k> {
    /// It is the whole.
    Body,
    /// Under a name that may hold an object of counts.
    Named(&'k str),
    /// Under a name that is known: its place in [`NAMES`].
    Known(usize, Of),
    /// Under one that says nothing.
    Unknown,
}

impl<'k> Field<'k> {
    fn under(self, key: &'k str) -> Self {
        let known = |outer: Option<&str>| {
            NAMES.iter().position(|(name, _)| match outer {
                None => *name == key,
                Some(outer) => name
                    .split_once('.')
                    .is_some_and(|(o, inner)| inner == key && o == outer),
            })
        };
        let rank = match self {
            Self::Body => match known(None) {
                None => return Self::Named(key),
                rank => rank,
            },
            Self::Named(outer) => known(Some(outer)),
            Self::Known(..) | Self::Unknown => None,
        };
        rank.map_or(Self::Unknown, |rank| Self::Known(rank, NAMES[rank].1))
    }

    fn read(self, found: &mut Found) -> ReadField<'_, 'k> {
        ReadField { field: self, found }
    }
}

/// Reads a value for the counts in it.
struct ReadField<'f, 'k> {
    field: Field<'k>,
    found: &'f mut Found,
}

impl ReadField<'_, '_> {
    fn note(self, count: Option<u64>) {
        if let (Field::Known(rank, kind), Some(count)) = (self.field, count) {
            self.found.note(rank, kind, count);
        }
    }
}

impl<'de> DeserializeSeed<'de> for ReadField<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match self.field {
            Field::Unknown => IgnoredAny::deserialize(json).map(drop),
            _ => json.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for ReadField<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = map.next_key()? {
            if key == NUMBER {
                let number: String = map.next_value()?;
                return self.visit_f64(number.parse().unwrap_or(f64::NAN));
            }
            map.next_value_seed(self.field.under(&key).read(self.found))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_u64<E>(self, count: u64) -> Result<(), E> {
        self.note(Some(count));
        Ok(())
    }

    fn visit_i64<E>(self, count: i64) -> Result<(), E> {
        self.note(u64::try_from(count).ok());
        Ok(())
    }

    fn visit_f64<E>(self, count: f64) -> Result<(), E> {
        let whole = (count >= 0.0 && count.is_finite()).then(|| count.round() as u64);
        self.note(whole);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.note(text.trim().parse().ok());
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
