//! Values of events that an answer does not need.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value that only counts, prices or names, so that it must not fail an answer: any other JSON is nothing.
///
/// It is a scalar, or a struct whose members are of this type. A list is never read: structs would take its elements
/// for their members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maybe<T>(pub(super) Option<T>);

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData)).map(Self)
    }
}

struct Any<T>(PhantomData<T>);

/// Returns the value of a scalar, if it is one of the wanted type.
fn scalar<'de, T: Deserialize<'de>, E: Error>(value: impl IntoDeserializer<'de, E>) -> Result<Option<T>, E> {
    Ok(T::deserialize(value.into_deserializer()).ok())
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Option<T>, E> {
        scalar(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Option<T>, E> {
        scalar(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Option<T>, E> {
        scalar(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Option<T>, E> {
        scalar(value)
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Option<T>, E> {
        Ok(T::deserialize(BorrowedStrDeserializer::<E>::new(value)).ok())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Option<T>, E> {
        scalar(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<T>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Option<T>, A::Error> {
        let value = T::deserialize(MapAccessDeserializer::new(&mut object)).ok();
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::Text;

    #[derive(Default, Deserialize)]
    struct Counts<'a> {
        #[serde(default)]
        tokens: Maybe<u64>,
        #[serde(default, borrow)]
        name: Maybe<Text<'a>>,
    }

    #[test]
    fn what_cannot_be_read_is_nothing() {
        let others = [json!(null), json!(true), json!(-1), json!(0.5), json!([7, "x"]), json!({ "tokens": [7] })];
        for other in others {
            let list = format!("[{other}, {{\"tokens\": 7}}]");
            let read: [Maybe<Counts<'_>>; 2] = serde_json::from_str(&list).unwrap();
            let [first, second] = read.map(|counts| counts.0.unwrap_or_default());
            assert_eq!((first.tokens.0, first.name.0), (None, None), "{other}");
            assert_eq!(second.tokens.0, Some(7), "{other}");
            let event = format!("{{\"name\": {other}, \"tokens\": 7}}");
            let event: Counts<'_> = serde_json::from_str(&event).unwrap();
            assert_eq!((event.tokens.0, event.name.0), (Some(7), None), "{other}");
        }
    }

    #[test]
    fn texts_are_read_with_and_without_escapes() {
        for (json, text) in [(r#"{"name": "plain"}"#, "plain"), (r#"{"name": "a\nb"}"#, "a\nb")] {
            let read: Counts<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(read.name.0.as_deref(), Some(text));
        }
    }
}
