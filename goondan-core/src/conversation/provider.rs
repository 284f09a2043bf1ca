//! Data that a provider of models needs back unchanged.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::unknown::UnknownMembers;
use crate::depth::{self, TooDeep};

/// Data of a part that only the provider that made it interprets, such as a signature. It is stored, and sent back to
/// that provider, unchanged. Models make it; other code can only pass it on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderData {
    api: String,
    model: String,
    rest: Map<String, Value>,
    #[serde(flatten)]
    unknown: UnknownMembers,
}

impl ProviderData {
    /// Data of a part that `model` answered over the interface `api`: the members of the provider's block that the
    /// part has no field for.
    pub fn new(api: impl Into<String>, model: impl Into<String>, rest: Map<String, Value>) -> Self {
        Self { api: api.into(), model: model.into(), rest, unknown: UnknownMembers::default() }
    }

    /// Returns the interface that made the part, such as `anthropic`.
    pub fn api(&self) -> &str {
        &self.api
    }

    /// Returns the model that made the part.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the members of the provider's block that the part has no field for.
    pub fn rest(&self) -> &Map<String, Value> {
        &self.rest
    }
}

impl ProviderData {
    pub(super) fn check_depth(&self, levels: usize) -> Result<(), TooDeep> {
        depth::check_map_within(&self.rest, levels).map_err(|error| error.within("/provider/rest"))?;
        self.unknown.check_depth(levels).map_err(|error| error.within("/provider"))
    }

    /// Drops the data without recursion.
    pub(super) fn discard(self) {
        depth::discard(self.rest.into_values());
        self.unknown.discard();
    }
}
