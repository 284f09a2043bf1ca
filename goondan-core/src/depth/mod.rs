//! The limit of nesting: checks where values come in, and the functions that drop a value that is nested deeper.
//!
//! Cloning, comparing, writing and dropping a JSON value recurse on the stack, level by level, and serde_json reads
//! only 127 levels of its own output. So a value that is nested too deeply is refused where it comes in: it could be
//! stored and never be read again. Nothing here recurses further than the limit.

mod serialize;
mod text;

use std::fmt;
use std::mem::take;
use std::ops::{Deref, DerefMut};

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

pub(crate) use serialize::{Unwritable, abandon, to_value, to_value_of_size, to_value_within, write_pretty};
pub use text::{MAX_STORED, check_text, from_json};

use crate::error::{Error, ErrorCode, Result};

/// The most lists and objects that a value may have inside of each other; a text or a number has none.
///
/// Values are stored and sent inside of others: a tool's output is in a part of a message, in an event, in a line of an
/// export, which adds up to 9 levels. Readers give up at 127 levels (serde_json) or at 100 (other implementations). The
/// limit leaves room for both, and people do not nest deeper.
pub const MAX_DEPTH: usize = 64;

/// A value is nested deeper than [`MAX_DEPTH`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooDeep {
    /// The place of the first list or object that is too deep, as a JSON pointer.
    place: String,
}

/// The most characters of a place that are shown. The rest tells only how deep the value is.
const SHOWN: usize = 60;

impl TooDeep {
    /// Finds the first place in `value` that is nested more than `limit` levels deep.
    #[cold]
    fn find(mut value: &Value, limit: usize) -> Self {
        let mut place = String::new();
        for left in (0..limit).rev() {
            let (segment, child) = match value {
                Value::Array(items) => {
                    let mut children = items.iter().enumerate();
                    let Some((index, child)) = children.find(|(_, child)| !fits(child, left)) else { break };
                    (index.to_string(), child)
                }
                Value::Object(members) => {
                    let Some((key, child)) = members.iter().find(|(_, child)| !fits(child, left)) else { break };
                    (escaped(key), child)
                }
                _ => break,
            };
            place.push('/');
            place.push_str(&segment);
            value = child;
        }
        Self { place }
    }

    /// Finds the first place in `map` that is nested too deeply.
    #[cold]
    fn find_in(map: &Map<String, Value>) -> Self {
        match map.iter().find(|(_, value)| !fits(value, MAX_DEPTH - 1)) {
            Some((key, value)) => Self::find(value, MAX_DEPTH - 1).within(format_args!("/{}", escaped(key))),
            None => Self { place: String::new() },
        }
    }

    /// Adds the beginning of the place: the pointer to the value itself, such as `/metadata`.
    #[must_use]
    pub(crate) fn within(self, prefix: impl fmt::Display) -> Self {
        Self { place: format!("{prefix}{}", self.place) }
    }

    /// Returns the refusal of the value `what`, such as `the output of the tool`, as an error with `code`.
    #[cold]
    pub fn into_error(self, code: ErrorCode, what: impl fmt::Display) -> Error {
        Error::new(code, format!("{what} {self}")).suggest("flatten the value, or put what is inside of it into a text")
    }

    /// Returns the refusal of `state`, such as `the state of …`.
    #[cold]
    pub fn refuse_state(self, state: impl fmt::Display) -> Error {
        self.into_error(ErrorCode::EXT_STATE, state)
    }

    /// Returns the refusal of `what` as `E_VALUE_DEPTH`.
    #[cold]
    pub fn refuse(self, what: impl fmt::Display) -> Error {
        self.into_error(ErrorCode::VALUE_DEPTH, what)
    }
}

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, rest) = match self.place.char_indices().nth(SHOWN) {
            Some((end, _)) => (&self.place[..end], "…"),
            None => (&*self.place, ""),
        };
        write!(f, "is nested more than {MAX_DEPTH} levels deep, at `{place}{rest}`")
    }
}

impl std::error::Error for TooDeep {}

/// Returns `key` as a segment of a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Returns whether `value` has at most `left` levels. It calls itself, but no deeper than that.
fn fits(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left > 0 && items.iter().all(|item| fits(item, left - 1)),
        Value::Object(members) => left > 0 && members.values().all(|member| fits(member, left - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Checks a value where it comes in.
///
/// # Errors
/// The place at which it is too deep.
#[inline]
pub fn check(value: &Value) -> Result<(), TooDeep> {
    check_within(value, MAX_DEPTH)
}

/// Checks that a value has at most `levels` levels.
///
/// # Errors
/// The place at which it is too deep.
#[inline]
pub(crate) fn check_within(value: &Value, levels: usize) -> Result<(), TooDeep> {
    if fits(value, levels) { Ok(()) } else { Err(TooDeep::find(value, MAX_DEPTH)) }
}

/// Checks an object, which is a level itself.
///
/// # Errors
/// The place at which it is too deep.
#[inline]
pub fn check_map(map: &Map<String, Value>) -> Result<(), TooDeep> {
    check_map_within(map, MAX_DEPTH)
}

/// Checks an object like [`check_within`].
#[inline]
pub(crate) fn check_map_within(map: &Map<String, Value>, levels: usize) -> Result<(), TooDeep> {
    if map_fits(map, levels) { Ok(()) } else { Err(TooDeep::find_in(map)) }
}

/// Returns whether `map` has at most `levels` levels. Most maps are empty, which costs no call.
#[inline]
fn map_fits(map: &Map<String, Value>, levels: usize) -> bool {
    map.is_empty() || members_fit(map, levels)
}

#[inline(never)]
fn members_fit(map: &Map<String, Value>, levels: usize) -> bool {
    map.values().all(|value| fits(value, levels - 1))
}

/// Returns `value` if it is not too deep, and drops it otherwise.
///
/// # Errors
/// The place at which it is too deep.
#[inline]
pub fn checked(value: Value) -> Result<Value, TooDeep> {
    match check(&value) {
        Ok(()) => Ok(value),
        Err(error) => {
            discard([value]);
            Err(error)
        }
    }
}

/// Checks the output of a tool.
///
/// # Errors
/// `E_VALUE_DEPTH`, which the model reads.
#[inline]
pub fn checked_output(output: Value) -> Result<Value> {
    checked(output).map_err(|error| error.refuse("the output of the tool"))
}

/// Drops values level by level instead of recursively.
#[cold]
pub(crate) fn discard(values: impl IntoIterator<Item = Value>) {
    let mut rest: Vec<Value> = values.into_iter().collect();
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => rest.extend(members.into_values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// A map that extensions fill through a `&mut`, so that its values are checked later. Dropping it does not recurse.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Unchecked(Map<String, Value>);

impl Unchecked {
    /// Checks the values.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH`, which names the map as `what`, if one is too deep.
    #[inline]
    pub fn check(&self, what: &str) -> Result<()> {
        check_map(&self.0).map_err(|error| error.refuse(what))
    }

    /// Returns whether no value is too deep.
    #[inline]
    pub fn is_accepted(&self) -> bool {
        check_map(&self.0).is_ok()
    }

    /// Returns the map, unless a value in it is too deep.
    ///
    /// # Errors
    /// The place of that value.
    #[inline]
    pub fn into_checked(mut self) -> Result<Map<String, Value>, TooDeep> {
        check_map(&self.0).map(|()| take(&mut self.0))
    }
}

impl Serialize for Unchecked {
    /// Fails if a value is too deep, instead of recursing into it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.check("a value in the metadata").map_err(|error| S::Error::custom(error.message()))?;
        self.0.serialize(serializer)
    }
}

impl From<Map<String, Value>> for Unchecked {
    fn from(map: Map<String, Value>) -> Self {
        Self(map)
    }
}

impl Deref for Unchecked {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl DerefMut for Unchecked {
    fn deref_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }
}

impl Drop for Unchecked {
    #[inline]
    fn drop(&mut self) {
        if !map_fits(&self.0, MAX_DEPTH) {
            discard(take(&mut self.0).into_values());
        }
    }
}

#[cfg(test)]
mod tests;
