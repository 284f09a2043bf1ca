//! What a model's provider needs back unchanged: reasoning with its signature, and blocks without a name here.

use serde::de::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::unknown::{UnknownMembers, take, take_optional};
use crate::depth::{self, TooDeep};
use crate::secret::mask_text;

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

/// See [`Part::Reasoning`](super::Part::Reasoning).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "reasoning")]
pub struct ReasoningPart {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<Box<ProviderData>>,
    #[serde(flatten)]
    unknown: UnknownMembers,
}

impl ReasoningPart {
    /// Reasoning with this text, which is empty if the provider keeps it to itself.
    pub fn new(text: impl Into<String>, provider: Option<ProviderData>) -> Self {
        Self { text: text.into(), provider: provider.map(Box::new), unknown: UnknownMembers::default() }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the data of the provider, such as a signature.
    pub fn provider(&self) -> Option<&ProviderData> {
        self.provider.as_deref()
    }

    pub(super) fn mask(&mut self) {
        mask_text(&mut self.text);
        self.unknown.mask();
    }

    pub(super) fn unknown(&self) -> &UnknownMembers {
        &self.unknown
    }

    /// Drops the part without recursion.
    pub(super) fn discard(self) {
        self.provider.into_iter().for_each(|data| data.discard());
        self.unknown.discard();
    }

    pub(super) fn from_members<E: Error>(mut members: Map<String, Value>) -> Result<Self, E> {
        Ok(Self {
            text: take(&mut members, "text")?,
            provider: take_optional(&mut members, "provider"),
            unknown: members.into(),
        })
    }
}

/// See [`Part::Provider`](super::Part::Provider).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "provider")]
pub struct ProviderPart {
    provider: Box<ProviderData>,
    #[serde(flatten)]
    unknown: UnknownMembers,
}

impl ProviderPart {
    /// A block of a provider, whole.
    pub fn new(block: ProviderData) -> Self {
        Self { provider: Box::new(block), unknown: UnknownMembers::default() }
    }

    /// Returns the block.
    pub fn provider(&self) -> &ProviderData {
        &self.provider
    }

    pub(super) fn unknown(&self) -> &UnknownMembers {
        &self.unknown
    }

    /// Drops the part without recursion.
    pub(super) fn discard(self) {
        self.provider.discard();
        self.unknown.discard();
    }

    pub(super) fn from_members<E: Error>(mut members: Map<String, Value>) -> Result<Self, E> {
        Ok(Self { provider: take(&mut members, "provider")?, unknown: members.into() })
    }
}
