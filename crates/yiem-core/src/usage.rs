//! Tokens and money (SP-002 `usage`, SP-008, C-5).
//!
//! Knows: that unknown is not zero, and how to add and to price. Does not know: whose they are.

use serde::{Deserialize, Serialize};

/// Token counts of one reply, a run or a session (C-5). `None` is unknown, which is not zero.
#[doc(alias = "llmUsage")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    #[serde(
        skip_serializing_if = "Option::is_none",
        alias = "inputTokens",
        alias = "input_tokens"
    )]
    pub input: Option<u64>,
    /// Tokens of the answer, its reasoning included.
    #[serde(
        skip_serializing_if = "Option::is_none",
        alias = "outputTokens",
        alias = "output_tokens"
    )]
    pub output: Option<u64>,
    /// Prompt tokens read from a cache.
    #[serde(skip_serializing_if = "Option::is_none", alias = "cache_read")]
    pub cache_read: Option<u64>,
    /// Prompt tokens written to a cache.
    #[serde(skip_serializing_if = "Option::is_none", alias = "cache_write")]
    pub cache_write: Option<u64>,
    /// The part of `output` that is reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// All tokens as the server counted them.
    #[serde(
        skip_serializing_if = "Option::is_none",
        alias = "totalTokens",
        alias = "total_tokens"
    )]
    pub total: Option<u64>,
}

impl Usage {
    /// Nothing known.
    pub const UNKNOWN: Self = Self {
        input: None,
        output: None,
        cache_read: None,
        cache_write: None,
        reasoning: None,
        total: None,
    };

    /// Input and output alone, as the seeds' `llmUsage(in, out)`.
    #[must_use]
    pub fn new(input: u64, output: u64) -> Self {
        Self {
            input: Some(input),
            output: Some(output),
            ..Self::UNKNOWN
        }
    }

    /// Whether no count is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::UNKNOWN
    }

    /// The whole prompt: input and what was read from or written to a cache.
    #[must_use]
    pub fn prompt(&self) -> Option<u64> {
        sum([self.input, self.cache_read, self.cache_write])
    }

    /// All tokens: as counted by the server, else prompt and output.
    #[must_use]
    pub fn all(&self) -> Option<u64> {
        self.total.or_else(|| sum([self.prompt(), self.output]))
    }

    /// Adds counts up; a count unknown on one side is that of the other.
    pub fn add(&mut self, other: &Self) {
        // A total that is known on one side only would leave the other's tokens out.
        let total = match (self.total, other.total) {
            (None, None) => None,
            _ => sum([self.all(), other.all()]),
        };
        self.input = sum([self.input, other.input]);
        self.output = sum([self.output, other.output]);
        self.cache_read = sum([self.cache_read, other.cache_read]);
        self.cache_write = sum([self.cache_write, other.cache_write]);
        self.reasoning = sum([self.reasoning, other.reasoning]);
        self.total = total;
    }
}

fn sum<const N: usize>(counts: [Option<u64>; N]) -> Option<u64> {
    counts
        .into_iter()
        .flatten()
        .fold(None, |a: Option<u64>, c| {
            Some(a.unwrap_or(0).saturating_add(c))
        })
}

/// What a model's tokens cost, per million tokens, in the currency of whoever wrote it (SP-008).
#[doc(alias = "modelCost")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelCost {
    /// Price of a million prompt tokens that no cache served.
    pub input: f64,
    /// Price of a million tokens of the answer.
    pub output: f64,
    /// Price of a million prompt tokens read from a cache.
    #[serde(alias = "cache_read")]
    pub cache_read: f64,
    /// Price of a million prompt tokens written to a cache.
    #[serde(alias = "cache_write")]
    pub cache_write: f64,
}

impl ModelCost {
    /// The money of a usage, part by part; unknown counts cost nothing.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Cost {
        let part = |count: Option<u64>, price: f64| count.unwrap_or(0) as f64 * price / 1e6;
        Cost {
            input: part(usage.input, self.input),
            output: part(usage.output, self.output),
            cache_read: part(usage.cache_read, self.cache_read),
            cache_write: part(usage.cache_write, self.cache_write),
        }
    }
}

/// Money, part by part; in the currency of the [`ModelCost`] that it was computed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// For prompt tokens that no cache served.
    pub input: f64,
    /// For the answer.
    pub output: f64,
    /// For prompt tokens read from a cache.
    pub cache_read: f64,
    /// For prompt tokens written to a cache.
    pub cache_write: f64,
}

impl Cost {
    /// The sum of the parts.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.input + self.output + self.cache_read + self.cache_write
    }

    /// Adds another cost up, part by part.
    pub fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_not_zero() {
        let mut u = Usage::UNKNOWN;
        u.add(&Usage::UNKNOWN);
        assert_eq!(u, Usage::UNKNOWN);
        assert_eq!(serde_json::to_string(&u).unwrap(), "{}");
        u.add(&Usage::new(0, 2));
        assert_eq!((u.input, u.cache_read), (Some(0), None));
    }

    #[test]
    fn a_total_known_on_one_side_only_still_counts_both() {
        let mut a = Usage {
            total: Some(10),
            ..Usage::new(4, 6)
        };
        a.add(&Usage::new(1, 2));
        assert_eq!(a.total, Some(13));
        assert_eq!(a.all(), Some(13));
    }

    #[test]
    fn the_parts_of_a_cost_sum_to_its_total() {
        let price = ModelCost {
            input: 3.0,
            output: 15.0,
            cache_read: 0.3,
            cache_write: 3.75,
        };
        let usage = Usage {
            cache_read: Some(2_000_000),
            cache_write: Some(1_000_000),
            ..Usage::new(1_000_000, 100_000)
        };
        let cost = price.of(&usage);
        assert!((cost.total() - (3.0 + 1.5 + 0.6 + 3.75)).abs() < 1e-9);
        assert_eq!(usage.prompt(), Some(4_000_000));
    }

    #[test]
    fn the_seeds_spellings_are_read() {
        let u: Usage =
            serde_json::from_str(r#"{"inputTokens":100,"outputTokens":50,"cache_read":7}"#)
                .unwrap();
        assert_eq!(
            (u.input, u.output, u.cache_read),
            (Some(100), Some(50), Some(7))
        );
    }
}
