//! Extensions that read and change the conversation.

use std::borrow::Cow;
use std::path::PathBuf;

use goondan::conversation::ConversationView;
use goondan::prelude::*;
use goondan::{Value, json};

use crate::{Log, LogConfig};

fn texts(conversation: ConversationView<'_>) -> String {
    conversation.iter().map(|message| message.text().into_owned()).collect::<Vec<_>>().join(",")
}

fn base(conversation: ConversationView<'_>) -> String {
    conversation.base().map(|message| message.text().into_owned()).collect::<Vec<_>>().join(",")
}

/// Emits every kind of message event, before and after `next`, and logs what the views show right after it.
pub struct Editing {
    log: Log,
}

#[goondan::extension(name = "editing")]
impl Editing {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn edit(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.log.write(format!("base {}, now {}", base(ctx.conversation()), texts(ctx.conversation())));
        ctx.emit(MessageEvent::append(Message::system("note").with_id("note")));
        self.log.write(texts(ctx.conversation()));
        let input = ctx.conversation().iter().find(|message| message.role() == Role::User).unwrap();
        let (id, changed) = (input.id().to_owned(), input.to_message().with_content("changed"));
        ctx.emit(MessageEvent::replace(id, changed));
        self.log.write(texts(ctx.conversation()));
        ctx.emit(MessageEvent::remove("nobody"));
        ctx.emit(MessageEvent::remove("note"));
        self.log.write(texts(ctx.conversation()));
        let result = next.run(ctx).await?;
        ctx.emit(MessageEvent::append(Message::system("epilogue").with_metadata("pinned", json!({ "why": ["é"] }))));
        let metadata = |key| ctx.conversation().iter().map(|message| message.metadata(key).map(Cow::into_owned)).last();
        assert_eq!([metadata("pinned"), metadata("other")], [Some(Some(json!({ "why": ["é"] }))), Some(None)]);
        self.log.write(format!("base {}, now {}", base(ctx.conversation()), texts(ctx.conversation())));
        let kinds: Vec<_> = ctx.conversation().events().iter().map(|event| json!(event)["type"].clone()).collect();
        self.log.write(Value::Array(kinds).to_string());
        let payload = ctx.conversation().to_llm_messages();
        assert_eq!(json!(payload[0]), json!({ "role": "user", "content": "changed" }));
        Ok(result)
    }
}

/// Empties the conversation, then appends one message.
pub struct Forgetting;

#[goondan::extension(name = "forgetting")]
impl Forgetting {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn forget(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.emit(MessageEvent::truncate());
        assert!(ctx.conversation().is_empty());
        ctx.emit(MessageEvent::append(Message::user("fresh")));
        assert_eq!(ctx.conversation().len(), 1);
        next.run(ctx).await
    }
}

/// Appends a message under an id that exists.
pub struct Colliding;

#[goondan::extension(name = "colliding")]
impl Colliding {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn collide(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let id = ctx.conversation().iter().next().unwrap().id().to_owned();
        ctx.emit(MessageEvent::append(Message::system("twin").with_id(id)));
        assert_eq!(ctx.conversation().len(), 1, "the event had no effect");
        next.run(ctx).await
    }
}

/// Removes all tool results, or all tool calls, from the conversation.
pub struct Tearing {
    role: Role,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TearingConfig {
    results: bool,
}

#[goondan::extension(name = "tearing")]
impl Tearing {
    #[init]
    fn new(config: TearingConfig) -> Self {
        Self { role: if config.results { Role::Tool } else { Role::Assistant } }
    }

    #[middleware(step)]
    async fn tear(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let torn = ctx.conversation().iter().filter(|message| message.role() == self.role);
        let ids: Vec<_> = torn.map(|message| message.to_id()).collect();
        ids.into_iter().for_each(|id| ctx.emit(MessageEvent::remove(id)));
        next.run(ctx).await
    }
}

/// Logs the lines of the base before `next`, whether it is unchanged after it, and the appended messages in the events.
pub struct Peeking {
    log: Log,
    messages: PathBuf,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct PeekingConfig {
    log: Log,
    messages: PathBuf,
}

#[goondan::extension(name = "peeking")]
impl Peeking {
    #[init]
    fn new(config: PeekingConfig) -> Self {
        Self { log: config.log, messages: config.messages }
    }

    #[middleware(turn)]
    async fn peek(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let base = std::fs::read_to_string(self.messages.join("base.jsonl")).unwrap_or_default();
        let result = next.run(ctx).await?;
        let events = std::fs::read_to_string(self.messages.join("events.jsonl"))?;
        let events = events.lines().filter(|line| line.contains("\"type\":\"append\"")).count();
        let unchanged = base == std::fs::read_to_string(self.messages.join("base.jsonl")).unwrap_or_default();
        self.log.write(format!("base {} lines, unchanged {unchanged}, events {events}", base.lines().count()));
        Ok(result)
    }
}
