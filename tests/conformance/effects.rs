//! EFFECT: what a tool does to the world, and what becomes of its calls when a turn is interrupted.

use std::path::PathBuf;

use goondan::prelude::*;
use goondan::{Error, FileStore, Instance, ModelResponse, ScriptItem, json};

use crate::support::{Log, LogConfig, agent, one_turn};

/// Tools of each effect that never end, and tools of each effect that fail.
struct Effects {
    log: Log,
}

impl Effects {
    async fn hang(&self, tool: &str) -> Result<()> {
        self.log.write(tool);
        std::future::pending().await
    }

    fn fail(&self, tool: &str) -> Result<()> {
        self.log.write(tool);
        Err(Error::msg("busy").retryable(true))
    }
}

#[goondan::extension(name = "effects")]
impl Effects {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    /// Looks, for ever.
    #[tool(effect = read)]
    async fn look(&self) -> Result<()> {
        self.hang("look").await
    }

    /// Sets, for ever.
    #[tool(effect = idempotent)]
    async fn set(&self) -> Result<()> {
        self.hang("set").await
    }

    /// Pays, for ever.
    #[tool(timeout = "5s")]
    async fn pay(&self) -> Result<()> {
        self.hang("pay").await
    }

    /// Cannot look.
    #[tool(effect = read)]
    async fn look_busy(&self) -> Result<()> {
        self.fail("look_busy")
    }

    /// Cannot set.
    #[tool(effect = idempotent)]
    async fn set_busy(&self) -> Result<()> {
        self.fail("set_busy")
    }

    /// Cannot pay.
    #[tool(effect = once)]
    async fn pay_busy(&self) -> Result<()> {
        self.fail("pay_busy")
    }
}

/// Asks for another attempt of every call that fails.
struct Insisting;

#[goondan::extension(name = "insisting")]
impl Insisting {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall)]
    async fn insist(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let result = next.run(ctx).await?;
        if result.error().is_some_and(|error| error.message == "busy") {
            return Err(Error::retry_after(std::time::Duration::ZERO, "busy"));
        }
        Ok(result)
    }
}

/// Calls by the ids `c0`, `c1`, …
fn calls(tools: &[&str]) -> ScriptItem {
    let calls = tools.iter().enumerate();
    let calls: Vec<_> = calls.map(|(at, tool)| json!({ "id": format!("c{at}"), "name": tool, "args": {} })).collect();
    ScriptItem::raw(serde_json::from_value::<ModelResponse>(json!({ "toolCalls": calls })).unwrap())
}

/// Runs a turn until a tool has started, and goes away.
async fn cancel_in_tool(instance: &Instance, log: &Log) {
    let started = async {
        while log.take().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcome = instance.run("go") => panic!("the turn ended: {outcome:?}"),
        () = started => {}
    }
}

/// What the model reads as the results of the calls of the turn before.
async fn results(instance: &Instance) -> Vec<String> {
    let messages = instance.messages().await;
    messages.iter().filter(|message| message.role() == Role::Tool).map(|message| message.text().into_owned()).collect()
}

#[tokio::test]
async fn a_started_call_of_once_has_an_unknown_outcome_and_others_may_be_made_again() {
    for (tool, code) in [
        ("effects__pay", "error E_TOOL_OUTCOME_UNKNOWN: the turn ended while `effects__pay` ran"),
        ("effects__set", "error E_TOOL_INTERRUPTED: the turn ended before `effects__set` was answered"),
        ("effects__look", "error E_TOOL_INTERRUPTED: the turn ended before `effects__look` was answered"),
    ] {
        let log = Log::new(tool);
        // The call behind it never starts, though it is one of `once`.
        let script = [calls(&[tool, "effects__pay_busy"]), ScriptItem::say("I see")];
        let agent = agent(script).extension::<Effects>(log.config()).build().await.unwrap();
        let instance = agent.instance("test").await.unwrap();
        cancel_in_tool(&instance, &log).await;
        assert_eq!(instance.run("and?").await.unwrap().text(), "I see");
        assert_eq!(log.take(), [""; 0], "nothing is run again by itself");
        let results = results(&instance).await;
        assert!(results[0].starts_with(code), "{results:?}");
        assert!(results[0].contains("check what it did") == (tool == "effects__pay"), "{results:?}");
        assert!(results[1].starts_with("error E_TOOL_INTERRUPTED"), "{results:?}");
        assert!(results[1].contains("call it again"), "{results:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_once_that_takes_too_long_has_an_unknown_outcome() {
    let log = Log::new("too long");
    let script = [calls(&["effects__pay"]), ScriptItem::say("I see").when("is unknown: check before").unwrap()];
    let turn = one_turn(agent(script).extension::<Effects>(log.config())).await.unwrap();
    assert_eq!(turn.text(), "I see");
}

#[tokio::test]
async fn a_call_of_once_is_not_tried_again_after_it_started() {
    for (tool, runs) in [("look_busy", 4), ("set_busy", 4), ("pay_busy", 1)] {
        let log = Log::new(tool);
        let script = [calls(&[&format!("effects__{tool}")]), ScriptItem::say("I see").when("busy").unwrap()];
        let agent = agent(script).extension::<Insisting>(json!({})).extension::<Effects>(log.config());
        one_turn(agent).await.unwrap();
        assert_eq!(log.take(), vec![tool; runs]);
    }
}

/// Looks into the events of its own instance while it runs.
struct Prying {
    log: Log,
    events: PathBuf,
}

#[derive(Deserialize, JsonSchema)]
struct PryingConfig {
    log: Log,
    events: PathBuf,
}

impl Prying {
    fn pry(&self) -> Result<()> {
        let events = std::fs::read_to_string(&self.events)?;
        self.log.write(events.lines().last().unwrap_or_default().chars().take(16).collect::<String>());
        Ok(())
    }
}

#[goondan::extension(name = "prying")]
impl Prying {
    #[init]
    fn new(config: PryingConfig) -> Self {
        Self { log: config.log, events: config.events }
    }

    /// Acts once.
    #[tool]
    async fn once(&self) -> Result<()> {
        self.pry()
    }

    /// Acts any number of times.
    #[tool(effect = idempotent)]
    async fn often(&self) -> Result<()> {
        self.pry()
    }

    #[middleware(toolCall)]
    async fn ask_somebody(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        self.pry()?;
        next.run(ctx).await
    }
}

#[tokio::test]
async fn that_a_call_of_once_starts_is_kept_before_its_handler_runs_and_not_earlier() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new("prying"));
    let events = dir.path().join("instances/assistant:test/messages/events.jsonl");
    let script = [calls(&["prying__once"]), calls(&["prying__often"]), ScriptItem::say("done")];
    let agent = agent(script).extension::<Prying>(json!({ "log": log, "events": events }));
    one_turn(agent.store(FileStore::open(dir.path()).unwrap())).await.unwrap();
    let message = r#"{"type":"append""#;
    assert_eq!(log.take(), [message, r#"{"started":"c0"}"#, message, message]);
}
