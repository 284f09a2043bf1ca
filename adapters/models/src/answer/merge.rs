//! Merging the notes of providers about an answer piece by piece.

use serde_json::Value;

/// The number of items of a list that are compared with new ones.
const COMPARED: usize = 1_000;

/// Merges new values into the known ones: some events have the new items of a list, and some the whole list.
pub(crate) fn merge(known: &mut Value, new: Value) {
    match (known, new) {
        (Value::Object(known), Value::Object(new)) => {
            for (name, value) in new {
                merge(known.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(known), Value::Array(new)) if new.starts_with(known) => *known = new,
        (Value::Array(known), Value::Array(new)) => {
            for item in new {
                // Of long lists, not every item is compared with every other.
                if known.len() > COMPARED || !known.contains(&item) {
                    known.push(item);
                }
            }
        }
        (known, new) => *known = new,
    }
}
