//! REVIEW-01: inputs are masked before anything of them is stored.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use conformance_extensions::masked::Masking;
use goondan::agent::{AgentBuilder, TurnUpdate};
use goondan::conversation::{FilePart, Message, TextPart};
use goondan::event::AgentEvent;
use goondan::middleware::OnError;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::{Agent, Instance, json};
use goondan_covers::{both_linkages, covers};
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::{SilentModel, agent};

const SECRET: &str = "4711";

fn masking(agent: AgentBuilder) -> AgentBuilder {
    agent.with::<Masking>(json!({ "word": SECRET, "by": "[code]", "refuse": "E2", "panic": "E3" }))
}

async fn lines(instance: &Instance) -> Vec<String> {
    let texts = |message: &Arc<Message>| message.content().texts().collect::<Vec<_>>().join(" ");
    instance.messages().await.unwrap().iter().map(texts).collect()
}

/// Returns how many files have a text.
fn files_with(directory: &Path, text: &str) -> usize {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let count = |path: std::path::PathBuf| match path.is_dir() {
        true => files_with(&path, text),
        false => usize::from(String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(text)),
    };
    entries.map(count).sum()
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn all_texts_of_an_input_are_masked() {
    let directory = tempfile::tempdir().unwrap();
    let requests = directory.path().join("requests");
    let model = ScriptedModel::new([ScriptItem::say("fine").repeat()]).record(&requests);
    let agent = masking(Agent::builder("assistant").model(model)).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("the code is 4711").await.unwrap();
    let file = FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named("4711.png");
    let parts = vec![TextPart::new("here is 4711").into(), file.into()];
    let mut turn = instance.run_stream(AgentEvent::content(parts));
    while let Some(update) = turn.next().await {
        assert!(!format!("{update:?}").contains(SECRET), "{update:?}");
        assert!(!matches!(update, TurnUpdate::Restart { .. }));
    }
    turn.finish().await.unwrap();
    assert_eq!(lines(&instance).await[0], "the code is [code]");
    assert_eq!(lines(&instance).await[2], "here is [code] image/png [code].png");
    assert!(!fs::read_to_string(&requests).unwrap().contains(SECRET));
}

#[both_linkages]
#[covers("REVIEW-01", "RESUME-01")]
async fn a_masked_text_is_in_no_file_while_the_turn_runs_and_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let asked = Arc::new(Notify::new());
    let build = |model: AgentBuilder| masking(model).store(FileStore::open(directory.path()).unwrap()).build().unwrap();
    let event = AgentEvent::input("the code is 4711");
    let silent = build(Agent::builder("assistant").model(SilentModel(Arc::clone(&asked))));
    let instance = silent.instance("test").await.unwrap();
    tokio::select! {
        _ = instance.run(event.clone()) => panic!("the model does not answer"),
        () = asked.notified() => {}
    }
    assert!(files_with(directory.path(), "[code]") > 0);
    assert_eq!(files_with(directory.path(), SECRET), 0);
    instance.close().await.unwrap();
    drop(silent);
    let agent = build(agent([ScriptItem::say("fine")]));
    let instance = agent.instance("test").await.unwrap();
    // The event is the same, although what is recorded of it is masked.
    assert_eq!(instance.run(event.clone()).await.unwrap().text(), "fine");
    assert_eq!(instance.run(event.clone()).await.unwrap().text(), "fine");
    assert_eq!(lines(&instance).await, ["the code is [code]", "fine"]);
    instance.close().await.unwrap();
    assert_eq!(files_with(directory.path(), SECRET), 0);
}

#[both_linkages]
#[covers("REVIEW-01", "STEER-01")]
async fn an_input_that_joins_a_turn_is_masked() {
    let agent = masking(agent([ScriptItem::say("fine")])).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let turn = instance.run_stream("go");
    let steered = instance.steer("and 4711");
    assert_eq!(turn.finish().await.unwrap().text(), "fine");
    assert_eq!(steered.await.unwrap().text(), "fine");
    assert_eq!(lines(&instance).await, ["go", "and [code]", "fine"]);
    let refused = (instance.run_stream("go"), instance.steer("E2"));
    assert_eq!(refused.0.finish().await.unwrap_err().code().as_str(), "E_MODEL_SCRIPT");
    assert_eq!(refused.1.await.unwrap_err().code().as_str(), "E_NOT_THIS");
    assert_eq!(lines(&instance).await.last().unwrap(), "go");
}

#[both_linkages]
#[covers("REVIEW-01", "FAIL-01")]
async fn an_input_that_is_refused_begins_no_turn() {
    for on_error in [OnError::Abort, OnError::Skip] {
        let agent = masking(agent([ScriptItem::say("fine").repeat()])).on_error("masking", on_error).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        for (input, code) in [("E2", "E_NOT_THIS"), ("E3", "E_EXT_PANIC")] {
            let error = instance.run(input).await.unwrap_err();
            assert_eq!((error.code().as_str(), error.part()), (code, Some("masker of inputs")));
            assert_eq!(error.extension().unwrap(), "masking");
        }
        assert!(lines(&instance).await.is_empty());
        assert_eq!(instance.run("hello").await.unwrap().text(), "fine");
    }
}
