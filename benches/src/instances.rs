//! Many conversations to measure: each with a history, and five extensions that layer, register a tool and remember
//! something.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use goondan::prelude::*;
use goondan::store::Store as _;
use goondan::{
    Agent, AgentBuilder, BoxFuture, Effect, FileStore, Instance, InstanceId, Message, Model, ModelRequest,
    ModelResponse, Source, ToolItem, json,
};
use tokio::sync::Semaphore;

use crate::agents::Nothing;

/// How many messages a history has.
pub const HISTORY: usize = 20;

/// The extensions.
pub const EXTENSIONS: [&str; 5] = ["one", "two", "three", "four", "five"];

/// What the user says; about as long as people write.
pub const INPUT: &str = "Could you look up what we said about the invoices of last month, and tell me in short?";

const ANSWER: &str = "We said that the invoices of last month go out together with those of this month, because the new \
                      address of the customer was not known then. Two of them were corrected since; the other ones are \
                      as they were. Shall I write that down for the meeting?";

/// A permit for each extension that has cleaned up.
pub static CLEANED_UP: Semaphore = Semaphore::const_new(0);

#[derive(Debug)]
struct Keeping {
    api: ExtensionApi,
    counts: bool,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Keep {
    /// As which of the extensions.
    name: String,
}

/// What each of them remembers.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Memo {
    turns: u32,
    topics: Vec<String>,
}

#[goondan::extension(name = "keeping")]
impl Keeping {
    #[init]
    fn new(api: ExtensionApi, config: Keep) -> Result<Self> {
        if api.state().get::<Memo>()?.is_none() {
            api.state()
                .set(&Memo { turns: 0, topics: ["invoices", "address", "meeting"].map(str::to_owned).into() })?;
        }
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let tool = ToolItem::new(&format!("{}__note", config.name))?.describe("Notes something.");
        api.tools().register(tool.parameters(schema).effect(Effect::Read), Nothing)?;
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

/// A model that answers after a while.
#[derive(Debug)]
pub struct Answers(pub Duration);

impl Answers {
    async fn answer(&self) -> Result<ModelResponse> {
        if !self.0.is_zero() {
            tokio::time::sleep(self.0).await;
        }
        Ok(ModelResponse::text(ANSWER))
    }
}

impl Model for Answers {
    fn generate<'a>(&'a self, _: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(self.answer())
    }
}

/// The yardstick of a turn: what somebody would write who has neither a framework nor extensions.
///
/// # Errors
/// That of the model.
pub async fn turn_by_hand(messages: &mut Vec<Arc<Message>>, model: &Answers) -> Result<()> {
    messages.push(Arc::new(Message::user(INPUT)));
    let answer = model.answer().await?.text.unwrap_or_default();
    messages.push(Arc::new(Message::new(Role::Assistant, answer, Source::System)));
    Ok(())
}

/// An agent with the five extensions, whose model takes `latency` to answer.
pub fn builder(latency: Duration) -> AgentBuilder {
    EXTENSIONS.iter().fold(Agent::builder("many").model(Answers(latency)), |agent, name| {
        agent.linked(*name, "keeping", json!({ "name": name }))
    })
}

/// The key of a conversation.
pub fn key(number: usize) -> String {
    format!("user:{number}")
}

/// The conversation `key`, in which so much was said as makes a history.
///
/// # Errors
/// As those of the agent.
pub async fn talked(agent: &Agent, key: &str) -> Result<Instance> {
    let instance = agent.instance(key).await?;
    for _ in 0..HISTORY / 2 {
        instance.run(INPUT).await?;
    }
    Ok(instance)
}

/// Makes `number` conversations below `dir`, each with a history: one that is spoken, and copies of it.
///
/// # Errors
/// When files cannot be written.
pub async fn stored(dir: &Path, number: usize) -> Result<FileStore> {
    let store = FileStore::open(dir)?.fsync(goondan::store::Fsync::Never);
    let agent = builder(Duration::ZERO).store(store.clone()).build().await?;
    talked(&agent, &key(0)).await?.close().await?;
    let place = |number| {
        let id = InstanceId { agent: agent.name().clone(), key: goondan::InstanceKey::new(&key(number))? };
        Ok::<_, Error>(store.instance_dir(&id))
    };
    let first = place(0)?;
    for number in 1..number {
        let copy = place(number)?;
        for folder in ["messages", "extensions"] {
            std::fs::create_dir_all(copy.join(folder)).map_err(Error::from)?;
        }
        let copy_file = |file: &str| std::fs::copy(first.join(file), copy.join(file)).map_err(Error::from);
        copy_file("messages/base.jsonl")?;
        for extension in EXTENSIONS {
            copy_file(&format!("extensions/{extension}.json"))?;
        }
    }
    Ok(store)
}

/// The messages of a stored conversation, read into memory: what there is to remember.
///
/// # Errors
/// When the conversation is not there, or is open.
pub async fn messages(store: &FileStore) -> Result<Vec<Arc<Message>>> {
    let id = InstanceId { agent: "many".parse()?, key: goondan::InstanceKey::new(&key(0))? };
    Ok(store.open(&id).await?.base)
}
