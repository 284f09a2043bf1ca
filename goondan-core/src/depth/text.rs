//! Nesting of JSON text, which is found without parsing it.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::{MAX_DEPTH, TooDeep};
use crate::error::Result;

/// The most levels of a stored record. Those of goondan have fewer, those of other implementations may have more.
///
/// Records are sent on inside of others: a message to a library within a list of events, or in an event about the input
/// of a model (3 levels more). Libraries read 127 levels.
pub const MAX_STORED: usize = 112;

/// Iterates over the brackets of JSON text, each with its offset. Those within strings are no brackets.
struct Brackets<'a> {
    json: &'a [u8],
    at: usize,
}

impl Iterator for Brackets<'_> {
    type Item = (usize, u8);

    fn next(&mut self) -> Option<(usize, u8)> {
        let mut in_string = false;
        loop {
            let byte = *self.json.get(self.at)?;
            let here = self.at;
            self.at += 1;
            match byte {
                b'\\' if in_string => self.at += 1,
                b'"' => in_string = !in_string,
                b'[' | b'{' | b']' | b'}' if !in_string => return Some((here, byte)),
                _ => {}
            }
        }
    }
}

fn opens(bracket: u8) -> bool {
    matches!(bracket, b'[' | b'{')
}

/// Whether some value in `json` has more than `limit` levels.
fn exceeds(json: &[u8], limit: usize) -> bool {
    // Most texts have fewer brackets in all. Counting bytes costs next to nothing.
    if json.iter().filter(|byte| opens(**byte)).count() <= limit {
        return false;
    }
    let mut level = 0_usize;
    Brackets { json, at: 0 }.any(|(_, bracket)| {
        level = if opens(bracket) { level + 1 } else { level.saturating_sub(1) };
        level > limit
    })
}

/// Refuses JSON text with more than `limit` levels. The limit is higher than [`MAX_DEPTH`] where values are inside of
/// others.
///
/// # Errors
/// The place at which it has more than [`MAX_DEPTH`] levels. Text that is no JSON passes: its reader reports that.
pub fn check_text(json: &[u8], limit: usize) -> Result<(), TooDeep> {
    if !exceeds(json, limit) {
        return Ok(());
    }
    // As many levels as the place has, and no more than can be read.
    match serde_json::from_slice::<Value>(&fold(json, MAX_DEPTH + 1)) {
        Ok(value) => Err(TooDeep::find(&value, MAX_DEPTH)),
        Err(_) => Ok(()),
    }
}

/// Returns `json` with everything inside of its `kept` outer levels as text: a list or object that would be one level
/// deeper becomes a string with its JSON. Text that is no JSON is returned unchanged.
pub(super) fn fold(json: &[u8], kept: usize) -> Cow<'_, [u8]> {
    // Ignoring a value does not recurse, unlike reading it.
    if !exceeds(json, kept) || serde_json::from_slice::<IgnoredAny>(json).is_err() {
        return Cow::Borrowed(json);
    }
    let (mut folded, mut copied, mut level) = (Vec::with_capacity(json.len()), 0, 0);
    for (at, bracket) in (Brackets { json, at: 0 }) {
        if opens(bracket) {
            level += 1;
            if level == kept + 1 {
                folded.extend_from_slice(&json[copied..at]);
                copied = at;
            }
        } else {
            if level == kept + 1 {
                let text = String::from_utf8_lossy(&json[copied..=at]);
                folded.extend_from_slice(Value::from(text).to_string().as_bytes());
                copied = at + 1;
            }
            level -= 1;
        }
    }
    folded.extend_from_slice(&json[copied..]);
    Cow::Owned(folded)
}

/// The most levels that serde_json reads.
const READABLE: usize = 127;

/// Parses JSON of another binary.
///
/// # Errors
/// `E_VALUE_DEPTH` when it is nested too deeply to be read, else the error of the parser.
pub fn from_json<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| match check_text(json, READABLE) {
        Ok(()) => error.into(),
        Err(too_deep) => too_deep.refuse("the value"),
    })
}
