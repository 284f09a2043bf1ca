//! CONV: messages change only by message events, and every view shows their fold at once.

use conformance_extensions::conversation::{Colliding, Editing, Forgetting, Peeking, Tearing};
use goondan::conversation::Source;
use goondan::extension::LogLevel;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::testing::Chat;
use goondan::{ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

#[both_linkages]
#[covers("CONV-01", "CONV-02", "CONV-03", "CONV-04", "CONV-05", "CONV-06", "CONV-07", "CONV-08")]
#[covers("CONV-11", "CONV-12", "CONV-16", "PIPE-23")]
async fn the_fold_follows_every_event_at_once() {
    let log = Log::new();
    let script = [ScriptItem::say("answer").when("^changed$").unwrap(), ScriptItem::say("second").repeat()];
    let agent = agent(script).with::<Editing>(log.config()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "answer");
    assert_eq!(
        log.take(),
        [
            "base , now hello",
            "hello,note",
            "changed,note",
            "changed",
            "base , now changed,answer,epilogue",
            r#"["append","append","replace","remove","remove","append","append"]"#,
        ]
    );
    instance.run("again").await.unwrap();
    assert_eq!(log.take()[0], "base changed,answer,epilogue, now changed,answer,epilogue,again");
    let messages = instance.messages().await.unwrap();
    assert_eq!(messages[2].metadata()["pinned"], json!({ "why": ["é"] }));
    let expected = Source::Extension { extension_name: "editing".parse().unwrap() };
    assert_eq!(messages[2].source(), &expected);
    // The message that was put in the place of the input, under its id.
    assert_eq!((messages[0].source(), messages[0].turn().is_some()), (&expected, true));
}

#[both_linkages]
#[covers("CONV-11")]
async fn an_event_without_its_target_is_warned_of_and_the_turn_goes_on() {
    let log = Log::new();
    let chat = Chat::builder().agent(|agent| agent.with::<Editing>(log.config())).start().await.unwrap();
    assert_eq!(chat.say("hello").await.unwrap().text(), "ok");
    let logs = chat.logs();
    let warnings: Vec<_> = logs.iter().filter(|line| line.level == LogLevel::Warn).collect();
    let [warning] = &warnings[..] else { panic!("{logs:?}") };
    let expected = json!({ "code": "E_MESSAGE_TARGET_NOT_FOUND", "event_index": 3, "target_id": "nobody" });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&warning.fields[name], value, "{warning:?}");
    }
}

#[both_linkages]
#[covers("CONV-15", "CONV-17", "LEGACY-POINTS-04", "API-11")]
async fn what_a_step_middleware_emits_is_in_the_model_input_of_that_step() {
    let record = tempfile::tempdir().unwrap();
    let path = record.path().join("requests.jsonl");
    let model = ScriptedModel::new([ScriptItem::say("hi").repeat()]).record(&path);
    let agent = goondan::Agent::builder("assistant").system("be brief").model(model);
    let agent = agent.with::<Forgetting>(json!({})).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    for _ in 0..3 {
        instance.run("hello").await.unwrap();
        assert_eq!(instance.messages().await.unwrap().len(), 2);
    }
    let requests = std::fs::read_to_string(&path).unwrap();
    assert_eq!(requests.lines().count(), 3);
    for request in requests.lines() {
        let expected =
            json!({ "system": "be brief", "messages": [{ "role": "user", "content": "fresh" }], "tools": [] });
        assert_eq!(serde_json::from_str::<Value>(request).unwrap(), expected);
    }
}

#[both_linkages]
async fn an_existing_id_fails_the_step_before_the_model_is_called() {
    let record = tempfile::tempdir().unwrap();
    let path = record.path().join("requests.jsonl");
    let model = ScriptedModel::new([ScriptItem::say("hi")]).record(&path);
    let agent = goondan::Agent::builder("assistant").model(model).with::<Colliding>(json!({}));
    let error = one_turn(agent).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::MESSAGE_DUPLICATE_ID);
    assert!(!path.exists());
}

#[both_linkages]
#[covers("PAIR-01")]
async fn the_model_never_sees_half_of_a_tool_pair() {
    for results in [true, false] {
        let record = tempfile::tempdir().unwrap();
        let path = record.path().join("requests.jsonl");
        let call = ScriptItem::call("no__tool", json!({}));
        let model = ScriptedModel::new([call, ScriptItem::say("done")]).record(&path);
        let agent = goondan::Agent::builder("assistant").model(model);
        one_turn(agent.with::<Tearing>(json!({ "results": results }))).await.unwrap();
        let requests = std::fs::read_to_string(&path).unwrap();
        for request in requests.lines() {
            let request: Value = serde_json::from_str(request).unwrap();
            assert_eq!(request["messages"], json!([{ "role": "user", "content": "hello" }]));
        }
    }
}

#[both_linkages]
#[covers("CONV-13", "CONV-14", "PIPE-18", "PIPE-21")]
async fn the_base_changes_only_at_the_end_of_the_turn() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new());
    let messages = dir.path().join("instances/assistant:one/messages");
    let script = [ScriptItem::call("no__tool", json!({})), ScriptItem::say("hi").repeat()];
    let agent = agent(script).with::<Peeking>(json!({ "log": log, "messages": messages }));
    let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    for base in [4, 6] {
        instance.run("hello").await.unwrap();
        assert_eq!(std::fs::read_to_string(messages.join("base.jsonl")).unwrap().lines().count(), base);
        let events = std::fs::read_to_string(messages.join("events.jsonl")).unwrap();
        assert!(events.lines().last().unwrap().starts_with("{\"fold\""), "{events}");
    }
    // The input was written before the model was asked, and the answer of each step, with its results, at its end. The
    // journal holds both turns (D-38).
    assert_eq!(log.take(), ["base 0 lines, unchanged true, events 4", "base 4 lines, unchanged true, events 6"]);
    let events = std::fs::read_to_string(messages.join("runtime-events.jsonl")).unwrap();
    assert!(events.lines().count() >= 10 && events.contains("\"type\":\"turn.completed\""), "{events}");
}
