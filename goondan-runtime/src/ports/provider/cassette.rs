//! The uses of a cassette: recording exchanges with a provider, or playing them.

use schemars::JsonSchema;
use serde::Deserialize;

/// The use of a model's cassette, the file with recorded exchanges between it and its provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CassetteMode {
    /// Nothing: the provider is asked.
    #[default]
    Off,
    /// The provider is asked, and the exchanges are recorded. They replace those of an earlier recording.
    Record,
    /// Recorded exchanges are played. The provider is never asked, and the model needs no key.
    Replay,
    /// Recorded exchanges are played. For other requests the provider is asked, and the exchanges are added.
    Auto,
}
