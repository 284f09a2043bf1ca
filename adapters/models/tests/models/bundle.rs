//! Models that a bundle describes: checked without key and network, and asked over HTTP.

use std::fs;
use std::path::Path;

use goondan::Bundle;
use goondan::store::FileStore;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Recording, Reply, Server};

/// Writes a bundle whose model has this spec.
fn bundle(spec: &str) -> TempDir {
    let spec: String = spec.lines().map(|line| format!("  {}\n", line.trim_end())).collect();
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "apiVersion: goondan.ai/v1\nkind: Model\nmetadata: {{ name: main }}\nspec:\n{spec}---\n\
         apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: {{ name: assistant }}\nspec: {{ model: Model/main }}\n---\n\
         apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: {{ name: it }}\n\
         spec: {{ agents: [{{ ref: Agent/assistant }}], entryAgent: Agent/assistant }}\n"
    );
    fs::write(dir.path().join("goondan.yaml"), text).unwrap();
    dir
}

/// Runs one turn, in a process that begins with what is on disk.
async fn turn(root: &Path, state: &Path, input: &str) -> goondan::Result<String> {
    let bundle = Bundle::load(root)?;
    let agents = bundle.build(FileStore::open(state)?).await?;
    let agent = agents.get("assistant").unwrap();
    let text = agent.instance("one").await?.run(input).await?.text().into_owned();
    agent.close().await?;
    Ok(text)
}

#[tokio::test]
async fn a_bundle_asks_a_model_and_returns_its_signed_reasoning_after_a_restart() {
    let recordings = Recording::all("anthropic");
    let calls = recordings.iter().find(|recording| recording.name == "calls").unwrap();
    let text = recordings.iter().find(|recording| recording.name == "text").unwrap();
    let server = Server::start([calls, text, text].map(|recording| Reply::events(&recording.stream()))).await;
    let spec = format!(
        "provider: anthropic\nmodel: claude-example-1\nbaseUrl: {}\napiKey: key-for-tests-4711\nrecord: asked.jsonl",
        server.url()
    );
    let (root, state) = (bundle(&spec), tempfile::tempdir().unwrap());
    let answer = turn(root.path(), state.path(), "hi").await.unwrap();
    turn(root.path(), state.path(), "and now?").await.unwrap();
    let expected = text.expected["response"]["content"].as_array().unwrap();
    let texts: Vec<_> = expected.iter().filter_map(|part| part["text"].as_str()).collect();
    assert!(texts.iter().any(|text| answer.contains(text)), "{answer}");

    let requests = server.requests();
    assert_eq!(requests.iter().map(|request| request.path.as_str()).collect::<Vec<_>>(), ["/v1/messages"; 3]);
    assert_eq!(requests[0].header("x-api-key"), Some("key-for-tests-4711"));
    let signed = json!({ "type": "thinking", "thinking": "Two cities, two calls.", "signature": "c2lnbmF0dXJlLTE=" });
    for request in &requests[1..] {
        let messages = request.body["messages"].as_array().unwrap();
        assert_eq!(messages[1]["content"][0], signed, "within the turn, and from the disk");
        assert_eq!(messages[2]["content"][0]["type"], "tool_result");
    }
    let recorded = fs::read_to_string(root.path().join("asked.jsonl")).unwrap();
    assert_eq!(recorded.lines().count(), 3);
    assert!(!recorded.contains("key-for-tests"));
}

#[test]
fn mistakes_in_a_spec_are_told_with_their_place_and_what_to_do() {
    let key = "apiKey: { valueFrom: { env: GOONDAN_TEST_KEY } }";
    let mistakes = [
        ("", (5, 3), "`spec.model` is missing", "add `model: <string>`"),
        ("model: m\nmodle: n", (8, 3), "unknown field `modle`", "write `model`"),
        ("model: ''", (7, 10), "`spec.model`", "change it: The model, as its provider names it."),
        ("model: m\nbaseUrl: ftp://example.com", (8, 12), "`baseUrl`", "write it as `https://host/path`"),
        ("model: m\nheaders: { 'a b': c }", (8, 21), "the header `a b`", "take out line breaks and characters"),
        ("model: m\noptions: { seed: 7 }", (8, 20), "the option `seed`", "leave the option out"),
        ("model: m\noptions: { temprature: 1 }", (8, 14), "unknown field `temprature`", "write `temperature`"),
        (
            "model: m\noptions: { temperature: hot }",
            (8, 27),
            "`spec.options.temperature`",
            "change it: The variance of the choice",
        ),
        (
            "model: m\noptions: { toolChoice: sometimes }",
            (8, 26),
            "`spec.options.toolChoice`",
            "`auto`, `none`, `required` or `{ tool: NAME }`",
        ),
        (
            "model: m\ntimeouts: { idleMs: 0 }",
            (8, 23),
            "`spec.timeouts.idleMs`",
            "change it: The longest silence of the provider",
        ),
        ("model: m\nretries: { max: 0 }", (8, 19), "`spec.retries.max`", "change it: The most attempts of a request"),
        ("model: m\naccepts: [image/png, png]", (8, 24), "`spec.accepts[1]`", "change it"),
        ("model: m\nprices: { input: -1, output: 2 }", (8, 20), "`spec.prices.input`", "change it: A million tokens"),
    ];
    for (spec, (line, column), message, remedy) in mistakes {
        let root = bundle(&format!("provider: anthropic\n{key}\n{spec}"));
        let errors = Bundle::check(root.path()).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors}");
        let error = errors.first();
        assert!(error.message.contains(message), "{spec}: {}", error.message);
        assert!(error.suggestion.contains(remedy), "{spec}: {}", error.suggestion);
        assert_eq!(error.place.unwrap(), goondan::bundle::Place { line, column }, "{spec}");
    }
}

#[test]
fn keys_in_the_file_and_addresses_without_encryption_are_hints() {
    let root = bundle("provider: anthropic\nmodel: m\nbaseUrl: http://example.com\napiKey: key-for-tests-4711");
    let bundle = Bundle::check(root.path()).unwrap();
    let hints: Vec<_> = bundle.warnings().iter().map(|hint| hint.message.to_string()).collect();
    for part in ["`baseUrl` is not encrypted", "`apiKey` is written in the bundle"] {
        assert!(hints.iter().any(|hint| hint.contains(part)), "{hints:?}");
    }
}
