//! F-BASE: the tools that take JSON apart.

use goondan::tool::Effect;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use crate::call::{call, effects, open, refused};

#[both_linkages]
async fn a_path_leads_to_a_value() {
    let mut chat = open("json-query", json!({})).await;
    let tools = ["query", "count", "pick", "flatten"].map(|tool| (format!("json-query__{tool}"), Effect::Read));
    assert_eq!(effects(&chat).await, tools);
    let data = json!({
        "users": [{ "name": "Ada", "tags": [] }, { "name": "Grace", "tags": ["a"] }],
        "files": { "a.txt": 1, "b]": 2, "": 3 },
        "none": null,
    });
    for (path, value) in [
        (".", Some(data.clone())),
        ("$", Some(data.clone())),
        ("", Some(data.clone())),
        ("users[0].name", Some(json!("Ada"))),
        (".users[1].tags[0]", Some(json!("a"))),
        ("$.users.1.name", Some(json!("Grace"))),
        ("users[-1].name", Some(json!("Grace"))),
        ("users[-2].name", Some(json!("Ada"))),
        ("users[-3]", None),
        ("users[2]", None),
        ("users.name", None),
        ("files[0]", None),
        ("files[\"a.txt\"]", Some(json!(1))),
        ("files['b]']", Some(json!(2))),
        ("files[\"\"]", Some(json!(3))),
        ("none", Some(Value::Null)),
        ("none.more", None),
        ("users[0].name.more", None),
    ] {
        let found = call(&mut chat, "json-query__query", json!({ "data": data.to_string(), "path": path })).await;
        assert_eq!(found, json!({ "path": path, "found": value.is_some(), "value": value }), "{path}");
    }
    let found = call(&mut chat, "json-query__query", json!({ "data": "[1]" })).await;
    assert_eq!(found, json!({ "path": ".", "found": true, "value": [1] }));
}

#[both_linkages]
async fn what_is_wrong_with_the_arguments_is_said() {
    let mut chat = open("json-query", json!({})).await;
    for path in ["a[", "a[b]", "a[\"b]", "a[\"b\"", "a..b", "[1 2]"] {
        let (_, message) = refused(&mut chat, "json-query__query", json!({ "data": "{}", "path": path })).await;
        assert!(message.contains(&format!("the path `{path}` is wrong at")), "{message}");
    }
    let (_, message) = refused(&mut chat, "json-query__query", json!({ "data": "{ a: 1 }" })).await;
    assert!(message.contains("`data` is not JSON") && message.contains("line 1 column 3"), "{message}");
    let (_, message) = refused(&mut chat, "json-query__pick", json!({ "data": "[]", "keys": ["a"] })).await;
    assert!(message.contains("`data` is no object; its type is array"), "{message}");
    let (_, message) = refused(&mut chat, "json-query__flatten", json!({ "data": "{}" })).await;
    assert!(message.contains("`data` is no array; its type is object"), "{message}");
    let (_, message) = refused(&mut chat, "json-query__count", json!({ "data": "{}", "path": "a" })).await;
    assert!(message.contains("there is nothing at `a`"), "{message}");
}

#[both_linkages]
async fn values_are_counted_picked_and_flattened() {
    let mut chat = open("json-query", json!({})).await;
    for (data, kind, count) in [
        (json!([1, 2, 3]), "array", 3),
        (json!({ "a": 1, "b": 2 }), "object", 2),
        (json!("äöü"), "string", 3),
        (json!(12), "number", 1),
        (json!(true), "boolean", 1),
        (json!(null), "null", 0),
    ] {
        let counted = call(&mut chat, "json-query__count", json!({ "data": data.to_string() })).await;
        assert_eq!(counted, json!({ "path": ".", "count": count, "type": kind }));
    }
    let data = json!({ "a": 1, "b": 2, "c": 3 }).to_string();
    let picked = call(&mut chat, "json-query__pick", json!({ "data": data, "keys": ["c", "a", "x", "c"] })).await;
    assert_eq!(picked.to_string(), r#"{"result":{"c":3,"a":1},"missing":["x"]}"#);
    let data = json!([1, [2, [3, [4]]], "5"]).to_string();
    for (depth, result) in [
        (json!(0), json!([1, [2, [3, [4]]], "5"])),
        (json!(1), json!([1, 2, [3, [4]], "5"])),
        (json!(9), json!([1, 2, 3, 4, "5"])),
    ] {
        let flat = call(&mut chat, "json-query__flatten", json!({ "data": data, "depth": depth })).await;
        assert_eq!(flat, json!({ "count": result.as_array().unwrap().len(), "result": result }));
    }
    assert_eq!(call(&mut chat, "json-query__flatten", json!({ "data": data })).await["count"], 4);
}

#[both_linkages]
#[covers("SIZE-01")]
async fn json_with_too_many_values_is_refused() {
    let mut chat = open("json-query", json!({})).await;
    let data = |values: usize| format!("[{}1]", "1,".repeat(values - 2));
    let count = call(&mut chat, "json-query__count", json!({ "data": data(200_000) })).await;
    assert_eq!(count["count"], 199_999);
    let (_, text) = refused(&mut chat, "json-query__count", json!({ "data": data(200_001) })).await;
    assert!(text.contains("`data` has 200001 values, and may have 200000"), "{text}");
}
