//! Derived schemas, which are compiled without the meta-schema, report the same violations as schemas compiled with it.

use goondan_core::ErrorCode;
use goondan_runtime::schema::Schema;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        select(vec![json!(1.0), json!(1.5), json!(9_007_199_254_740_993_u64), json!(u64::MAX), json!(1e300)]),
        select(vec!["", "a", "b", "debug"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(select(vec!["a", "b", "c"]), inner, 0..3)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

/// Generates a keyword and its value; some values are invalid.
fn keyword(schema: BoxedStrategy<Value>) -> BoxedStrategy<(&'static str, Value)> {
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    let named = prop::collection::btree_map(select(vec!["a", "b"]), schema.clone(), 0..3)
        .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>());
    let several = prop::collection::vec(schema.clone(), 0..3).prop_map(Value::from);
    let choice = prop::collection::vec(
        select(vec!["a", "b", "debug"]).prop_map(|text| json!({ "type": "string", "const": text, "title": "it" })),
        1..4,
    );
    prop_oneof![
        4 => select(TYPES.to_vec()).prop_map(|name| ("type", json!(name))),
        2 => subsequence(TYPES.to_vec(), 0..4).prop_map(|names| ("type", json!(names))),
        1 => select(vec![json!("whole"), json!(["null", "null"]), json!(3)]).prop_map(|wrong| ("type", wrong)),
        2 => named.clone().prop_map(|schemas| ("properties", schemas)),
        2 => subsequence(vec!["a", "b", "c"], 0..3).prop_map(|names| ("required", json!(names))),
        1 => Just(("required", json!(["a", "a"]))),
        1 => any::<bool>().prop_map(|allowed| ("additionalProperties", json!(allowed))),
        1 => schema.clone().prop_map(|schema| ("additionalProperties", schema)),
        2 => schema.clone().prop_map(|schema| ("items", schema)),
        2 => several.clone().prop_map(|schemas| ("anyOf", schemas)),
        1 => several.prop_map(|schemas| ("oneOf", schemas)),
        2 => choice.prop_map(|schemas| ("oneOf", json!(schemas))),
        1 => schema.clone().prop_map(|schema| ("not", schema)),
        1 => schema.prop_map(|schema| ("unevaluatedProperties", schema)),
        1 => (0..3_u32).prop_map(|length| ("maxLength", json!(length))),
        1 => (0..3_u32).prop_map(|length| ("minItems", json!(length))),
        2 => prop::collection::vec(value(), 0..3).prop_map(|values| ("enum", json!(values))),
        1 => value().prop_map(|value| ("const", value)),
        1 => value().prop_map(|value| ("default", value)),
        2 => select(vec![json!(-1), json!(1), json!(1.5), json!("1")]).prop_map(|least| ("minimum", least)),
        1 => select(vec![json!(1), json!(2.5), json!(u64::MAX)]).prop_map(|most| ("maximum", most)),
        1 => (0..3_u32).prop_map(|length| ("minLength", json!(length))),
        2 => select(vec!["#/$defs/a", "#/$defs/b", "#", "#/$defs/none"]).prop_map(|place| ("$ref", json!(place))),
        1 => select(vec![json!("uint"), json!("date"), json!(1)]).prop_map(|format| ("format", format)),
        1 => select(vec![json!("text"), json!(1)]).prop_map(|title| ("title", title)),
        1 => Just(("unheardOf", json!({}))),
    ]
    .boxed()
}

fn schema() -> impl Strategy<Value = Value> {
    let object = |inner: BoxedStrategy<Value>| {
        prop::collection::vec(keyword(inner), 0..4).prop_map(|keywords| {
            keywords.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
        })
    };
    let leaf = prop_oneof![9 => Just(json!({})), 1 => any::<bool>().prop_map(Value::from)];
    let any = leaf.prop_recursive(3, 12, 3, move |inner| object(inner.boxed()));
    (any.clone(), any.clone(), any).prop_map(|(mut root, a, b): (Value, Value, Value)| {
        if let Some(root) = root.as_object_mut() {
            root.insert("$defs".to_owned(), json!({ "a": a, "b": b }));
        }
        root
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("GOONDAN_RUNS").map_or(400, |runs| runs.parse().unwrap()),
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_derived_schema_compiles_and_reports_the_same_violations(schema in schema(), values in prop::collection::vec(value(), 4)) {
        match (Schema::derived(&schema), Schema::compile(&schema)) {
            (Ok(derived), Ok(full)) => for value in &values {
                // Of a schema that is not compiled before it is needed, and then of one that is.
                let fresh = Schema::derived(&schema).unwrap();
                prop_assert_eq!(fresh.violations(value), full.violations(value), "{} for {}", value, schema);
                prop_assert_eq!(derived.violations(value), full.violations(value), "{} for {}", value, schema);
            },
            (derived, Ok(_)) => prop_assert!(false, "{}: {:?}", schema, derived.err()),
            // The meta-schema rejects it, and perhaps the compiler does too.
            (_, Err(error)) => prop_assert_eq!(error.code(), &ErrorCode::SCHEMA_INVALID),
        }
    }
}

#[test]
fn a_reference_to_itself_ends() {
    let schema = Schema::derived(&json!({ "$ref": "#/$defs/a", "$defs": { "a": { "anyOf": [
        { "type": "null" },
        { "type": "object", "properties": { "next": { "$ref": "#/$defs/a" } }, "required": ["next"] },
    ] } } }));
    let schema = schema.unwrap();
    let list = |length: usize| (0..length).fold(json!(null), |next, _| json!({ "next": next }));
    assert_eq!(schema.violations(&list(3)), []);
    assert_eq!(schema.violations(&list(100)), []);
    assert!(!schema.violations(&json!({ "next": 1 })).is_empty());
}
