//! The arguments of a call in a request.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The arguments of a call: an object, as models demand. Those of another one may be something else.
pub(super) struct Arguments<'a>(pub(super) &'a Value);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_object() {
            return self.0.serialize(serializer);
        }
        let mut input = serializer.serialize_map(Some(1))?;
        input.serialize_entry("arguments", self.0)?;
        input.end()
    }
}
