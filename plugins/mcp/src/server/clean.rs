//! JSON of a server without characters that a reader would not see.

use std::borrow::Cow;

use goondan::{Map, Value};
use goondan_text::visible;

/// Removes characters that a reader would not see from all texts in a value.
pub(super) fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(visible) = visible(text) {
                *text = visible;
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(make_visible),
        Value::Object(members) => make_members_visible(members),
        _ => {}
    }
}

/// Removes it from the names and the texts of an object.
pub(super) fn make_members_visible(members: &mut Map<String, Value>) {
    members.values_mut().for_each(make_visible);
    if members.keys().any(|name| matches!(visible(name), Cow::Owned(_))) {
        *members =
            std::mem::take(members).into_iter().map(|(name, value)| (visible(&name).into_owned(), value)).collect();
    }
}
