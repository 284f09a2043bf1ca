//! CONV: messages change only by events, and the sum is always the truth.

use std::path::PathBuf;

use goondan::prelude::*;
use goondan::{ConversationView, ErrorCode, FileStore, ScriptItem, ScriptedModel, Source, Value, json};
use goondan_covers::covers;

use crate::support::{Log, LogConfig, agent, one_turn};

fn texts(conversation: ConversationView<'_>) -> String {
    conversation.iter().map(|message| message.text().into_owned()).collect::<Vec<_>>().join(",")
}

fn base(conversation: ConversationView<'_>) -> String {
    conversation.base().map(|message| message.text().into_owned()).collect::<Vec<_>>().join(",")
}

/// Emits every event before and after `next`, and logs what the views show on the next line.
struct Editing {
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
        ctx.emit(MessageEvent::append(Message::system("epilogue").with_metadata("pinned", true)));
        self.log.write(format!("base {}, now {}", base(ctx.conversation()), texts(ctx.conversation())));
        let kinds: Vec<_> = ctx.conversation().events().iter().map(|event| json!(event)["type"].clone()).collect();
        self.log.write(Value::Array(kinds).to_string());
        let payload = ctx.conversation().to_llm_messages();
        assert_eq!(json!(payload[0]), json!({ "role": "user", "content": "changed" }));
        Ok(result)
    }
}

#[tokio::test]
#[covers("CONV-01", "CONV-02", "CONV-03", "CONV-04", "CONV-05", "CONV-06", "CONV-07", "CONV-08")]
#[covers("CONV-11", "CONV-12", "CONV-16", "PIPE-23")]
async fn the_sum_follows_every_event_at_once() {
    let log = Log::new("editing");
    let script = [ScriptItem::say("answer").when("^changed$").unwrap(), ScriptItem::say("second").repeat()];
    let agent = agent(script).extension::<Editing>(log.config()).build().await.unwrap();
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
    let messages = instance.messages().await;
    assert_eq!(messages[2].metadata()["pinned"], true);
    let expected = Source::Extension { extension_name: "editing".parse().unwrap() };
    assert_eq!(messages[2].source(), &expected);
}

/// Empties the conversation, then says one thing.
struct Forgetting;

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

#[tokio::test]
#[covers("CONV-15", "CONV-17", "LEGACY-POINTS-04", "API-11")]
async fn what_a_step_middleware_emits_is_in_the_model_input_of_that_step() {
    let record = tempfile::tempdir().unwrap();
    let path = record.path().join("requests.jsonl");
    let model = ScriptedModel::new([ScriptItem::say("hi").repeat()]).record(&path);
    let agent = goondan::Agent::builder("assistant").system("be brief").model(model);
    let agent = agent.extension::<Forgetting>(json!({})).build().await.unwrap();
    let instance = agent.instance("test").await.unwrap();
    for _ in 0..3 {
        instance.run("hello").await.unwrap();
        assert_eq!(instance.messages().await.len(), 2);
    }
    let requests = std::fs::read_to_string(&path).unwrap();
    assert_eq!(requests.lines().count(), 3);
    for request in requests.lines() {
        let expected =
            json!({ "system": "be brief", "messages": [{ "role": "user", "content": "fresh" }], "tools": [] });
        assert_eq!(serde_json::from_str::<Value>(request).unwrap(), expected);
    }
}

/// Appends a message under an id that exists.
struct Colliding;

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

#[tokio::test]
async fn an_existing_id_fails_the_step_before_the_model_is_called() {
    let record = tempfile::tempdir().unwrap();
    let path = record.path().join("requests.jsonl");
    let model = ScriptedModel::new([ScriptItem::say("hi")]).record(&path);
    let agent = goondan::Agent::builder("assistant").model(model).extension::<Colliding>(json!({}));
    let error = one_turn(agent).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::MESSAGE_DUPLICATE_ID);
    assert!(!path.exists());
}

/// Takes all tool results, or all tool calls, out of the conversation.
struct Tearing {
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
        let ids: Vec<_> = torn.map(|message| message.id().to_owned()).collect();
        ids.into_iter().for_each(|id| ctx.emit(MessageEvent::remove(id)));
        next.run(ctx).await
    }
}

#[tokio::test]
#[covers("PAIR-01")]
async fn the_model_never_sees_half_of_a_tool_pair() {
    for results in [true, false] {
        let record = tempfile::tempdir().unwrap();
        let path = record.path().join("requests.jsonl");
        let call = ScriptItem::call("no__tool", json!({}));
        let model = ScriptedModel::new([call, ScriptItem::say("done")]).record(&path);
        let agent = goondan::Agent::builder("assistant").model(model);
        one_turn(agent.extension::<Tearing>(json!({ "results": results }))).await.unwrap();
        let requests = std::fs::read_to_string(&path).unwrap();
        for request in requests.lines() {
            let request: Value = serde_json::from_str(request).unwrap();
            assert_eq!(request["messages"], json!([{ "role": "user", "content": "hello" }]));
        }
    }
}

/// Logs how many lines the message files of its instance have, before and after `next`.
struct Peeking {
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

#[tokio::test]
#[covers("CONV-13", "CONV-14", "PIPE-18", "PIPE-21")]
async fn the_base_changes_only_at_the_end_of_the_turn_and_then_the_events_are_gone() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new("files"));
    let messages = dir.path().join("instances/assistant:one/messages");
    let script = [ScriptItem::call("no__tool", json!({})), ScriptItem::say("hi").repeat()];
    let agent = agent(script).extension::<Peeking>(json!({ "log": log, "messages": messages }));
    let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().await.unwrap();
    let instance = agent.instance("one").await.unwrap();
    for base in [4, 6] {
        instance.run("hello").await.unwrap();
        assert_eq!(std::fs::read_to_string(messages.join("base.jsonl")).unwrap().lines().count(), base);
        assert_eq!(std::fs::read(messages.join("events.jsonl")).unwrap(), b"");
    }
    // The input, the call and its result were written before the model was asked the second time.
    assert_eq!(log.take(), ["base 0 lines, unchanged true, events 3", "base 4 lines, unchanged true, events 1"]);
    let told = std::fs::read_to_string(messages.join("runtime-events.jsonl")).unwrap();
    assert!(told.lines().count() >= 10 && told.contains("\"type\":\"turn.completed\""), "{told}");
}
