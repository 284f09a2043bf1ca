//! The config of the extension.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use goondan::prelude::*;

/// The config of the extension.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Which messages can be replaced.
    pub candidates: Candidates,
    /// With `marked`: how many candidates may stay. One more, and all of them are replaced.
    pub more_than: usize,
    /// With `all`: how many messages the conversation may have.
    pub max_messages: NonZeroUsize,
    /// With `all`: how many characters the texts of the messages may have, results of tools included.
    pub max_characters: NonZeroUsize,
    /// The most tokens of a request to the model, by estimate. Defaults to four fifths of the model's context window,
    /// if that is known.
    pub max_tokens: Option<NonZeroU64>,
    /// With `all`: to which share of the limits the conversation is reduced. With a share near 1, messages are replaced
    /// in nearly every turn.
    #[schemars(range(min = 0.0, max = 0.9))]
    pub keep_share: f64,
    /// With `all`: how many of the newest messages stay, but not more than half of `maxMessages`.
    pub retain_last_messages: usize,
    /// The model that writes the summary. Without it, the summary is a line that says how many messages it replaces.
    pub summary: Option<SummaryConfig>,
    /// The reaction to a model that does not write a summary.
    pub on_failure: OnFailure,
    /// Where the summary is placed. Defaults to `end` with `marked`, and to `first` with `all`.
    // D-29
    pub place: Option<Place>,
}

/// Which messages can be replaced. Pinned ones, the newest input and calls without a result never are.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Candidates {
    /// All of them, oldest first.
    All,
    /// Those with the metadata `compaction.eligible: true`.
    Marked,
}

/// The request to a model for a summary.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SummaryConfig {
    /// The model, such as `Model/small`: one that the agent may call. Defaults to the agent's own.
    pub model: Option<String>,
    /// The longest wait for the summary.
    pub timeout_ms: NonZeroU64,
    /// The most characters of the summary. A longer one is cut.
    pub max_characters: NonZeroUsize,
    /// Further instructions for the summary, besides those that every summary has.
    pub instructions: Option<String>,
}

/// The reaction to a model that does not write a summary.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The conversation stays as it is, and the next turn tries again.
    Keep,
    /// The messages are replaced by a line that says how many they were.
    Count,
    /// The turn fails.
    Fail,
}

/// Where the summary is placed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Where the first of the replaced messages was.
    First,
    /// After all messages.
    End,
}

impl Default for Config {
    fn default() -> Self {
        const MAX_MESSAGES: NonZeroUsize = NonZeroUsize::new(40).unwrap();
        const MAX_CHARACTERS: NonZeroUsize = NonZeroUsize::new(12_000).unwrap();
        Self {
            candidates: Candidates::All,
            more_than: 20,
            max_messages: MAX_MESSAGES,
            max_characters: MAX_CHARACTERS,
            max_tokens: None,
            keep_share: 0.5,
            retain_last_messages: 8,
            summary: None,
            on_failure: OnFailure::Count,
            place: None,
        }
    }
}

impl Default for SummaryConfig {
    fn default() -> Self {
        const TIMEOUT_MS: NonZeroU64 = NonZeroU64::new(60_000).unwrap();
        const MAX_CHARACTERS: NonZeroUsize = NonZeroUsize::new(4_000).unwrap();
        Self { model: None, timeout_ms: TIMEOUT_MS, max_characters: MAX_CHARACTERS, instructions: None }
    }
}

impl Config {
    pub(crate) fn place(&self) -> Place {
        self.place.unwrap_or(match self.candidates {
            Candidates::All => Place::First,
            Candidates::Marked => Place::End,
        })
    }

    /// Returns the share of `limit` that stays.
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the share is between 0 and 0.9")]
    pub(crate) fn share_of(&self, limit: usize) -> usize {
        (limit as f64 * self.keep_share) as usize
    }

    /// Returns how many of the newest messages stay.
    pub(crate) fn retained(&self) -> usize {
        match self.candidates {
            Candidates::All => self.retain_last_messages.min(self.max_messages.get() / 2),
            Candidates::Marked => 0,
        }
    }

    /// Returns how many characters a summary may have. With `all`, the summary and what stays are within the limit
    /// together, so that the next turn does not have to replace messages again.
    pub(crate) fn summary_characters(&self, summary: &SummaryConfig) -> usize {
        let max = self.max_characters.get();
        match self.candidates {
            Candidates::All => summary.max_characters.get().min(max - self.share_of(max)),
            Candidates::Marked => summary.max_characters.get(),
        }
    }
}

impl SummaryConfig {
    /// Returns the name of the model; `None` is the agent's own.
    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref().map(|model| model.strip_prefix("Model/").unwrap_or(model))
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.get())
    }
}
