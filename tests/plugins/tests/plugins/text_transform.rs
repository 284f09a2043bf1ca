//! F-BASE: the tools that change text.

use goondan::json;
use goondan::tool::Effect;
use goondan_covers::{both_linkages, covers};

use crate::call::{call, effects, open, refused};

#[both_linkages]
async fn each_tool_does_what_it_is_called() {
    let mut chat = open("text-transform", json!({})).await;
    let names = ["replace", "slice", "split", "join", "trim", "case"];
    assert_eq!(effects(&chat).await, names.map(|name| (format!("text-transform__{name}"), Effect::Read)));
    for (tool, arguments, output) in [
        (
            "replace",
            json!({ "text": "a.b.c", "search": ".", "replacement": "-" }),
            json!({ "result": "a-b.c", "replacements": 1 }),
        ),
        (
            "replace",
            json!({ "text": "a.b.c", "search": ".", "all": true }),
            json!({ "result": "abc", "replacements": 2 }),
        ),
        ("replace", json!({ "text": "abc", "search": "x" }), json!({ "result": "abc", "replacements": 0 })),
        ("split", json!({ "text": "a\nb\n" }), json!({ "count": 3, "parts": ["a", "b", ""] })),
        (
            "split",
            json!({ "text": "a, b, c", "delimiter": ", ", "maxParts": 2 }),
            json!({ "count": 2, "parts": ["a", "b, c"] }),
        ),
        ("split", json!({ "text": "aéb", "delimiter": "" }), json!({ "count": 3, "parts": ["a", "é", "b"] })),
        (
            "split",
            json!({ "text": "aéb", "delimiter": "", "maxParts": 2 }),
            json!({ "count": 2, "parts": ["a", "éb"] }),
        ),
        ("split", json!({ "text": "", "delimiter": "" }), json!({ "count": 0, "parts": [] })),
        ("join", json!({ "parts": ["a", "b"] }), json!({ "count": 2, "result": "a\nb" })),
        ("join", json!({ "parts": [], "delimiter": "-" }), json!({ "count": 0, "result": "" })),
        ("trim", json!({ "text": " é \n" }), json!({ "result": "é", "trimmedLength": 3 })),
        ("trim", json!({ "text": " a ", "mode": "start" }), json!({ "result": "a ", "trimmedLength": 1 })),
        ("trim", json!({ "text": " a ", "mode": "end" }), json!({ "result": " a", "trimmedLength": 1 })),
        ("case", json!({ "text": "Straße", "to": "upper" }), json!({ "result": "STRASSE" })),
        ("case", json!({ "text": "ÄB", "to": "lower" }), json!({ "result": "äb" })),
    ] {
        assert_eq!(call(&mut chat, &format!("text-transform__{tool}"), arguments).await, output, "{tool}");
    }
}

#[both_linkages]
async fn a_slice_counts_characters_and_stays_in_the_text() {
    let mut chat = open("text-transform", json!({})).await;
    for (start, end, result, from, to) in [
        (json!(0), json!(2), "äö", 0, 2),
        (json!(1), json!(null), "öü😀", 1, 4),
        (json!(-2), json!(null), "ü😀", 2, 4),
        (json!(-3), json!(-1), "öü", 1, 3),
        (json!(3), json!(1), "", 3, 3),
        (json!(i64::MIN), json!(i64::MAX), "äöü😀", 0, 4),
    ] {
        let arguments = json!({ "text": "äöü😀", "start": start, "end": end });
        let expected = json!({ "result": result, "start": from, "end": to, "length": to - from });
        assert_eq!(call(&mut chat, "text-transform__slice", arguments).await, expected);
    }
}

#[both_linkages]
async fn arguments_that_mean_nothing_are_refused() {
    let mut chat = open("text-transform", json!({})).await;
    for (tool, arguments) in [
        ("replace", json!({ "text": "a", "search": "" })),
        ("split", json!({ "text": "a", "maxParts": 0 })),
        ("case", json!({ "text": "a", "to": "title" })),
        ("trim", json!({ "text": "a", "side": "end" })),
    ] {
        let (code, message) = refused(&mut chat, &format!("text-transform__{tool}"), arguments).await;
        assert_eq!(code, "E_TOOL_INVALID_ARGS", "{message}");
    }
}

#[both_linkages]
#[covers("SIZE-01")]
async fn a_result_that_would_be_too_large_is_refused() {
    let mut chat = open("text-transform", json!({})).await;
    let (kilobyte, megabyte) = ("a".repeat(1 << 10), "a".repeat(1 << 20));
    for (tool, arguments) in [
        ("replace", json!({ "text": kilobyte, "search": "a", "replacement": "b".repeat(5 << 10), "all": true })),
        ("join", json!({ "parts": vec![""; 1 << 10], "delimiter": "b".repeat(5 << 10) })),
        ("split", json!({ "text": megabyte, "delimiter": "" })),
        ("split", json!({ "text": megabyte, "delimiter": "a" })),
    ] {
        let (_, text) = refused(&mut chat, &format!("text-transform__{tool}"), arguments).await;
        assert!(text.contains("the result would have more than 4 MB"), "{tool}: {text}");
    }
    let parts = json!({ "text": "a".repeat(100_000), "delimiter": "", "maxParts": 10 });
    assert_eq!(call(&mut chat, "text-transform__split", parts).await["count"], 10);
}
