//! The digest of a tool: of everything that a server says about it and that is used.

use goondan::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Returns the digest of these values, in hexadecimal. The order of members does not matter: servers change it.
pub(super) fn digest(values: &[Value]) -> String {
    let mut text = String::new();
    values.iter().for_each(|value| write(value, &mut text));
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a value with the members of objects in the order of their names.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            text.push('{');
            for (name, value) in sorted(members) {
                text.push_str(&json!(name).to_string());
                text.push(':');
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(elements) => {
            text.push('[');
            for element in elements {
                write(element, text);
                text.push(',');
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn sorted(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_order_of_members_does_not_matter() {
        let one = digest(&[json!("a"), json!({ "x": { "a": 1, "b": [1, 2] }, "y": null })]);
        assert_eq!(one, digest(&[json!("a"), json!({ "y": null, "x": { "b": [1, 2], "a": 1 } })]));
        for other in [json!({ "x": { "a": 1, "b": [2, 1] }, "y": null }), json!({ "x": { "a": 1, "b": [1, 2] } })] {
            assert_ne!(one, digest(&[json!("a"), other]));
        }
        assert_eq!(one.len(), 64);
    }
}
