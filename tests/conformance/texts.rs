//! Guards see each text that a model or a person reads, and masks leave none of them.

use std::collections::BTreeSet;

use conformance_extensions::texts::Hiding;
use goondan::conversation::{Content, FilePart, Part, ReasoningPart, TextPart};
use goondan::event::AgentEvent;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::{Agent, Value, json};
use goondan_covers::{both_linkages, interruptible};

use crate::linkage::Extended;
use crate::support::Log;

/// What the results of tools hold: each place with what is read there.
const RESULTS: [(&str, &str); 9] = [
    ("text of a tool", "secret result"),
    ("member of JSON", "secret member"),
    ("text in JSON", "secret item"),
    ("number in JSON", "4711"),
    ("text beside a file", "secret caption"),
    ("name of a file", "secret-name.png"),
    ("URL of a file", "https://example.org/secret-url"),
    ("error", "secret error"),
    ("answer of a tool that failed", "secret refusal"),
];

/// What the messages hold beside the results of tools.
const MESSAGES: [(&str, &str); 10] = [
    ("plain text", "secret question"),
    ("text", "secret answer"),
    ("citation of a text", "secret citation"),
    ("reasoning", "secret thought"),
    ("name of a file", "secret drawing"),
    ("name of a tool", "secret__tool"),
    ("name of an argument", "secret name"),
    ("argument", "secret argument"),
    ("block of a provider", "secret block"),
    ("part of an unknown type", "secret part"),
];

/// An answer with a part of each kind, and calls of all tools.
fn answer() -> Value {
    let data = |rest: Value| json!({ "api": "scripted", "model": "m1", "rest": rest });
    let call = |id: &str, name: &str, input: Value| json!({ "type": "tool-call", "toolCallId": id, "toolName": name, "input": input });
    json!([
        { "type": "reasoning", "text": "secret thought", "provider": data(json!({ "signature": "c2ln" })) },
        { "type": "text", "text": "secret answer", "provider": data(json!({ "citations": ["secret citation"] })) },
        { "type": "file", "mediaType": "image/gif", "url": "data:image/gif;base64,R0lGODlh", "name": "secret drawing" },
        { "type": "provider", "provider": data(json!({ "type": "search", "found": "secret block" })) },
        { "type": "quote", "words": ["secret part"] },
        call("1", "hiding__text", json!({})),
        call("2", "hiding__json", json!({ "about": { "secret name": "secret argument" } })),
        call("3", "hiding__content", json!({})),
        call("4", "hiding__fail", json!({})),
        call("5", "hiding__refuse", json!({})),
        call("6", "secret__tool", json!({})),
    ])
}

/// Runs two turns with the extension in `mode`. Returns the texts that it found, and the messages of the last request.
#[interruptible]
async fn run(mode: &str) -> (BTreeSet<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let requests = dir.path().join("requests.jsonl");
    let log = Log::new();
    let parts = serde_json::from_value::<Vec<Part>>(answer()).unwrap();
    let model = ScriptedModel::new([ScriptItem::content(parts), ScriptItem::say("done"), ScriptItem::say("done")]);
    let agent = Agent::builder("assistant").model(model.record(&requests));
    let agent = agent.with::<Hiding>(json!({ "mode": mode, "log": log })).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("secret question").await.unwrap();
    let file = FilePart::new("text/plain", "https://example.org/1").named("plain.txt");
    let parts = [TextPart::new("and now?").into(), file.into()];
    instance.run(AgentEvent::content(parts)).await.unwrap();
    let requests = std::fs::read_to_string(&requests).unwrap();
    let last: Value = serde_json::from_str(requests.lines().last().unwrap()).unwrap();
    (log.take().into_iter().collect(), last["messages"].to_string())
}

fn assert_seen(found: &BTreeSet<String>, places: &[(&str, &str)]) {
    for (place, text) in places {
        assert!(found.iter().any(|found| found.contains(text)), "{place}: {found:#?}");
    }
}

#[test]
fn plain_text_is_one_text_part_and_keeps_its_form() {
    let parts = [Part::Text(TextPart::new("hello"))];
    for (content, form) in [
        (Content::from("hello"), json!("hello")),
        (Content::from(parts.to_vec()), json!([{ "type": "text", "text": "hello" }])),
    ] {
        assert_eq!(content.parts(), parts);
        assert_eq!((content.text(), json!(content)), ("hello".into(), form.clone()));
        assert_eq!(json!(serde_json::from_value::<Content>(form).unwrap()), json!(content));
    }
    assert_eq!(Content::from("hello"), Content::from(parts.to_vec()));
    for event in [AgentEvent::input("hello"), AgentEvent::content(parts.clone())] {
        assert_eq!(event.to_content().unwrap().parts(), parts);
    }
}

#[test]
fn content_of_one_part_keeps_its_form() {
    for part in serde_json::from_value::<Vec<Part>>(answer()).unwrap() {
        let form = json!([part]);
        let read = serde_json::from_value(form.clone()).unwrap();
        for content in [Content::from(part.clone()), vec![part.clone()].into(), read] {
            assert_eq!((content.parts(), json!(content)), (&[part.clone()][..], form.clone()));
            assert_eq!(content.into_parts(), vec![part.clone()]);
        }
    }
    assert_eq!(json!(Content::from(Part::from(TextPart::new("hello")))), "hello");
    let thought = Content::from(Part::from(ReasoningPart::new("secret", None)));
    assert_eq!(json!(thought.map_text(|text| text.replace("secret", "***").into())), json!([]));
}

#[both_linkages]
async fn guards_see_each_text_that_is_read() {
    for mode in ["messages", "parts"] {
        let (found, request) = run(mode).await;
        assert_seen(&found, &MESSAGES);
        assert_seen(&found, &RESULTS);
        for (place, text) in MESSAGES.iter().chain(&RESULTS) {
            assert!(request.contains(text), "{place}: {request}");
        }
    }
    let (found, _) = run("results").await;
    assert_seen(&found, &RESULTS);
    assert_seen(&found, &[("remedy of an error", "secret suggestion")]);
}

#[both_linkages]
async fn masks_leave_none_of_these_texts() {
    let (_, request) = run("hide").await;
    for (place, text) in MESSAGES.iter().chain(&RESULTS) {
        assert!(!request.contains(text), "{place}: {request}");
    }
    assert!(!request.contains("secret"), "{request}");
    for kept in ["*** question", "*** answer", "*** drawing", "*** argument", "*** part", "*** result", "plain.txt"] {
        assert!(request.contains(kept), "{kept}: {request}");
    }
    // Only a model can make them.
    for left_out in ["reasoning", "signature", "citations", "search"] {
        assert!(!request.contains(left_out), "{left_out}: {request}");
    }
    let (_, request) = run("hideresults").await;
    for (place, text) in RESULTS {
        assert!(!request.contains(text), "{place}: {request}");
    }
    assert!(request.contains("secret question") && request.contains(r#""isError":true"#), "{request}");
}
