//! Overwrites a JSON map in place, which reuses its allocations. Metadata crosses the ABI as a whole and is mostly
//! unchanged: the host overwrites its map, and the guest the map that the layer before it wrote.
//!
//! With new maps instead, both would allocate the table and every key again (`benches/tests/budget.rs` asserts the
//! allocations of a layer).

use std::borrow::Cow;
use std::fmt;
use std::mem::take;

use goondan_core::Result;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::de::Read;
use serde_json::{Map, Value};

/// Makes `map` equal to the object in `json`.
///
/// # Errors
/// If `json` is no object. Entries before the error have been applied.
pub(crate) fn overwrite<'de>(map: &mut Map<String, Value>, json: impl Read<'de>) -> Result<()> {
    let mut parser = serde_json::Deserializer::new(json);
    parser.deserialize_map(Entries(map))?;
    Ok(parser.end()?)
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Applies entries to a map. As long as the keys are equal and in the same order, which is usual for all entries,
/// only values are replaced.
struct Entries<'m>(&'m mut Map<String, Value>);

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Self(map) = self;
        let (mut same, mut new) = (0, None);
        let mut old = map.iter_mut();
        while let Some(Key(key)) = entries.next_key()? {
            match old.next() {
                Some((name, value)) if *name == *key => *value = entries.next_value()?,
                _ => {
                    new = Some(key.into_owned());
                    break;
                }
            }
            same += 1;
        }
        if same < map.len() {
            *map = take(map).into_iter().take(same).collect();
        }
        if let Some(key) = new {
            map.insert(key, entries.next_value()?);
        }
        while let Some((key, value)) = entries.next_entry()? {
            map.insert(key, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::de::SliceRead;
    use serde_json::{Map, Value, json};

    use super::overwrite;

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_map_becomes_equal_to_the_json() {
        let old = map(json!({ "kept": 1, "changed": 2 }));
        for new in [
            json!({}),
            json!({ "kept": 1 }),
            json!({ "kept": 1, "other": 2 }),
            json!({ "changed": [3], "kept": 1, "n\"ew": { "a": null } }),
        ] {
            let mut overwritten = old.clone();
            overwrite(&mut overwritten, SliceRead::new(new.to_string().as_bytes())).unwrap();
            assert_eq!(overwritten, map(new));
        }
        let mut twice = old.clone();
        overwrite(&mut twice, SliceRead::new(br#"{"kept": 1, "kept": 2}"#)).unwrap();
        assert_eq!(twice, map(json!({ "kept": 2 })));
        for broken in ["[]", "{", "{} {}"] {
            overwrite(&mut old.clone(), SliceRead::new(broken.as_bytes())).unwrap_err();
        }
    }
}
