//! Events in which a member occurs twice.

use serde_json::Value;

use crate::http::Failure;

/// Reads an event, and once more if it is JSON that could not be read: structs refuse a member that occurs twice, while
/// a [`Value`] has the later one. `read` does nothing with an event that it cannot read.
pub(super) fn once(data: &str, mut read: impl FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    match read(data) {
        Err(failure) if failure.is_unreadable() => match serde_json::from_str::<Value>(data) {
            Ok(event) => read(&event.to_string()),
            Err(_) => Err(failure),
        },
        outcome => outcome,
    }
}
