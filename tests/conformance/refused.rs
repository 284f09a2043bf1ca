//! A request that a provider refuses does not close its conversation: files that it may have refused are left out.

use std::sync::{Arc, Mutex};

use conformance_extensions::files::Bringing;
use goondan::agent::TurnUpdate;
use goondan::conversation::{FilePart, Part, TextPart};
use goondan::event::AgentEvent;
use goondan::middleware::ToolRequest;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::store::FileStore;
use goondan::{Agent, BoxFuture, Error, ErrorCode, Result, Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::linkage::Extended;

/// The beginning of a PNG, which is more than the checks of goondan look at.
const CUT: &str = "data:image/png;base64,iVBORw0KGgo=";
const GOOD: &str = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";
const LEFT_OUT: &str =
    "[The file `it` of the type image/png is left out: the model's provider refused a request that had it.]";

/// A model that answers as a function says: of the messages of the request, and of how many came before it.
struct Provider {
    answer: fn(&str, usize) -> Result<ModelResponse>,
    requests: Requests,
}

/// The requests that a [`Provider`] got.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<Value>>>);

impl Requests {
    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Returns which of the requests had the file that providers refuse.
    fn with_cut_file(&self) -> Vec<bool> {
        self.take().iter().map(|messages| messages.to_string().contains(CUT)).collect()
    }
}

impl Model for Provider {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let messages = json!(request.messages().collect::<Vec<_>>());
        let (text, mut requests) = (messages.to_string(), self.requests.0.lock().unwrap());
        requests.push(messages);
        let answer = (self.answer)(&text, requests.len() - 1);
        Box::pin(async { answer })
    }
}

fn error(code: ErrorCode, status: Option<u16>) -> Error {
    let error = Error::new(code, "could not process the image");
    status.into_iter().fold(error, |error, status| error.with_detail("status", status))
}

/// Refuses what has the file.
fn refuse_cut(messages: &str, _: usize) -> Result<ModelResponse> {
    match messages.contains(CUT) {
        true => Err(error(ErrorCode::MODEL_REQUEST, Some(400))),
        false => Ok(ModelResponse::text("done")),
    }
}

/// An agent in a directory.
struct Fixture {
    dir: TempDir,
    requests: Requests,
}

impl Fixture {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), requests: Requests::default() }
    }

    /// Returns the agent as a new process has it.
    fn agent(&self, answer: fn(&str, usize) -> Result<ModelResponse>) -> goondan::agent::AgentBuilder {
        let provider = Provider { answer, requests: self.requests.clone() };
        Agent::builder("assistant").model(provider).store(FileStore::open(self.dir.path()).unwrap())
    }
}

fn input(text: &str, files: &[(&str, &str)]) -> AgentEvent {
    let files = files.iter().map(|(kind, url)| Part::from(FilePart::new(*kind, *url).named("it")));
    AgentEvent::content([Part::Text(TextPart::new(text))].into_iter().chain(files))
}

fn cut() -> AgentEvent {
    input("what is this?", &[("image/png", CUT)])
}

#[tokio::test]
#[covers("REFUSED-01")]
async fn a_refused_request_is_repeated_without_its_new_files() {
    let fixture = Fixture::new();
    let agent = fixture.agent(refuse_cut).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    instance.run(input("look", &[("image/gif", GOOD)])).await.unwrap();
    let mut turn = instance.run_stream(cut());
    let mut told = Vec::new();
    while let Some(update) = turn.next().await {
        match update {
            TurnUpdate::Restart { reason, .. } => told.push(reason.to_string()),
            TurnUpdate::Text { text, .. } => told.push(text),
            _ => {}
        }
    }
    assert_eq!(turn.finish().await.unwrap().text(), "done");
    assert_eq!(told, ["the provider refused the request: it is repeated without its new files", "done"]);
    let requests = fixture.requests.take();
    assert_eq!(requests.len(), 3);
    let replaced = json!([{ "type": "text", "text": "what is this?" }, { "type": "text", "text": LEFT_OUT }]);
    assert_eq!(requests[2][2]["content"], replaced);
    assert!(requests[2].to_string().contains(GOOD), "a file that was accepted stays");
    // From the disk.
    agent.close().await.unwrap();
    let messages = instance_messages(&fixture).await;
    assert_eq!((&messages[2]["data"]["content"], messages.len()), (&replaced, 4));
    assert_eq!(messages[2]["metadata"], json!({}));
    let agent = fixture.agent(refuse_cut).build().unwrap();
    agent.instance("one").await.unwrap().run("go on").await.unwrap();
    assert_eq!(fixture.requests.with_cut_file(), [false]);
}

async fn instance_messages(fixture: &Fixture) -> Vec<Value> {
    let agent = fixture.agent(refuse_cut).build().unwrap();
    let messages = agent.instance("one").await.unwrap().messages().await.unwrap();
    agent.close().await.unwrap();
    messages.iter().map(|message| json!(**message)).collect()
}

#[both_linkages]
#[covers("REFUSED-01")]
async fn a_file_in_the_result_of_a_tool_is_left_out_and_nothing_else() {
    let fixture = Fixture::new();
    let answer = |messages: &str, index| match index {
        0 => Ok(ModelResponse::tool_calls([ToolRequest::new("1".into(), "bringing__show", json!({}))])),
        _ => refuse_cut(messages, index),
    };
    let agent = fixture.agent(answer).with::<Bringing>(json!({ "file": ["image/png", CUT], "how": "tool" }));
    let agent = agent.build().unwrap();
    assert_eq!(agent.instance("one").await.unwrap().run("show it").await.unwrap().text(), "done");
    let requests = fixture.requests.take();
    assert_eq!(requests.len(), 3);
    let mut expected = requests[1].clone();
    expected[2]["content"][0]["output"]["value"][1] = json!({ "type": "text", "text": LEFT_OUT });
    assert_eq!(requests[2], expected);
    agent.close().await.unwrap();
    assert_eq!(instance_messages(&fixture).await[2]["data"]["content"], expected[2]["content"]);
}

#[both_linkages]
async fn a_file_of_a_projection_is_left_out_of_each_request() {
    let fixture = Fixture::new();
    let agent = fixture.agent(refuse_cut).with::<Bringing>(json!({ "file": ["image/png", CUT], "how": "project" }));
    let agent = agent.build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    for _ in 0..2 {
        instance.run(input("look", &[("image/gif", GOOD)])).await.unwrap();
        assert_eq!(fixture.requests.with_cut_file(), [true, false]);
    }
    agent.close().await.unwrap();
    // The other file was in the refused request too, and no accepted request had it.
    let messages = json!(instance_messages(&fixture).await).to_string();
    assert!(!messages.contains(GOOD) && !messages.contains(CUT), "{messages}");
}

#[tokio::test]
#[covers("REFUSED-01")]
async fn only_refusals_of_what_a_request_holds_are_repeated() {
    let of = |answer: fn(&str, usize) -> Result<ModelResponse>| async move {
        let fixture = Fixture::new();
        let agent = fixture.agent(answer).build().unwrap();
        let outcome = agent.instance("one").await.unwrap().run(cut()).await;
        (outcome.map(|turn| turn.text().into_owned()).ok(), fixture.requests.with_cut_file())
    };
    macro_rules! refusing {
        ($code:ident $status:expr) => {
            of(|messages, _| match messages.contains(CUT) {
                true => Err(error(ErrorCode::$code, $status)),
                false => Ok(ModelResponse::text("done")),
            })
            .await
        };
    }
    let repeated = (Some("done".to_owned()), vec![true, false]);
    assert_eq!(refusing!(MODEL_REQUEST None), repeated);
    assert_eq!(refusing!(MODEL_REQUEST Some(400)), repeated);
    assert_eq!(refusing!(MODEL_REQUEST Some(415)), repeated);
    assert_eq!(refusing!(MODEL_REQUEST Some(422)), repeated);
    assert_eq!(refusing!(MODEL_REFUSED Some(400)), repeated);
    assert_eq!(refusing!(MODEL_CONTEXT_OVERFLOW Some(413)), repeated);
    let failed = (None, vec![true]);
    assert_eq!(refusing!(MODEL_AUTH Some(401)), failed);
    assert_eq!(refusing!(MODEL_AUTH Some(400)), failed);
    assert_eq!(refusing!(MODEL_REQUEST Some(404)), failed);
    assert_eq!(refusing!(MODEL_QUOTA Some(400)), failed);
    assert_eq!(refusing!(MODEL_CONTEXT_OVERFLOW Some(400)), failed);
    assert_eq!(refusing!(MODEL_CONTEXT_OVERFLOW None), failed);
    assert_eq!(refusing!(MODEL_OVERLOADED Some(500)), failed);
    assert_eq!(refusing!(MODEL_NETWORK None), failed);
}

#[tokio::test]
#[covers("REFUSED-01")]
async fn a_file_that_was_accepted_is_never_left_out_also_after_a_restart() {
    let fixture = Fixture::new();
    let agent = fixture.agent(|_, _| Ok(ModelResponse::text("a dot"))).build().unwrap();
    agent.instance("one").await.unwrap().run(cut()).await.unwrap();
    agent.close().await.unwrap();
    let before = instance_messages(&fixture).await;
    fixture.requests.take();
    let agent = fixture.agent(refuse_cut).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let failure = instance.run("and now?").await.unwrap_err();
    assert_eq!((failure.code(), fixture.requests.with_cut_file()), (&ErrorCode::MODEL_REQUEST, vec![true]));
    // A new file is left out, which does not help.
    instance.run(input("or now?", &[("image/gif", GOOD)])).await.unwrap_err();
    assert_eq!(fixture.requests.with_cut_file(), [true, true]);
    agent.close().await.unwrap();
    assert_eq!(instance_messages(&fixture).await[..2], before[..2]);
}

#[tokio::test]
#[covers("REFUSED-01")]
async fn if_the_repetition_fails_the_next_turn_leaves_the_file_out() {
    let fixture = Fixture::new();
    let overloaded = |messages: &str, index| match refuse_cut(messages, index) {
        Ok(_) => Err(error(ErrorCode::MODEL_OVERLOADED, Some(529))),
        refused => refused,
    };
    let agent = fixture.agent(overloaded).build().unwrap();
    let failure = agent.instance("one").await.unwrap().run(cut()).await.unwrap_err();
    assert_eq!((failure.code(), fixture.requests.with_cut_file()), (&ErrorCode::MODEL_OVERLOADED, vec![true, false]));
    // Nothing is replaced, and still nothing after another failure.
    agent.instance("one").await.unwrap().run("again").await.unwrap_err();
    assert_eq!(fixture.requests.with_cut_file(), [false]);
    agent.close().await.unwrap();
    let messages = instance_messages(&fixture).await;
    assert_eq!((&messages[0]["data"]["content"][1]["url"], messages.len()), (&json!(CUT), 2));

    let agent = fixture.agent(refuse_cut).build().unwrap();
    agent.instance("one").await.unwrap().run("once more").await.unwrap();
    assert_eq!(fixture.requests.with_cut_file(), [false]);
    agent.close().await.unwrap();
    let messages = instance_messages(&fixture).await;
    let content = json!([{ "type": "text", "text": "what is this?" }, { "type": "text", "text": LEFT_OUT }]);
    assert_eq!((&messages[0]["data"]["content"], &messages[0]["metadata"]), (&content, &json!({})));
}

/// A model whose second answer never comes.
struct Hanging(Provider, Arc<tokio::sync::Notify>);

impl Model for Hanging {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, to: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let answer = self.0.generate(request, to);
        Box::pin(async {
            let answer = answer.await;
            if answer.is_ok() {
                self.1.notify_one();
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}

#[tokio::test]
async fn a_turn_that_is_cancelled_in_the_repetition_leaves_the_conversation_as_it_was() {
    let (fixture, asked) = (Fixture::new(), Arc::new(tokio::sync::Notify::new()));
    let provider = Provider { answer: refuse_cut, requests: fixture.requests.clone() };
    let agent = Agent::builder("assistant").model(Hanging(provider, Arc::clone(&asked)));
    let agent = agent.store(FileStore::open(fixture.dir.path()).unwrap()).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    tokio::select! {
        _ = instance.run(cut()) => panic!("the model does not answer"),
        () = asked.notified() => {}
    }
    agent.close().await.unwrap();
    assert_eq!(fixture.requests.with_cut_file(), [true, false]);
    let messages = instance_messages(&fixture).await;
    assert_eq!((&messages[0]["data"]["content"][1]["url"], &messages[0]["metadata"]), (&json!(CUT), &json!({})));
    let agent = fixture.agent(refuse_cut).build().unwrap();
    agent.instance("one").await.unwrap().run("go on").await.unwrap();
    assert_eq!(fixture.requests.with_cut_file(), [true, false]);
}
