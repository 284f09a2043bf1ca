//! Files are checked where they come in, so that no provider refuses the requests of a conversation because of one.

use std::path::Path;

use conformance_extensions::files::Bringing;
use conformance_extensions::kept::Copying;
use goondan::conversation::{FilePart, Message, Part, Role, TextPart, ToolOutput};
use goondan::event::AgentEvent;
use goondan::middleware::{ModelInfo, ToolCallStatus};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::{Agent, BoxFuture, Result, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::agent;

const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";

/// Files that cannot be used, and what is wrong with them.
fn unusable() -> Vec<(&'static str, String, &'static str)> {
    let large = format!("data:image/png;base64,iVBORw0KGgoA{}", "A".repeat(8 << 20));
    [
        ("image/png", "data:image/png;base64,/9j/4A==", "its content is image/jpeg"),
        ("image/png", "data:image/png;base64,bm8gaW1hZ2U=", "its content is not of that type"),
        ("image/png", "data:image/png;base64,iVBORw0KGgo", "its content is not in base64"),
        ("application/pdf", "data:application/pdf;base64,", "it is empty"),
        ("image/svg+xml", "data:image/svg+xml;base64,PHN2Zy8+", "models read no SVG images"),
        ("text/csv", "data:text/csv;base64,Zvxy", "its content is not UTF-8"),
        ("text/html", PNG, "its URL has another media type"),
        ("a table", "https://example.org/table", "its media type cannot be read"),
        ("image/png", "dot.png", "its address is not a URL"),
    ]
    .map(|(media_type, url, problem)| (media_type, url.to_owned(), problem))
    .into_iter()
    .chain([("image/png", large, "it has more than 5 MB")])
    .collect()
}

/// Files that can be used, as far as can be known.
const USABLE: [(&str, &str); 4] = [
    ("image/png", PNG),
    ("text/plain; charset=utf-8", "data:text/plain;base64,w6Q="),
    ("application/x-own", "data:application/x-own;base64,/w=="),
    ("image/png", "https://example.org/dot.png"),
];

fn parts(message: &Message) -> &[Part] {
    match message.content().parts() {
        [Part::ToolResult(result)] => match &result.output {
            ToolOutput::Content(parts) => parts,
            other => panic!("{other:?}"),
        },
        parts => parts,
    }
}

#[both_linkages]
#[covers("REFUSED-01")]
async fn what_a_tool_shows_is_replaced_by_what_is_wrong_with_it() {
    for how in ["tool", "reply", "output"] {
        let usable = USABLE.map(|(media_type, url)| (media_type, url.to_owned(), ""));
        for (media_type, url, problem) in unusable().into_iter().chain(usable) {
            let script = [ScriptItem::call("bringing__show", json!({})), ScriptItem::say("done").repeat()];
            let config = json!({ "file": [media_type, url], "how": how });
            let agent = agent(script).with::<Bringing>(config).build().unwrap();
            let instance = agent.instance("one").await.unwrap();
            let turn = instance.run("show it").await.unwrap();
            assert_eq!(turn.tool_calls()[0].status, ToolCallStatus::Ok);
            let messages = instance.messages().await.unwrap();
            let [Part::Text(before), part] = parts(&messages[2]) else { panic!("{how}: {:?}", messages[2]) };
            assert_eq!(before.text, "look:");
            match part {
                Part::File(file) => assert_eq!((problem, &file.url), ("", &url), "{how}"),
                Part::Text(text) => {
                    assert!(!problem.is_empty(), "{how}: {}", text.text);
                    assert!(text.text.starts_with("[The file `it`"), "{how}: {}", text.text);
                    assert!(text.text.ends_with(&format!(" is left out: {problem}.]")), "{how}: {}", text.text);
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(instance.run("go on").await.unwrap().text(), "done");
        }
    }
}

#[both_linkages]
#[covers("REFUSED-01")]
async fn a_file_that_an_extension_brings_is_refused_in_its_name() {
    for how in ["emit", "replace", "project", "answer"] {
        for (media_type, url, problem) in unusable() {
            let config = json!({ "file": [media_type, url], "how": how });
            let agent = agent([ScriptItem::say("done")]).with::<Bringing>(config).build().unwrap();
            let instance = agent.instance("one").await.unwrap();
            let error = instance.run("hello").await.unwrap_err();
            assert_eq!(error.code().as_str(), "E_INPUT_FILE", "{how} {problem}: {}", error.report());
            assert!(error.message().contains(problem), "{how} {problem}: {}", error.report());
            let messages = instance.messages().await.unwrap();
            assert_eq!(messages.iter().map(|message| message.text()).collect::<Vec<_>>(), ["hello"], "{how} {problem}");
        }
        for (media_type, url) in USABLE {
            let config = json!({ "file": [media_type, url], "how": how });
            let agent = agent([ScriptItem::say("done")]).with::<Bringing>(config).build().unwrap();
            agent.instance("one").await.unwrap().run("hello").await.unwrap();
        }
    }
}

/// Writes a conversation whose input has a file.
fn store_with(dir: &Path, media_type: &str, url: &str) -> FileStore {
    let messages = dir.join("instances/assistant:one/messages");
    std::fs::create_dir_all(&messages).unwrap();
    let message = json!({
        "id": "m1", "createdAt": "2026-01-01T00:00:00Z", "metadata": {}, "source": { "type": "user" },
        "data": { "role": "user", "content": [{ "type": "file", "mediaType": media_type, "url": url }] },
    });
    std::fs::write(messages.join("base.jsonl"), format!("{message}\n")).unwrap();
    let store = FileStore::open(dir).unwrap();
    store
        .repair(&goondan::store::InstanceId { agent: "assistant".parse().unwrap(), key: "one".parse().unwrap() })
        .unwrap();
    store
}

#[both_linkages]
async fn a_file_that_a_conversation_has_already_can_be_copied() {
    for (media_type, url, problem) in unusable() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_with(dir.path(), media_type, &url);
        let agent = agent([ScriptItem::say("done")]).with::<Copying>(json!({})).store(store).build().unwrap();
        let instance = agent.instance("one").await.unwrap();
        assert_eq!(instance.run("hello").await.unwrap().text(), "done", "{problem}");
        let messages = instance.messages().await.unwrap();
        assert!(matches!(parts(&messages[0]), [Part::File(file)] if file.url == url), "{problem}");
    }
}

#[tokio::test]
#[covers("REFUSED-01")]
async fn an_input_with_a_file_that_cannot_be_used_begins_no_turn() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent([ScriptItem::say("fine").repeat()]).store(FileStore::open(dir.path()).unwrap()).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let event = |media_type: &str, url: String| {
        AgentEvent::content([Part::Text(TextPart::new("what is this?")), Part::from(FilePart::new(media_type, url))])
    };
    for (media_type, url, problem) in unusable() {
        let error = instance.run(event(media_type, url)).await.unwrap_err();
        assert_eq!(error.code().as_str(), "E_INPUT_FILE", "{}", error.report());
        assert!(error.message().contains(problem), "{}", error.report());
        assert!(error.turn().is_none(), "no turn began");
    }
    assert!(instance.messages().await.unwrap().is_empty());
    for (media_type, url) in USABLE {
        assert_eq!(instance.run(event(media_type, url.to_owned())).await.unwrap().text(), "fine");
    }
}

/// A model that takes some files.
struct Choosy(&'static [&'static str]);

impl Model for Choosy {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async { Ok(ModelResponse::text("fine")) })
    }

    fn info(&self) -> ModelInfo {
        let mut info = ModelInfo::new("own", "choosy");
        info.accepts = Some(self.0.iter().map(|accepted| (*accepted).to_owned()).collect());
        info
    }
}

#[tokio::test]
async fn an_input_has_only_files_that_the_model_takes() {
    let file = |media_type: &str, url: &str| AgentEvent::content([Part::from(FilePart::new(media_type, url))]);
    for (accepts, said) in [
        (&["application/pdf", "text/*"][..], "the model takes application/pdf, text/*"),
        (&["image/gif"], "the model takes image/gif"),
        (&[], "the model takes no files"),
    ] {
        let agent = Agent::builder("assistant").model(Choosy(accepts)).build().unwrap();
        let instance = agent.instance("one").await.unwrap();
        let error = instance.run(file("image/png", PNG)).await.unwrap_err();
        assert_eq!(error.code().as_str(), "E_INPUT_FILE");
        assert!(error.message().ends_with(said), "{}", error.message());
        assert!(instance.messages().await.unwrap().is_empty(), "no turn began");
    }
    let agent = Agent::builder("assistant").model(Choosy(&["Image/*", "text/plain"])).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    for (media_type, url) in [("image/png", PNG), (USABLE[1].0, USABLE[1].1)] {
        assert_eq!(instance.run(file(media_type, url)).await.unwrap().text(), "fine", "{media_type}");
    }
}

#[tokio::test]
#[covers("REFUSED-01")]
async fn nothing_that_a_model_made_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let requests = dir.path().join("requests.jsonl");
    let provider = json!({ "api": "scripted", "model": "m1", "rest": { "id": "7" } });
    let file = |media_type: &str, url: &str| json!({ "type": "file", "mediaType": media_type, "url": url });
    let mut jpeg = file("image/png", "data:image/png;base64,/9j/4A==");
    jpeg["provider"] = provider.clone();
    let mut broken = file("image/png", "data:image/png;base64,bm8gaW1hZ2U=");
    broken["provider"] = provider.clone();
    broken["name"] = json!("a.png");
    let large = format!("data:image/png;base64,iVBORw0KGgoA{}", "A".repeat(8 << 20));
    let answer = json!([{ "type": "text", "text": "two:" }, jpeg, broken, file("image/png", &large)]);
    let answer = ScriptItem::content(serde_json::from_value::<Vec<Part>>(answer).unwrap());
    let model = ScriptedModel::new([answer, ScriptItem::say("done")]).record(&requests);
    let instance = Agent::builder("assistant").model(model).build().unwrap().instance("one").await.unwrap();
    let turn = instance.run("draw").await.unwrap();
    let said = "[The file `a.png` of the type image/png is left out: its content is not of that type.]";
    assert_eq!(turn.text(), format!("two:\n{said}"));
    let messages = instance.messages().await.unwrap();
    let kept = json!([{
        "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,bm8gaW1hZ2U=", "name": "a.png",
    }]);
    assert_eq!((messages[1].role(), &messages[1].metadata()["unusableFiles"]), (Role::Assistant, &kept));
    instance.run("go on").await.unwrap();
    let sent = std::fs::read_to_string(&requests).unwrap();
    let sent: Value = serde_json::from_str(sent.lines().last().unwrap()).unwrap();
    let mut corrected = file("image/jpeg", "data:image/jpeg;base64,/9j/4A==");
    corrected["provider"] = provider;
    let text = |text: &str| json!({ "type": "text", "text": text });
    assert_eq!(sent["messages"][1]["content"], json!([text("two:"), corrected, text(said), file("image/png", &large)]));
}
