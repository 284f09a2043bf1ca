//! The tools of a request.

use goondan_core::ToolItem;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// A tool of the step in the form `F` of an interface, or one that runs at the provider, as the options have it.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Tool<'a, F> {
    Provider(&'a Value),
    Step(F),
}

/// The schema of a tool, which must say that it is of an object.
pub(super) struct Schema<'a> {
    members: Option<&'a Map<String, Value>>,
    with_properties: bool,
}

impl<'a> Schema<'a> {
    /// Returns the schema of a tool. One without a schema takes any object.
    pub(super) fn of(tool: &'a ToolItem) -> Self {
        Self { members: tool.parameters.as_ref().and_then(Value::as_object), with_properties: false }
    }

    /// Makes the schema list the members of the object, even if that is nothing.
    pub(super) fn with_properties(self) -> Self {
        Self { with_properties: true, ..self }
    }
}

impl Serialize for Schema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let lacks = |name| self.members.is_none_or(|members| !members.contains_key(name));
        let mut schema = serializer.serialize_map(None)?;
        if lacks("type") {
            schema.serialize_entry("type", "object")?;
        }
        if self.with_properties && lacks("properties") {
            schema.serialize_entry("properties", &Map::new())?;
        }
        for (name, value) in self.members.into_iter().flatten() {
            schema.serialize_entry(name, value)?;
        }
        schema.end()
    }
}
