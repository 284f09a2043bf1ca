//! Data of a part beside its fields: data of its provider, and members that this version does not know.
// KEEP-01, D-32

use std::mem;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::provider::ProviderData;
use super::unknown::{UnknownMembers, take_optional};
use crate::depth::TooDeep;

/// Boxed, because nearly every part has neither.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Extra(Option<Box<Members>>);

/// One of the two is there.
#[derive(Clone, Debug, PartialEq)]
struct Members {
    provider: Option<ProviderData>,
    unknown: UnknownMembers,
}

impl Extra {
    pub(super) fn new(provider: Option<ProviderData>, unknown: UnknownMembers) -> Self {
        let is_empty = provider.is_none() && unknown.is_empty();
        Self((!is_empty).then(|| Box::new(Members { provider, unknown })))
    }

    /// Reads the members of a part that are none of its fields.
    pub(super) fn from_members(mut members: Map<String, Value>) -> Self {
        let provider = take_optional(&mut members, "provider");
        Self::new(provider, members.into())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn provider(&self) -> Option<&ProviderData> {
        self.0.as_ref()?.provider.as_ref()
    }

    pub(super) fn set_provider(&mut self, provider: Option<ProviderData>) {
        let members = mem::take(self).0;
        *self = Self::new(provider, members.map(|members| members.unknown).unwrap_or_default());
    }

    /// Returns the values of the members that are not known.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().flat_map(|members| members.unknown.iter()).map(|(_, value)| value)
    }

    pub(super) fn unknown_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.0.iter_mut().flat_map(|members| members.unknown.values_mut())
    }

    pub(super) fn check_depth(&self, levels: usize) -> Result<(), TooDeep> {
        let Some(members) = &self.0 else { return Ok(()) };
        members.provider.iter().try_for_each(|data| data.check_depth(levels))?;
        members.unknown.check_depth(levels)
    }

    /// Drops the values without recursion.
    pub(super) fn discard(self) {
        let Some(members) = self.0 else { return };
        members.provider.into_iter().for_each(ProviderData::discard);
        members.unknown.discard();
    }

    /// Masks secrets in the members that are not known. The data of a provider must come back to it unchanged.
    pub(super) fn mask(&mut self) {
        self.0.iter_mut().for_each(|members| members.unknown.mask());
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        if let Some(members) = &self.0 {
            members.provider.iter().try_for_each(|data| object.serialize_entry("provider", data))?;
            members.unknown.serialize_into(&mut object)?;
        }
        object.end()
    }
}
