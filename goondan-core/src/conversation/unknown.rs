//! JSON members that this version does not know. They are kept, so that rewriting a message loses nothing.
// KEEP-01, D-32

use serde::de::{DeserializeOwned, Error};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::depth::{self, TooDeep};
use crate::secret::mask_json;

/// The members of an object that its type has no field for, in their order. Boxed, because nearly every object has
/// none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UnknownMembers(Option<Box<Map<String, Value>>>);

impl UnknownMembers {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().flat_map(|members| members.iter())
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.0.iter_mut().flat_map(|members| members.values_mut())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.as_ref()?.get(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn check_depth(&self, levels: usize) -> Result<(), TooDeep> {
        self.0.as_ref().map_or(Ok(()), |members| depth::check_map_within(members, levels))
    }

    /// Drops the members without recursion.
    pub(super) fn discard(self) {
        if let Some(members) = self.0 {
            depth::discard(members.into_values());
        }
    }

    pub(super) fn mask(&mut self) {
        self.values_mut().for_each(mask_json);
    }

    /// Adds the members to an object that is being serialized.
    pub(super) fn serialize_into<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        self.iter().try_for_each(|(name, value)| object.serialize_entry(name, value))
    }
}

impl From<Map<String, Value>> for UnknownMembers {
    fn from(members: Map<String, Value>) -> Self {
        Self((!members.is_empty()).then(|| Box::new(members)))
    }
}

impl Serialize for UnknownMembers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for UnknownMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

/// Removes the member `name` from `object` and returns it as a `T`. The members that are left in the end are unknown.
pub(super) fn take<T: DeserializeOwned, E: Error>(object: &mut Map<String, Value>, name: &'static str) -> Result<T, E> {
    let value = object.shift_remove(name).ok_or_else(|| E::missing_field(name))?;
    T::deserialize(value).map_err(|error| E::custom(format_args!("`{name}`: {error}")))
}

/// Removes the member `name` and returns it, if `object` has it as a `T`. What another implementation writes under this
/// name stays, as a member that is not known.
pub(super) fn take_optional<T: DeserializeOwned>(object: &mut Map<String, Value>, name: &str) -> Option<T> {
    let read = T::deserialize(object.get(name)?).ok()?;
    object.shift_remove(name);
    Some(read)
}
