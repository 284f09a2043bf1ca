//! Facts about a model, for compaction and accounts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Cost, TokenUsage};

/// Facts about a model. Those that are unknown are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The provider, as bundles name it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The model, as its provider names it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The most tokens of a request and its answer together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The most tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The prices of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// The media types of the files that the model takes, such as `image/png` or `image/*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepts: Option<Vec<String>>,
}

impl ModelInfo {
    /// The model `model` of `provider`, without other facts.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into(), ..Self::default() }
    }

    /// Returns whether the model takes files of a media type. It takes all of them if nothing is known.
    // REFUSED-01
    pub fn takes(&self, media_type: &str) -> bool {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let fits = |accepted: &String| match accepted.strip_suffix("/*") {
            Some(kind) => essence.split('/').next().is_some_and(|of| of.eq_ignore_ascii_case(kind)),
            None => essence.eq_ignore_ascii_case(accepted),
        };
        self.accepts.as_ref().is_none_or(|accepts| accepts.iter().any(fits))
    }
}

/// The prices of a million tokens, in US dollars.
///
/// ```
/// use goondan::event::{Cost, TokenUsage};
/// use goondan::middleware::Prices;
///
/// let mut usage = TokenUsage::new(1_000, 100);
/// usage.cached_prompt_tokens = 800;
/// let prices = Prices::new(3.0, 15.0).with_cached_input(0.3);
/// assert_eq!(prices.cost(&usage), Cost::usd(0.00234));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Prices {
    /// A million tokens of requests.
    #[schemars(range(min = 0.0))]
    pub input: f64,
    /// A million tokens of answers.
    #[schemars(range(min = 0.0))]
    pub output: f64,
    /// A million tokens of requests that are read from the cache. Defaults to `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cached_input: Option<f64>,
    /// A million tokens of requests that are written to the cache. Defaults to `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cache_write: Option<f64>,
}

impl Prices {
    /// The prices of a million tokens of requests and of answers.
    pub fn new(input: f64, output: f64) -> Self {
        Self { input, output, cached_input: None, cache_write: None }
    }

    /// Returns the prices with another one for tokens that are read from the cache.
    #[must_use]
    pub fn with_cached_input(self, price: f64) -> Self {
        Self { cached_input: Some(price), ..self }
    }

    /// Returns the prices with another one for tokens that are written to the cache.
    #[must_use]
    pub fn with_cache_write(self, price: f64) -> Self {
        Self { cache_write: Some(price), ..self }
    }

    /// Returns the cost of these tokens.
    pub fn cost(&self, usage: &TokenUsage) -> Cost {
        let cached = usage.cached_prompt_tokens;
        let written = usage.cache_write_tokens;
        let rest = usage.prompt_tokens.saturating_sub(cached).saturating_sub(written);
        let amounts = [
            (rest, self.input),
            (cached, self.cached_input.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (usage.completion_tokens, self.output),
        ];
        #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 tokens")]
        let per_million: f64 = amounts.iter().map(|(tokens, price)| *tokens as f64 * price).sum();
        Cost::usd(per_million / 1e6)
    }
}
