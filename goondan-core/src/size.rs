//! The size of JSON values, as limits count it: the bytes of their texts and names, and some for each value.

use serde_json::{Map, Value};

/// The size of a value beside its text. It takes more in memory, and less where it is written.
pub(crate) const VALUE: usize = 16;

/// Returns the size of a value, whose depth was checked before.
pub fn of_json(value: &Value) -> usize {
    VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(of_json).sum(),
            Value::Object(members) => of_members(members),
        }
}

/// Returns the size of the members of an object.
pub fn of_members(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| name.len() + of_json(value)).sum()
}

/// Returns how many values a JSON text has at most, without reading it. A value takes some 100 bytes in memory, however
/// short its text is, so a program that reads foreign JSON limits their number first.
///
/// ```
/// use goondan::json::count_values;
///
/// assert_eq!(count_values(r#"{ "a": [1, 2], "b": "one, two" }"#), 5);
/// ```
pub fn count_values(json: &str) -> usize {
    // Each but the first follows a comma, or is the first of a list or an object.
    let (mut values, mut in_text, mut escaped) = (1, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        for (json, values) in [("1", 1), ("[]", 2), (r#"["a,b\",[c"]"#, 2), (r#"{"a":[1,2],"b":"\\"}"#, 5)] {
            assert_eq!(count_values(json), values, "{json}");
        }
    }
}
