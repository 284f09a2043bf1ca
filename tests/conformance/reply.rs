//! Tools that answer with more than JSON: files, and that they failed.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use conformance_extensions::kept::Copying;
use conformance_extensions::reply::Replies;
use goondan::agent::TurnUpdate;
use goondan::event::RuntimeEvent;
use goondan::middleware::ToolCallStatus;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::name::{AgentName, InstanceKey};
use goondan::store::{FileStore, Fsync, InstanceId};
use goondan::{Agent, Value, json};
use goondan_covers::both_linkages;

use crate::linkage::Extended;
use crate::support::{Log, agent};

fn dot() -> Value {
    json!({ "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo=", "name": "dot.png" })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn content(parts: &[Value]) -> Value {
    json!({ "type": "content", "value": parts })
}

fn id(key: &str) -> InstanceId {
    InstanceId { agent: "assistant".parse::<AgentName>().unwrap(), key: key.parse::<InstanceKey>().unwrap() }
}

fn store(dir: &Path) -> FileStore {
    FileStore::open(dir).unwrap().fsync(Fsync::Never)
}

/// Returns the tool-result part in an instance, as it is written.
fn stored(store: &FileStore, key: &str) -> Value {
    let line = serde_json::to_value(&store.read(&id(key)).unwrap().messages[2]).unwrap();
    let parts = line["data"]["content"].as_array().unwrap();
    assert_eq!((&line["data"]["role"], parts.len()), (&json!("tool"), 1));
    parts[0].clone()
}

/// What there is to see of one call.
struct Seen {
    /// The `output` of the stored part, and whether it has `isError`.
    output: Value,
    is_error: bool,
    /// What the middlewares logged.
    log: Vec<Value>,
    /// The status and error message of `tool.completed`.
    completed: (ToolCallStatus, Option<String>),
}

/// Calls `tool` in a turn, and returns what was seen of the answer.
async fn called(tool: &str, args: Value, change: Option<&str>) -> Seen {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new());
    let (store, requests) = (store(dir.path()), dir.path().join("requests.jsonl"));
    let script = [ScriptItem::call(tool, args), ScriptItem::say("done")];
    let config = json!({ "log": log, "change": change });
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script).record(&requests));
    let agent = agent.with::<Replies>(config).store(store.clone()).build().unwrap();
    let mut turn = agent.instance("one").await.unwrap().run_stream("hello");
    let mut completed = None;
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Event(event) = update
            && let RuntimeEvent::ToolCompleted { status, error_message, .. } = Arc::unwrap_or_clone(event)
        {
            completed = Some((status, error_message));
        }
    }
    let turn = turn.finish().await.unwrap();
    assert_eq!(turn.text(), "done");
    let completed = completed.unwrap();
    assert_eq!(turn.tool_calls()[0].status, completed.0);
    agent.close().await.unwrap();

    // The model is sent what is stored.
    let requests = std::fs::read_to_string(&requests).unwrap();
    let request: Value = serde_json::from_str(requests.lines().last().unwrap()).unwrap();
    let sent = request["messages"].as_array().unwrap().last().unwrap()["content"][0].clone();
    let stored = stored(&store, "one");
    assert_eq!(sent, stored);
    let is_error = stored.get("isError") == Some(&json!(true));
    assert_eq!(stored.as_object().unwrap().len(), 4 + usize::from(is_error), "{stored}");
    let log = log.take().into_iter().map(|line| match line.strip_prefix("step: ") {
        Some(line) => json!({ "step": serde_json::from_str::<Value>(line).unwrap() }),
        None => serde_json::from_str(line.strip_prefix("changed: ").unwrap_or(&line)).unwrap(),
    });
    Seen { output: stored["output"].clone(), is_error, log: log.collect(), completed }
}

async fn made(form: &str) -> Seen {
    called("replies__make", json!({ "form": form }), None).await
}

#[both_linkages]
async fn a_tool_answers_with_text_json_and_files() {
    let annotated = json!({ "type": "text", "text": "A dot:", "annotations": { "audience": ["user"] } });
    let paper = json!({ "type": "file", "mediaType": "application/pdf", "url": "https://example.org/paper.pdf" });
    let forms = [
        ("text", json!({ "type": "text", "value": "plain" }), json!("plain"), 0),
        ("json", json!({ "type": "json", "value": [1, 2] }), json!([1, 2]), 0),
        ("file", content(&[dot()]), json!("[image/png dot.png]"), 1),
        (
            "files",
            content(&[text("before"), dot(), annotated, paper]),
            json!("before\n[image/png dot.png]\nA dot:\n[application/pdf]"),
            2,
        ),
    ];
    for (form, output, as_text, files) in forms {
        for tool in ["replies__make", "replies__slowly"] {
            let seen = called(tool, json!({ "form": form }), None).await;
            assert_eq!((&seen.output, seen.is_error), (&output, false), "{form}");
            assert_eq!(seen.completed, (ToolCallStatus::Ok, None), "{form}");
            let line = json!({
                "status": "ok", "error": null, "output": as_text, "reply": [false, true], "files": files,
            });
            assert_eq!(seen.log, [line.clone(), json!({ "step": line })], "{form}");
        }
    }
    assert_eq!(called("replies__by-hand", json!({}), None).await.output, content(&[text("A dot:"), dot()]));
}

#[both_linkages]
async fn a_tool_that_says_that_it_failed_is_an_error_whose_answer_the_model_reads() {
    let forms = [
        ("failed", json!({ "type": "text", "value": "there is no such city" }), "there is no such city", 0),
        ("failed-file", content(&[text("it looks like this:"), dot()]), "it looks like this:\n[image/png dot.png]", 1),
        ("failed-json", json!({ "type": "json", "value": { "status": 404 } }), r#"{"status":404}"#, 0),
    ];
    for (form, output, message, files) in forms {
        let seen = made(form).await;
        assert_eq!((&seen.output, seen.is_error), (&output, true), "{form}");
        assert_eq!(seen.completed, (ToolCallStatus::Error, Some(message.to_owned())), "{form}");
        let error = json!(["E_TOOL_FAILED", message]);
        let line = json!({
            "status": "error", "error": error, "output": null, "reply": [true, true], "files": files,
        });
        assert_eq!(seen.log, [line.clone(), json!({ "step": line })], "{form}");
    }
}

#[both_linkages]
async fn json_that_looks_like_a_reply_is_json() {
    let seen = called("replies__lookalike", json!({}), None).await;
    let parts = json!([text("plain JSON")]);
    let value = json!({ "content": parts, "output": { "type": "content", "value": parts }, "isError": true });
    assert_eq!((&seen.output, seen.is_error), (&json!({ "type": "json", "value": value }), false));
    assert_eq!(seen.completed, (ToolCallStatus::Ok, None));
}

#[both_linkages]
async fn a_reply_that_cannot_be_stored_or_sent_is_an_error() {
    let forms = [
        ("of-model", "E_MESSAGE_PART", "data of a provider"),
        ("deep", "E_VALUE_DEPTH", "64 levels"),
        ("deep-member", "E_VALUE_DEPTH", "64 levels"),
    ];
    for (form, code, message) in forms {
        let seen = made(form).await;
        let said = seen.output["value"].as_str().unwrap_or_default();
        assert!(said.contains(code) && said.contains(message), "{form}: {}", seen.output);
        assert_eq!((seen.is_error, seen.completed.0), (false, ToolCallStatus::Error), "{form}");
    }
}

#[both_linkages]
async fn a_middleware_replaces_a_reply() {
    let add = json!({ "type": "file", "mediaType": "image/gif", "url": "https://example.org/a.gif" });
    let picture = || content(&[text("another:"), dot()]);
    let number = json!({ "type": "json", "value": { "n": 1 } });
    let no = json!({ "type": "text", "value": "no" });
    let recovered = || content(&[text("recovered"), dot()]);
    for form in ["text", "files", "failed", "failed-file"] {
        let failed = form.starts_with("failed");
        let added = match form {
            "text" => content(&[text("plain"), add.clone()]),
            "failed" => content(&[text("there is no such city"), add.clone()]),
            "failed-file" => content(&[text("it looks like this:"), dot(), add.clone()]),
            _ => {
                let Value::Array(mut parts) = made(form).await.output["value"].clone() else { panic!() };
                parts.push(add.clone());
                content(&parts)
            }
        };
        let changes = [
            ("value", number.clone(), false, "ok", Value::Null),
            ("reply", picture(), false, "ok", Value::Null),
            ("failed", no.clone(), true, "error", json!("E_TOOL_FAILED")),
            ("add", added, failed, if failed { "error" } else { "ok" }, json!(failed.then_some("E_TOOL_FAILED"))),
            ("recover", recovered(), false, "ok", Value::Null),
        ];
        for (change, output, is_error, status, code) in changes {
            let seen = called("replies__make", json!({ "form": form }), Some(change)).await;
            assert_eq!((&seen.output, seen.is_error), (&output, is_error), "{form} {change}");
            let [.., outer, step] = &seen.log[..] else { panic!("{:?}", seen.log) };
            assert_eq!((&outer["status"], &outer["error"][0]), (&json!(status), &code), "{form} {change}");
            assert!(seen.log.iter().all(|line| line == outer || line == step), "{form} {change}: {:?}", seen.log);
            assert_eq!(&step["step"], outer, "{form} {change}");
        }
        for (change, code) in [("error", "E_OWN"), ("deep", "E_VALUE_DEPTH")] {
            let seen = called("replies__make", json!({ "form": form }), Some(change)).await;
            let said = seen.output["value"].as_str().unwrap();
            assert!(said.contains(code) && !seen.is_error, "{form} {change}: {said}");
            assert_eq!(seen.log[0]["error"][0], code, "{form} {change}");
        }
    }
}

#[both_linkages]
async fn a_reply_survives_rewriting_export_and_import() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new());
    let store = store(dir.path());
    let script = [ScriptItem::call("replies__make", json!({ "form": "failed-file" })), ScriptItem::say("ok").repeat()];
    let agent = agent(script).with::<Replies>(log.config()).with::<Copying>(json!({}));
    let agent = agent.store(store.clone()).build().unwrap();
    agent.instance("one").await.unwrap().run("hello").await.unwrap();
    let first = stored(&store, "one");
    assert_eq!((&first["isError"], &first["output"]["value"][1]), (&json!(true), &dot()));
    // Every message crosses to an extension and is replaced by what it read.
    agent.instance("one").await.unwrap().run("again").await.unwrap();
    agent.close().await.unwrap();
    let mut export = Vec::new();
    store.export(&id("one"), &mut export).unwrap();
    store.import(Cursor::new(&export), Some(id("two"))).unwrap();
    for key in ["one", "two"] {
        assert_eq!(stored(&store, key), first, "{key}");
    }

    // What another implementation writes under the name is kept as well.
    let path = store.instance_dir(&id("two")).join("messages/base.jsonl");
    let base = std::fs::read_to_string(&path).unwrap();
    for written in ["false", "\"yes\"", "null"] {
        let dir = tempfile::tempdir().unwrap();
        let store = crate::reply::store(dir.path());
        let messages = store.instance_dir(&id("one")).join("messages");
        std::fs::create_dir_all(&messages).unwrap();
        let other = base.replace(r#""isError":true"#, &format!(r#""isError":{written}"#));
        std::fs::write(messages.join("base.jsonl"), other).unwrap();
        store.repair(&id("one")).unwrap();
        let agent = agent_that_copies(&store);
        agent.instance("one").await.unwrap().run("hello").await.unwrap();
        agent.close().await.unwrap();
        assert_eq!(stored(&store, "one")["isError"].to_string(), written);
    }
}

fn agent_that_copies(store: &FileStore) -> Agent {
    agent([ScriptItem::say("ok")]).with::<Copying>(json!({})).store(store.clone()).build().unwrap()
}
