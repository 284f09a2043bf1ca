//! Parts that only a model can make: reasoning with its signature, and blocks of a provider.

use serde::Serialize;
use serde::de::Error;
use serde_json::{Map, Value};

use super::extra::Extra;
use super::provider::ProviderData;
use super::unknown::{UnknownMembers, take};
use crate::secret::mask_text;

/// See [`Part::Reasoning`](super::Part::Reasoning).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "reasoning")]
pub struct ReasoningPart {
    text: String,
    #[serde(flatten)]
    extra: Extra,
}

impl ReasoningPart {
    /// Reasoning with this text, which is empty if the provider keeps it to itself.
    pub fn new(text: impl Into<String>, provider: Option<ProviderData>) -> Self {
        Self { text: text.into(), extra: Extra::new(provider, UnknownMembers::default()) }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the data of the provider, such as a signature.
    pub fn provider(&self) -> Option<&ProviderData> {
        self.extra.provider()
    }

    pub(super) fn mask(&mut self) {
        mask_text(&mut self.text);
        self.extra.mask();
    }

    pub(super) fn extra(&self) -> &Extra {
        &self.extra
    }

    /// Drops the part without recursion.
    pub(super) fn discard(self) {
        self.extra.discard();
    }

    pub(super) fn from_members<E: Error>(mut members: Map<String, Value>) -> Result<Self, E> {
        Ok(Self { text: take(&mut members, "text")?, extra: Extra::from_members(members) })
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
