//! NEXT: `next` runs exactly once, and its result is what goes out.

use std::sync::Mutex;
use std::time::Duration;

use goondan::prelude::*;
use goondan::{
    ErrorCode, FinishReason, ScriptItem, StepDraft, StepStatus, ToolCallDraft, ToolCallStatus, TurnDraft, json,
};
use goondan_covers::covers;

use crate::support::{Log, LogConfig, agent, one_turn};

/// Stops every turn before the core.
struct Stopping;

#[goondan::extension(name = "stopping")]
impl Stopping {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn stop(&self, _: &mut TurnContext<'_>, _: Next<'_, Turn>) -> Result<TurnResult> {
        Err(Error::new("E_CLOSED", "closed for today"))
    }
}

/// Logs which kinds of layers are reached.
struct Reached {
    log: Log,
}

#[goondan::extension(name = "reached")]
impl Reached {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.log.write("turn");
        next.run(ctx).await
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        self.log.write("step");
        next.run(ctx).await
    }
}

#[tokio::test]
#[covers("NEXT-02", "PIPE-24")]
async fn without_next_nothing_inside_runs() {
    let log = Log::new("without next");
    let agent = agent([ScriptItem::say("hi")]).extension::<Stopping>(json!({})).extension::<Reached>(log.config());
    let error = one_turn(agent).await.unwrap_err();
    assert_eq!(error.code(), "E_CLOSED");
    assert_eq!(error.extension().unwrap(), "stopping");
    assert_eq!(error.hook(), Some("turn middleware `stop`"));
    assert_eq!(log.take(), [""; 0]);
}

/// Returns the result of an earlier run instead of the one of this run.
#[derive(Default)]
struct Stashing {
    stash: Mutex<Option<StepResult>>,
}

#[goondan::extension(name = "stashing")]
impl Stashing {
    #[init]
    fn new() -> Self {
        Self::default()
    }

    #[middleware(step)]
    async fn stash(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if let Some(old) = self.stash.lock().unwrap().take() {
            return Ok(old);
        }
        let result = next.run(ctx).await?;
        *self.stash.lock().unwrap() = Some(result);
        Err(Error::retry_after(Duration::ZERO, "once more"))
    }
}

#[tokio::test]
#[covers("NEXT-01")]
async fn a_result_of_an_earlier_run_is_refused() {
    let agent = agent([ScriptItem::say("hi").repeat()]).extension::<Stashing>(json!({}));
    let error = one_turn(agent).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_NEXT);
    assert_eq!(error.extension().unwrap(), "stashing");
    assert_eq!(error.hook(), Some("step middleware `stash`"));
}

/// Keeps the result of a turn and gives it in the next one.
#[derive(Default)]
struct Hoarding {
    kept: Mutex<Option<TurnResult>>,
}

#[goondan::extension(name = "hoarding")]
impl Hoarding {
    #[init]
    fn new() -> Self {
        Self::default()
    }

    #[middleware(turn)]
    async fn keep(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        if let Some(old) = self.kept.lock().unwrap().take() {
            return Ok(old);
        }
        *self.kept.lock().unwrap() = Some(next.run(ctx).await?);
        Err(Error::msg("kept"))
    }
}

#[tokio::test]
async fn a_result_of_an_earlier_turn_is_refused() {
    let agent = agent([ScriptItem::say("hi").repeat()]).extension::<Hoarding>(json!({})).build().await.unwrap();
    let instance = agent.instance("test").await.unwrap();
    assert_eq!(instance.run("one").await.unwrap_err().message(), "kept");
    let error = instance.run("two").await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_NEXT);
    assert_eq!(error.extension().unwrap(), "hoarding");
    assert_eq!(error.hook(), Some("turn middleware `keep`"));
}

/// Drops `next` half-way and answers with something else.
struct Impatient;

#[goondan::extension(name = "impatient")]
impl Impatient {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn hurry(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        tokio::select! {
            biased;
            () = std::future::ready(()) => {}
            result = next.run(ctx) => return result,
        }
        // Only the extension that runs now may be named as the source of this message.
        ctx.emit(MessageEvent::append(Message::system("too slow")));
        assert_eq!(ctx.extension_name().unwrap(), "impatient");
        Err(Error::msg("too slow"))
    }
}

#[tokio::test]
async fn a_dropped_next_gives_the_run_back_to_the_layer_that_dropped_it() {
    let agent = agent([ScriptItem::say("hi")]).extension::<Impatient>(json!({}));
    let agent = agent.build().await.unwrap();
    let instance = agent.instance("test").await.unwrap();
    let error = instance.run("hello").await.unwrap_err();
    assert_eq!((error.extension().unwrap().as_str(), &*error.message()), ("impatient", "too slow"));
    let messages = instance.messages().await;
    assert_eq!(messages.last().unwrap().text(), "too slow");
}

/// Changes what every layer inside gave.
struct Changing;

#[goondan::extension(name = "changing")]
impl Changing {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let mut result = next.run(ctx).await?;
        let changed = format!("{}!", result.text());
        result.set_text(changed);
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn tool(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut result = next.run(ctx).await?;
        assert_eq!(result.status(), ToolCallStatus::Error);
        result.set_output("replaced");
        Ok(result)
    }
}

#[tokio::test]
#[covers("PIPE-05", "NEXT-04")]
async fn a_result_may_be_changed_on_its_way_out() {
    let script = [ScriptItem::call("no__tool", json!({})), ScriptItem::say("fine").when("^replaced$").unwrap()];
    let turn = one_turn(agent(script).extension::<Changing>(json!({}))).await.unwrap();
    assert_eq!(turn.text(), "fine!");
    assert_eq!(turn.tool_calls()[0].status, ToolCallStatus::Ok);
}

/// Answers in the place of what failed.
struct Recovering;

#[goondan::extension(name = "recovering")]
impl Recovering {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        match next.catch(ctx).await {
            Ok(result) => Ok(result),
            Err(failure) => {
                let text = format!("sorry: {}", failure.error().message());
                Ok(failure.recover(ctx, TurnDraft::text(text)))
            }
        }
    }
}

#[tokio::test]
#[covers("NEXT-06", "PIPE-22", "LEGACY-POINTS-05")]
async fn an_outer_layer_may_recover_from_a_failure_inside() {
    let turn = one_turn(agent([ScriptItem::fail("overloaded", true)]).extension::<Recovering>(json!({})));
    let turn = turn.await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.finish_reason()), ("sorry: overloaded", FinishReason::Error));
    assert_eq!(turn.error().unwrap().code(), &ErrorCode::MODEL);
    assert_eq!(turn.steps(), 1);
}

/// Goes on after failed steps and calls.
struct Persistent {
    log: Log,
}

#[goondan::extension(name = "persistent")]
impl Persistent {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        match next.catch(ctx).await {
            Ok(result) => Ok(result),
            Err(failure) => {
                let result = failure.recover(ctx, StepDraft::run_another());
                assert_eq!(result.status(), StepStatus::Failed);
                self.log.write(result.metadata()["error"].to_string());
                Ok(result)
            }
        }
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        match next.catch(ctx).await {
            Ok(result) => Ok(result),
            Err(failure) => Ok(failure.recover(ctx, ToolCallDraft::output("recovered"))),
        }
    }
}

/// Refuses every tool call.
struct Refusing;

#[goondan::extension(name = "refusing")]
impl Refusing {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall)]
    async fn refuse(&self, _: &mut ToolCallContext<'_>, _: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        Err(Error::new("E_POLICY", "not allowed").suggest("ask a person"))
    }
}

#[tokio::test]
#[covers("LEGACY-POINTS-06")]
async fn a_refused_call_is_an_error_for_the_model_and_the_turn_goes_on() {
    let script = [
        ScriptItem::call("any__tool", json!({})),
        ScriptItem::say("understood").when("E_POLICY: not allowed\nsuggestion: ask a person").unwrap(),
    ];
    let turn = one_turn(agent(script).extension::<Refusing>(json!({}))).await.unwrap();
    assert_eq!(turn.text(), "understood");
    assert_eq!(turn.tool_calls()[0].status, ToolCallStatus::Error);
}

#[tokio::test]
async fn steps_and_calls_recover_too() {
    let log = Log::new("steps recover");
    let script = [
        ScriptItem::fail("first", false),
        ScriptItem::call("any__tool", json!({})),
        ScriptItem::say("all right").when("^recovered$").unwrap(),
    ];
    let agent = agent(script).extension::<Persistent>(log.config()).extension::<Refusing>(json!({}));
    let turn = one_turn(agent).await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps()), ("all right", 3));
    assert_eq!(log.take(), ["\"first\""]);
}

/// Panics where its config says.
struct Panicking {
    place: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct PanicConfig {
    place: String,
}

#[goondan::extension(name = "panicking")]
impl Panicking {
    #[init]
    fn new(config: PanicConfig) -> Self {
        assert_ne!(config.place, "init", "boom in init");
        Self { place: config.place }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await?;
        assert_ne!(self.place, "turn", "boom");
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        assert_ne!(self.place, "step", "boom");
        next.run(ctx).await
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        assert_ne!(self.place, "toolCall", "boom");
        next.run(ctx).await
    }
}

#[tokio::test]
async fn a_panic_becomes_an_error_that_names_the_layer_even_behind_other_layers() {
    for (place, hook) in [("turn", "turn middleware `turn`"), ("step", "step middleware `step`")] {
        let log = Log::new(&format!("panic {place}"));
        let agent = agent([ScriptItem::say("hi").repeat()])
            .extension::<Reached>(log.config())
            .extension::<Panicking>(json!({ "place": place }));
        let agent = agent.build().await.unwrap();
        let instance = agent.instance("test").await.unwrap();
        let error = instance.run("hello").await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::EXT_PANIC);
        assert_eq!((error.extension().unwrap().as_str(), error.hook()), ("panicking", Some(hook)));
        assert!(error.message().contains("boom"), "{error}");
        // The conversation goes on: the failed turn was folded (D-16).
        assert_eq!(instance.run("again").await.unwrap_err().code(), &ErrorCode::EXT_PANIC);
        assert!(instance.messages().await.iter().any(|message| message.text() == "again"));
    }
}

#[tokio::test]
async fn a_panic_in_a_tool_call_is_an_error_for_the_model() {
    let script = [ScriptItem::call("any__tool", json!({})), ScriptItem::say("noted").when("E_EXT_PANIC").unwrap()];
    let turn = one_turn(agent(script).extension::<Panicking>(json!({ "place": "toolCall" }))).await.unwrap();
    assert_eq!(turn.text(), "noted");
}

#[tokio::test]
async fn a_panic_in_init_fails_the_start() {
    let agent = agent([]).extension::<Panicking>(json!({ "place": "init" }));
    let error = one_turn(agent).await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_INIT, "panicking"));
    assert!(format!("{:?}", error).contains("boom in init"), "{error:?}");
}

/// Notes when the core has finished.
struct Timeline {
    log: Log,
}

#[goondan::extension(name = "timeline")]
impl Timeline {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let before = ctx.conversation().len();
        let result = next.run(ctx).await?;
        self.log.write(format!("{before} before, {} after", ctx.conversation().len()));
        Ok(result)
    }
}

#[tokio::test]
#[covers("NEXT-05", "PIPE-04", "PIPE-06")]
async fn next_ends_when_everything_inside_has_ended() {
    let log = Log::new("timeline");
    let script = [ScriptItem::call("no__tool", json!({})), ScriptItem::say("done")];
    one_turn(agent(script).extension::<Timeline>(log.config())).await.unwrap();
    // input; then call, result, answer
    assert_eq!(log.take(), ["1 before, 4 after"]);
}
