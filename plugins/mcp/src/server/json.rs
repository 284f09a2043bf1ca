//! Finds the parts of a JSON text without reading them, so that a part that is too large is never read.
//!
//! A text that is not JSON has any parts: the reader of one of them finds out.

use std::borrow::Cow;

/// The least size of a value, in bytes.
const VALUE: usize = 64;
/// The greatest depth of nested values. The reader refuses more than 127.
const DEEPEST: usize = 100;

/// Why a text is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    Size,
    Depth,
}

/// Checks that a text has at most `limit` bytes, with at least 64 for each value, and is not nested too deeply.
///
/// # Errors
/// The limit that it exceeds.
pub(crate) fn check(text: &[u8], limit: usize) -> Result<(), Excess> {
    let (mut values, mut depth, mut deepest, mut at) = (1, 0_usize, 0, 0);
    while let Some(byte) = text.get(at) {
        at = if *byte == b'"' { string_end(text, at) } else { at + 1 };
        match byte {
            b'{' | b'[' => {
                (values, depth) = (values + 1, depth + 1);
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
    }
    match () {
        () if text.len().max(values * VALUE) > limit => Err(Excess::Size),
        () if deepest > DEEPEST => Err(Excess::Depth),
        () => Ok(()),
    }
}

/// Iterates over the members of an object, or the elements of a list. The last one may be cut off.
pub(crate) struct Parts<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parts<'a> {
    /// The parts of the value in `text`; none if it has no parts.
    pub(crate) fn of(text: &'a [u8]) -> Self {
        let text = text.trim_ascii_start();
        Self { text, at: if text.starts_with(b"{") || text.starts_with(b"[") { 1 } else { text.len() } }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.text.get(self.at..)?;
        let (mut end, mut depth) = (0, 0_usize);
        while let Some(byte) = rest.get(end) {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => depth -= 1,
                b'}' | b']' | b',' if depth == 0 => break,
                _ => {}
            }
            end = if *byte == b'"' { string_end(rest, end) } else { end + 1 };
        }
        // Nothing follows the bracket that ends the value.
        self.at = if rest.get(end) == Some(&b',') { self.at + end + 1 } else { self.text.len() };
        Some(rest[..end].trim_ascii()).filter(|part| !part.is_empty())
    }
}

/// Iterates over the names and values of an object.
pub(crate) fn members(text: &[u8]) -> impl Iterator<Item = (Cow<'_, [u8]>, &[u8])> {
    Parts::of(text).filter_map(|member| {
        let end = string_end(member, 0);
        let value = member.get(end..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let name = member.get(..end)?;
        // A name can be written in several ways.
        let name = match name.contains(&b'\\') {
            true => Cow::Owned(goondan::json::from_slice::<String>(name).ok()?.into_bytes()),
            false => Cow::Borrowed(name.strip_prefix(b"\"")?.strip_suffix(b"\"")?),
        };
        Some((name, value))
    })
}

/// Returns where the string ends that begins at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use goondan::{Value, json};
    use proptest::prelude::*;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), any::<String>().prop_map(Value::from)];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_parts_of_a_value_are_found(value in any_json(), pretty: bool) {
            let text = if pretty { json::to_string_pretty(&value) } else { json::to_string(&value) }.unwrap();
            let read = |part: &[u8]| json::from_slice::<Value>(part).unwrap();
            match &value {
                Value::Array(elements) => {
                    prop_assert_eq!(&Parts::of(text.as_bytes()).map(read).collect::<Vec<_>>(), elements);
                }
                Value::Object(object) => {
                    let found = members(text.as_bytes());
                    let found = found.map(|(name, value)| (String::from_utf8(name.into_owned()).unwrap(), read(value)));
                    prop_assert_eq!(found.collect::<Vec<_>>(), object.clone().into_iter().collect::<Vec<_>>());
                }
                _ => prop_assert_eq!(Parts::of(text.as_bytes()).count(), 0),
            }
        }

        #[test]
        fn no_text_breaks_it(text: Vec<u8>, brackets in r#"[\[\]{}",:\\a ]{0,40}"#) {
            for text in [&text[..], brackets.as_bytes()] {
                let (parts, members) = (Parts::of(text).count(), members(text).count());
                prop_assert!(members <= parts && parts <= text.len());
                let _ = check(text, 1000);
            }
        }
    }

    #[test]
    fn values_count_more_than_their_bytes() {
        assert_eq!(check(br#"{"a":"[[[[,,,,]]]]"}"#, 128), Ok(()));
        assert_eq!(check(b"[[],[],[]]", 256), Err(Excess::Size));
        assert_eq!(check(&[b' '; 100], 99), Err(Excess::Size));
        let deep = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!([100, 101].map(|depth| check(deep(depth).as_bytes(), 100_000)), [Ok(()), Err(Excess::Depth)]);
    }
}
