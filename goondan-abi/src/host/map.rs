//! Owns how a map that a library changed takes the place of the host's: entry by entry, in the room that is there.

use std::borrow::Cow;
use std::fmt;

use goondan_core::Result;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Makes `map` what `json` says.
///
/// # Errors
/// When `json` is no object. Entries that stand before the fault have been taken.
pub(super) fn replace(map: &mut Map<String, Value>, json: &[u8]) -> Result<()> {
    let mut parser = serde_json::Deserializer::from_slice(json);
    let all = parser.deserialize_map(Entries(map))?;
    parser.end()?;
    if !all {
        *map = serde_json::from_slice(json)?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Takes entries in, if they are those that are there, in their order, and perhaps new ones behind them: what a library
/// makes of a map that it was given. Tells whether they were.
struct Entries<'m>(&'m mut Map<String, Value>);

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<bool, A::Error> {
        let mut old = self.0.iter_mut();
        let mut new = Vec::new();
        while let Some(Key(key)) = entries.next_key()? {
            match old.next() {
                Some((name, value)) if *name == *key => *value = entries.next_value()?,
                Some(_) => {
                    entries.next_value::<IgnoredAny>()?;
                    while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                    return Ok(false);
                }
                None => new.push((key.into_owned(), entries.next_value()?)),
            }
        }
        let all = old.next().is_none();
        self.0.extend(new);
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::{Map, Value, json};

    use super::replace;

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_map_becomes_what_the_library_says() {
        let old = map(json!({ "kept": 1, "changed": 2 }));
        for new in [json!({}), json!({ "kept": 1 }), json!({ "changed": [3], "kept": 1, "n\"ew": { "a": null } })] {
            let mut replaced = old.clone();
            replace(&mut replaced, new.to_string().as_bytes()).unwrap();
            assert_eq!(replaced, map(new));
        }
        let mut twice = old.clone();
        replace(&mut twice, br#"{"kept": 1, "kept": 2}"#).unwrap();
        assert_eq!(twice, map(json!({ "kept": 2 })));
        for broken in ["[]", "{", "{} {}"] {
            replace(&mut old.clone(), broken.as_bytes()).unwrap_err();
        }
    }
}
