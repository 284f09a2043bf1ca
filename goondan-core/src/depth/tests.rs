use proptest::prelude::*;
use serde::ser::SerializeSeq;
use serde_json::json;

use super::text::{check_text, fold};
use super::*;

/// Returns a text inside of `levels` lists and objects, which alternate.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("core"), |value, level| {
        if level % 2 == 0 {
            Value::Array(vec![json!(1), value])
        } else {
            Value::Object(Map::from_iter([("a/b".into(), value)]))
        }
    })
}

/// A value of a Rust type that is as deep as it says, without being so in memory.
struct Levels(usize);

impl Serialize for Levels {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let Some(inside) = self.0.checked_sub(1) else { return serializer.serialize_u8(7) };
        let mut list = serializer.serialize_seq(Some(1))?;
        list.serialize_element(&Self(inside))?;
        list.end()
    }
}

#[test]
fn values_up_to_the_limit_are_accepted_and_deeper_ones_refused_with_their_place() {
    for levels in [0, 1, 63, 64, 65, 127, 128, 1_000, 100_000, 200_000] {
        assert_eq!(check(&nested(levels.min(64))), Ok(()));
        let deep = nested(levels);
        assert_eq!(check(&deep).is_ok(), levels <= MAX_DEPTH, "{levels}");
        if let Err(error) = checked(deep) {
            assert!(error.place.len() > 64 && error.place.starts_with(['/']), "{error}");
            assert!(error.to_string().starts_with("is nested more than 64 levels deep, at `/"), "{error}");
            assert!(error.to_string().len() < 120, "{error}");
        }
    }
    let (deep, flat) = (nested(65), json!([[1], {}]));
    let value = json!({ "flat": flat, "a~b": [0, 1, deep] });
    let place = check(&value).unwrap_err().place;
    assert_eq!(place.get(..13), Some("/a~0b/2/1/a~1"), "{place}");
    assert_eq!(value.pointer(&place), Some(&json!([1, { "a/b": [1, "core"] }])), "{place}");
}

#[test]
fn a_rust_value_is_written_up_to_the_limit() {
    for levels in [0, 1, 64, 65, 200, 300, 10_000_000] {
        match to_value(Levels(levels)) {
            Ok(value) => assert!(levels <= MAX_DEPTH && check(&value).is_ok(), "{levels}"),
            Err(Unwritable::TooDeep(error)) => {
                assert!(levels > MAX_DEPTH);
                assert_eq!(error.place, "/0".repeat(64));
            }
            Err(Unwritable::Json(error)) => panic!("{levels}: {error}"),
        }
    }
    // A value of JSON of 200,000 levels is neither serialized nor dropped recursively.
    assert!(matches!(to_value(nested(200_000)), Err(Unwritable::TooDeep(_))));
    let unwritable = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert!(matches!(to_value(unwritable), Err(Unwritable::Json(_))));
}

#[test]
fn the_levels_of_rust_types_are_those_of_their_json() {
    #[derive(Serialize)]
    enum Tree {
        Leaf,
        One(Box<Self>),
        Two(Box<Self>, u8),
        Named { child: Box<Self> },
    }
    #[derive(Serialize)]
    struct Node(Option<Box<Self>>, ());
    let tree = |kind: u8, levels: usize| {
        (0..levels).fold(Tree::Leaf, |tree, _| match kind {
            0 => Tree::One(Box::new(tree)),
            1 => Tree::Two(Box::new(tree), 1),
            _ => Tree::Named { child: Box::new(tree) },
        })
    };
    for (kind, most) in [(0, 64), (1, 32), (2, 32)] {
        let value = to_value(tree(kind, most)).unwrap();
        assert_eq!(value, serde_json::to_value(tree(kind, most)).unwrap());
        assert!(!fits(&value, MAX_DEPTH - 1));
        assert!(matches!(to_value(tree(kind, most + 1)), Err(Unwritable::TooDeep(_))));
    }
    let node = |levels| (0..levels).fold(Node(None, ()), |node, _| Node(Some(Box::new(node)), ()));
    assert_eq!(to_value(node(63)).unwrap(), serde_json::to_value(node(63)).unwrap());
    assert!(matches!(to_value(node(64)), Err(Unwritable::TooDeep(_))));
}

#[test]
fn a_map_of_extensions_is_dropped_without_recursion() {
    let deep =
        |levels| Unchecked::from(Map::from_iter([("flat".to_owned(), json!(1)), ("deep".to_owned(), nested(levels))]));
    drop(deep(200_000));
    assert!(deep(200_000).into_checked().is_err());
    assert!(serde_json::to_vec(&deep(200_000)).unwrap_err().to_string().contains("/deep/"));
    let error = deep(64).check("a value").unwrap_err();
    assert_eq!(error.code(), &ErrorCode::VALUE_DEPTH);
    assert!(
        error.message().starts_with("a value is nested more than 64 levels deep, at `/deep/a~1b/1/a~1b/1"),
        "{error}"
    );
    assert_eq!(deep(63).into_checked().unwrap().len(), 2);
}

/// Returns `value` with the texts that [`fold`] made parsed again.
fn unfolded(value: Value, level: usize, kept: usize) -> Value {
    match value {
        Value::String(text) if level == kept && text.starts_with(['[', '{']) => serde_json::from_str(&text).unwrap(),
        Value::Array(items) => items.into_iter().map(|item| unfolded(item, level + 1, kept)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, member)| (key, unfolded(member, level + 1, kept))).collect()
        }
        other => other,
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[a-c{}\\[\\]\"\\\\,: é]{0,6}".prop_map(|text| Value::from(format!("\"{text}")))
    ];
    leaf.prop_recursive(8, 64, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c{\"\\\\]{0,3}", inner, 0..4)
                .prop_map(|members| members.into_iter().collect())
        ]
    })
}

proptest! {
    #[test]
    fn folding_keeps_the_outer_levels_and_loses_nothing(value in any_json(), kept in 1_usize..6) {
        let json = value.to_string();
        let folded = fold(json.as_bytes(), kept);
        let read: Value = serde_json::from_slice(&folded).unwrap();
        prop_assert!(fits(&read, kept));
        prop_assert_eq!(fits(&value, kept), matches!(folded, std::borrow::Cow::Borrowed(_)));
        prop_assert_eq!(unfolded(read, 0, kept), value);
    }
}

#[test]
fn text_of_any_depth_is_folded_and_text_that_is_no_json_left_alone() {
    let deep = |levels: usize| format!("{}\"core\"{}", "[".repeat(levels), "]".repeat(levels));
    for levels in [112, 113, 127, 128, 2_000, 200_000] {
        let json = deep(levels);
        let folded: Value = serde_json::from_slice(&fold(json.as_bytes(), MAX_STORED)).unwrap();
        assert!(fits(&folded, MAX_STORED));
        let inner = (0..MAX_STORED).fold(&folded, |value, _| &value[0]);
        let expected = if levels == MAX_STORED { "core".to_owned() } else { deep(levels - MAX_STORED) };
        assert_eq!(inner, &json!(expected));
        assert_eq!(check_text(json.as_bytes(), 127).is_err(), levels > 127);
    }
    for broken in [format!("{}]", deep(200)), "[".repeat(200), format!("{}x{}", "[".repeat(200), "]".repeat(200))] {
        assert_eq!(&*fold(broken.as_bytes(), MAX_STORED), broken.as_bytes());
        assert_eq!(check_text(broken.as_bytes(), 127), Ok(()));
    }
    let error = from_json::<Value>(deep(128).as_bytes()).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::VALUE_DEPTH);
    assert!(error.message().contains("at `/0/0/0"), "{error}");
    assert_eq!(from_json::<Value>(b"[").unwrap_err().code(), &ErrorCode::EXT_RUNTIME);
}
