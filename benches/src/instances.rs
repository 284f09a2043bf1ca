//! Many conversations to measure, each with a history and five extensions. An extension has layers, a tool and state.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use goondan::agent::AgentBuilder;
use goondan::conversation::{Message, Source};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::prelude::*;
use goondan::store::Store as _;
use goondan::store::{FileStore, InstanceId};
use goondan::tool::{Effect, ToolItem};
use goondan::{Agent, BoxFuture, Instance, json};
use tokio::sync::Semaphore;

use crate::agents::NoopTool;

/// The number of messages of a history.
pub const HISTORY: usize = 20;

/// The names of the extensions.
pub const EXTENSIONS: [&str; 5] = ["one", "two", "three", "four", "five"];

/// The input of every turn, about as long as people write.
pub const INPUT: &str = "Could you look up what we said about the invoices of last month, and tell me in short?";

const ANSWER: &str = "We said that the invoices of last month go out together with those of this month, because the new \
                      address of the customer was not known then. Two of them were corrected since; the other ones are \
                      as they were. Shall I write that down for the meeting?";

/// Has a permit for each extension that has cleaned up.
pub static CLEANED_UP: Semaphore = Semaphore::const_new(0);

#[derive(Debug)]
struct Keeping {
    api: ExtensionApi,
    counts: bool,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct KeepingConfig {
    /// Which one of [`EXTENSIONS`] it is.
    name: String,
}

/// The state of an extension.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Memo {
    turns: u32,
    topics: Vec<String>,
}

#[goondan::extension(name = "keeping")]
impl Keeping {
    #[init]
    fn new(api: ExtensionApi, config: KeepingConfig) -> Result<Self> {
        if api.state().get::<Memo>()?.is_none() {
            api.state()
                .set(&Memo { turns: 0, topics: ["invoices", "address", "meeting"].map(str::to_owned).into() })?;
        }
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let tool = ToolItem::new(&format!("{}__note", config.name))?.describe("Notes something.");
        api.tools().register(tool.parameters(schema).effect(Effect::Read), NoopTool)?;
        Ok(Self { api, counts: config.name == EXTENSIONS[0] })
    }

    #[middleware(turn)]
    async fn count(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        if self.counts {
            self.api.state().update(|memo: &mut Memo| memo.turns += 1)?;
        }
        next.run(ctx).await
    }

    #[middleware(step)]
    async fn pass(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await
    }

    #[cleanup]
    async fn close(&self) {
        CLEANED_UP.add_permits(1);
    }
}

/// A model that answers with a text after this duration.
#[derive(Debug)]
pub struct AnsweringModel(pub Duration);

impl AnsweringModel {
    async fn answer(&self) -> Result<ModelResponse> {
        if !self.0.is_zero() {
            tokio::time::sleep(self.0).await;
        }
        Ok(ModelResponse::text(ANSWER))
    }
}

impl Model for AnsweringModel {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(self.answer())
    }
}

/// The yardstick of a turn, without a framework and without extensions.
///
/// # Errors
/// When the model fails.
pub async fn turn_by_hand(messages: &mut Vec<Arc<Message>>, model: &AnsweringModel) -> Result<()> {
    messages.push(Arc::new(Message::user(INPUT)));
    let answer = model.answer().await?.to_text().into_owned();
    messages.push(Arc::new(Message::new(Role::Assistant, answer, Source::System)));
    Ok(())
}

/// Describes an agent with the five extensions, whose model answers after `latency`.
pub fn builder(latency: Duration) -> AgentBuilder {
    EXTENSIONS.iter().fold(Agent::builder("many").model(AnsweringModel(latency)), |agent, name| {
        agent.linked_extension(*name, "keeping", json!({ "name": name }))
    })
}

/// Returns the key of a conversation.
pub fn key(number: usize) -> String {
    format!("user:{number}")
}

/// Opens the instance `key` and runs turns until it has a history.
///
/// # Errors
/// When it cannot be opened, or a turn fails.
pub async fn with_history(agent: &Agent, key: &str) -> Result<Instance> {
    let instance = agent.instance(key).await?;
    for _ in 0..HISTORY / 2 {
        instance.run(INPUT).await?;
    }
    Ok(instance)
}

/// Stores `number` conversations below `dir`, each with a history: one that turns have made, and copies of it.
///
/// # Errors
/// When files cannot be written.
pub async fn stored(dir: &Path, number: usize) -> Result<FileStore> {
    let store = FileStore::open(dir)?.fsync(goondan::store::Fsync::Never);
    let agent = builder(Duration::ZERO).store(store.clone()).build()?;
    with_history(&agent, &key(0)).await?.close().await?;
    let directory = |number| {
        let id = InstanceId { agent: agent.name().clone(), key: goondan::name::InstanceKey::new(&key(number))? };
        Ok::<_, Error>(store.instance_dir(&id))
    };
    let first = directory(0)?;
    for number in 1..number {
        let copy = directory(number)?;
        for folder in ["messages", "extensions"] {
            std::fs::create_dir_all(copy.join(folder)).map_err(Error::from)?;
        }
        let copy_file = |file: &str| std::fs::copy(first.join(file), copy.join(file)).map_err(Error::from);
        copy_file("messages/base.jsonl")?;
        copy_file("messages/events.jsonl")?;
        for extension in EXTENSIONS {
            copy_file(&format!("extensions/{extension}.json"))?;
        }
    }
    Ok(store)
}

/// Reads the messages of a stored conversation: what an open one keeps in memory at least.
///
/// # Errors
/// When the conversation does not exist or is open.
pub async fn messages(store: &FileStore) -> Result<Vec<Arc<Message>>> {
    let id = InstanceId { agent: "many".parse()?, key: goondan::name::InstanceKey::new(&key(0))? };
    Ok(store.open(&id).await?.base)
}
