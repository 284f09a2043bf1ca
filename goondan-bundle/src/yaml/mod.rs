//! The tree of a YAML document. Every value has its place in the file.

mod parse;
pub(crate) use parse::{documents, on_large_stack, one, parsing};

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::Spanned;

use crate::diagnostic::Place;

/// A value and its place. For a value behind an alias, that is the place of the anchor: the author changes it there.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    Sequence(Vec<Node>),
    /// In the order of the file; the parser refuses duplicate keys.
    Mapping(Vec<MapEntry>),
}

/// One key of a mapping, and its value.
#[derive(Debug)]
pub(crate) struct MapEntry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) node: Node,
}

impl Node {
    /// The value of `key`, if this is a mapping that has the key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node),
            _ => None,
        }
    }

    /// The value without the places.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(number) => number.clone().into(),
            Value::Text(text) => text.as_str().into(),
            Value::Sequence(items) => items.iter().map(Self::to_json).collect(),
            Value::Mapping(entries) => entries.iter().map(|entry| (entry.key.as_str(), entry.node.to_json())).collect(),
        }
    }
}

/// The value as errors describe it, such as ``the text `yes` ``.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("nothing"),
            Self::Bool(value) => write!(f, "`{value}`"),
            Self::Number(number) => write!(f, "the number `{number}`"),
            Self::Text(text) => match text.char_indices().nth(40) {
                Some((end, _)) => write!(f, "the text `{}…`", text[..end].escape_debug()),
                None => write!(f, "the text `{}`", text.escape_debug()),
            },
            Self::Sequence(_) => f.write_str("a list"),
            Self::Mapping(_) => f.write_str("a mapping"),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { place: spanned.defined.into(), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, node)) = access.next_entry::<Spanned<String>, Node>()? {
            entries.push(MapEntry { key: key.value, key_place: key.defined.into(), node });
        }
        Ok(Value::Mapping(entries))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(text: &str) -> Node {
        documents(Path::new("a.yaml"), text).unwrap().remove(0).unwrap()
    }

    #[test]
    fn value_behind_an_alias_has_the_place_of_the_anchor() {
        let root = read("a: &x\n  b: 1\nc: *x\n");
        let place = Place { line: 2, column: 6 };
        assert_eq!(root.get("a").unwrap().get("b").unwrap().place, place);
        assert_eq!(root.get("c").unwrap().get("b").unwrap().place, place);
    }

    #[test]
    fn scalars_keep_their_types() {
        let text = "{ a: yes, b: true, c: ~, d: 0x1f, e: 007, f: 1_000, g: 1.5, h: -2, i: '3', 4: x }";
        let json = serde_json::json!({
            "a": "yes", "b": true, "c": null, "d": 31, "e": "007", "f": "1_000", "g": 1.5, "h": -2, "i": "3", "4": "x"
        });
        assert_eq!(read(text).to_json(), json);
    }

    #[test]
    fn descriptions_of_values_are_short() {
        let described = |text| read(text).get("a").unwrap().value.to_string();
        assert_eq!(described("a:\n"), "nothing");
        assert_eq!(described("a: 5\n"), "the number `5`");
        assert_eq!(described("a: \"b\\nc\"\n"), "the text `b\\nc`");
        assert_eq!(described(&format!("a: {}\n", "é".repeat(50))), format!("the text `{}…`", "é".repeat(40)));
    }
}
