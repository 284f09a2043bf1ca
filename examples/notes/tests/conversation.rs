//! The notebook in conversations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use goondan::prelude::*;
use goondan::{
    Agent, BoxFuture, FileStore, MemoryStore, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel, Store,
    Value, json,
};
use notes::Notes;

/// Plays a script, and keeps what each step was told about `notes__list`.
struct Watched {
    script: ScriptedModel,
    told: Arc<Mutex<Vec<String>>>,
}

impl Model for Watched {
    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let list = request.tools().find(|tool| tool.name == "notes__list").unwrap();
        self.told.lock().unwrap().push(list.description.clone().unwrap());
        self.script.generate(request)
    }
}

struct Visitor(ExtensionApi);

/// Leaves a note at the end of each turn.
#[goondan::extension(name = "visitor")]
impl Visitor {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self(api)
    }

    #[middleware(turn)]
    async fn leave(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await;
        self.0.events().emit("notes.leave", (json!({ "text": "I was here." }),));
        result
    }
}

fn call(tool: &str, args: &Value) -> ScriptItem {
    ScriptItem::call(tool, args.as_object().unwrap().clone())
}

/// Runs one turn of the conversation in `store`, and gives what the tools answered and what the model was told.
async fn turn(store: impl Store, script: impl IntoIterator<Item = ScriptItem>) -> (Vec<String>, Vec<String>) {
    let told = Arc::default();
    let model = Watched { script: ScriptedModel::new(script), told: Arc::clone(&told) };
    let agent = Agent::builder("secretary").model(model).store(store);
    let agent = agent.extension::<Notes>(json!({})).extension::<Visitor>(json!({})).build().await.unwrap();
    let instance = agent.instance("user:42").await.unwrap();
    instance.run("hello").await.unwrap();
    let messages = instance.messages().await;
    let answers =
        messages.iter().filter(|message| message.role() == Role::Tool).map(|message| message.text().into_owned());
    instance.close().await.unwrap();
    (answers.collect(), told.lock().unwrap().clone())
}

#[tokio::test]
async fn what_was_noted_can_be_listed() {
    let script = [
        call("notes__add", &json!({ "text": "Buy milk.", "topic": "groceries" })),
        call("notes__add", &json!({ "text": "Call Ada." })),
        call("notes__list", &json!({ "topic": "groceries" })),
        ScriptItem::say("done"),
    ];
    let (answers, _) = turn(MemoryStore::new(), script).await;
    assert_eq!(answers, ["noted; 1 in all", "noted; 2 in all", r#"[{"text":"Buy milk.","topic":"groceries"}]"#]);
}

#[tokio::test]
async fn the_model_is_told_how_many_notes_there_are() {
    let script = [call("notes__add", &json!({ "text": "Buy milk." })), ScriptItem::say("done")];
    let (_, told) = turn(MemoryStore::new(), script).await;
    assert_eq!(told, [0, 1].map(|count| format!("Lists the notes, oldest first. There are {count}.")));
}

#[tokio::test]
async fn notes_that_others_leave_are_kept_like_all_others() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("notes-that-others-leave");
    let _ = std::fs::remove_dir_all(&place);
    turn(FileStore::open(&place).unwrap(), [ScriptItem::say("done")]).await;
    let (answers, told) =
        turn(FileStore::open(&place).unwrap(), [call("notes__list", &json!({})), ScriptItem::say("done")]).await;
    assert!(told[0].ends_with("There are 1."), "{told:?}");
    assert_eq!(answers, [r#"[{"text":"I was here."}]"#]);
}
