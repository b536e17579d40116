//! Token counts, whatever a server calls them.
//!
//! Knows: the names, as data; that the prompt count includes what a cache served; that counts
//! of a stream are running totals and that an empty one says nothing.
//! Does not know: prices.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use yiem_core::Usage;

/// Names of the whole prompt, cached part included.
const PROMPT: &[&str] = &[
    "prompt_tokens",
    "promptTokens",
    "prompt_eval_count",
    "promptTokenCount",
];
/// Names that mean the same where nothing says otherwise; see [`APART`].
const INPUT: &[&str] = &["input_tokens", "inputTokens", "input"];
const OUTPUT: &[&str] = &[
    "completion_tokens",
    "completionTokens",
    "output_tokens",
    "outputTokens",
    "eval_count",
    "generated_tokens",
    "candidatesTokenCount",
    "output",
];
const TOTAL: &[&str] = &["total_tokens", "totalTokens", "totalTokenCount", "total"];
const READ: &[&str] = &[
    "prompt_tokens_details.cached_tokens",
    "input_tokens_details.cached_tokens",
    "promptTokensDetails.cachedTokens",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "cachedTokens",
    "cachedInputTokens",
    "cache_read_tokens",
    "cachedContentTokenCount",
];
const WRITTEN: &[&str] = &[
    "prompt_tokens_details.cache_write_tokens",
    "prompt_tokens_details.cache_creation_tokens",
    "cache_write_tokens",
];
const REASONING: &[&str] = &[
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
    "completionTokensDetails.reasoningTokens",
    "reasoning_tokens",
    "reasoningTokens",
    "thoughtsTokenCount",
    "reasoning",
];
/// Names of cache counts which `INPUT` names leave out: read, written.
const APART: [&[&str]; 2] = [
    &[
        "cache_read_input_tokens",
        "cacheReadInputTokens",
        "cacheRead",
        "cache_read",
    ],
    &[
        "cache_creation_input_tokens",
        "cacheCreationInputTokens",
        "cacheWrite",
        "cache_write",
    ],
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
        match serde_json::from_str::<Value>(raw.get()) {
            Ok(Value::Object(usage)) => Self::of(&usage),
            _ => Self::default(),
        }
    }

    /// Counts that stand in the reply itself.
    pub(crate) fn bare(prompt: Option<&RawValue>, output: Option<&RawValue>) -> Self {
        let count = |raw: Option<&RawValue>| {
            raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok())
                .as_ref()
                .and_then(number)
        };
        Self {
            prompt: count(prompt),
            output: count(output),
            ..Self::default()
        }
    }

    /// Reads the counts of a `usage` object.
    pub(crate) fn of(usage: &Map<String, Value>) -> Self {
        let read = first(usage, READ);
        let written = first(usage, WRITTEN);
        let [read_apart, written_apart] = APART.map(|names| first(usage, names));
        let prompt = first(usage, PROMPT).or_else(|| {
            let input = first(usage, INPUT)?;
            Some(
                input
                    .saturating_add(read_apart.unwrap_or(0))
                    .saturating_add(written_apart.unwrap_or(0)),
            )
        });
        let mut counts = Self {
            prompt,
            output: first(usage, OUTPUT),
            read: read.or(read_apart),
            written: written.or(written_apart),
            reasoning: first(usage, REASONING),
            total: first(usage, TOTAL),
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

/// The first count that is there under any of the names; a dot goes into an object.
fn first(usage: &Map<String, Value>, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| match name.split_once('.') {
        Some((outer, inner)) => number(usage.get(outer)?.get(inner)?),
        None => number(usage.get(*name)?),
    })
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            number
                .as_f64()
                .filter(|n| *n >= 0.0 && n.is_finite())
                .map(|n| n.round() as u64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
