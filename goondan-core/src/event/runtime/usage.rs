//! The tokens that model calls use, and their cost.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The tokens that one or several model calls used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenUsage {
    /// The tokens of the request, those read from a cache included.
    pub prompt_tokens: u64,
    /// The tokens of the response, reasoning included.
    pub completion_tokens: u64,
    /// The total, as the provider counts it.
    pub total_tokens: u64,
    /// The tokens of the request that the provider read from its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_prompt_tokens: u64,
    /// The tokens of the request that the provider wrote to its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// The tokens of the response that are reasoning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// The cost of the calls, if the provider reports it or the prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl TokenUsage {
    /// The tokens of a request and its response; the total is their sum.
    pub fn new(prompt_tokens: u64, completion_tokens: u64) -> Self {
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        Self { prompt_tokens, completion_tokens, total_tokens, ..Self::default() }
    }
}

impl AddAssign for TokenUsage {
    /// Adds the tokens of another model call. The sum has a cost if one of them has.
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in [
            (&mut self.prompt_tokens, other.prompt_tokens),
            (&mut self.completion_tokens, other.completion_tokens),
            (&mut self.total_tokens, other.total_tokens),
            (&mut self.cached_prompt_tokens, other.cached_prompt_tokens),
            (&mut self.cache_write_tokens, other.cache_write_tokens),
            (&mut self.reasoning_tokens, other.reasoning_tokens),
        ] {
            *sum = sum.saturating_add(more);
        }
        if let Some(more) = other.cost {
            let Cost(sum) = self.cost.get_or_insert_default();
            *sum = sum.saturating_add(more.0);
        }
    }
}

/// An amount of money in US dollars, in billionths, so that sums are exact.
///
/// ```
/// use goondan::event::Cost;
///
/// let cost = Cost::usd(0.0125);
/// assert_eq!((cost.as_usd(), cost.to_string()), (0.0125, "$0.0125".to_owned()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

impl Cost {
    const PER_DOLLAR: f64 = 1e9;

    /// An amount in dollars. A negative one, or one that is not a number, is nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, at 0 too")]
    pub fn usd(dollars: f64) -> Self {
        Self((dollars * Self::PER_DOLLAR).round() as u64)
    }

    /// Returns the amount in dollars.
    #[expect(clippy::cast_precision_loss, reason = "exact below nine million dollars")]
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / Self::PER_DOLLAR
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.as_usd())
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_usd())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::usd)
    }
}
