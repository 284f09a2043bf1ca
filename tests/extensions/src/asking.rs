//! Extensions that ask about tool calls, and layers that stand around those.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use goondan::Value;
use goondan::decision::{OnInput, Question};
use goondan::event::Shown;
use goondan::middleware::ToolCallDraft;
use goondan::prelude::*;

use crate::Log;

/// Asks about calls of its tools, and logs what runs. It keeps the newest `questioning.note` in its state.
pub struct Questioning {
    config: Config,
    api: ExtensionApi,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    log: Log,
    /// The tools whose calls are asked about.
    #[serde(default)]
    asks: Vec<String>,
    /// The arguments `x` whose calls are asked about.
    #[serde(default)]
    asks_x: Vec<u32>,
    #[serde(default)]
    expires_ms: Option<u64>,
    /// Whether another input rejects.
    #[serde(default)]
    gives_way: bool,
    /// Whether a number is expected.
    #[serde(default)]
    number: bool,
    /// Where it fails once the call is decided: `before` or `after` its `next`, or `unread`.
    #[serde(default)]
    fails: String,
}

impl Config {
    fn question(&self, tool: &str) -> Question {
        let mut question = Question::new(format!("Run {tool}?"));
        if let Some(millis) = self.expires_ms {
            question = question.expires_after(Duration::from_millis(millis));
        }
        if self.gives_way {
            question = question.on_input(OnInput::Reject);
        }
        if self.number { question.expecting::<u32>() } else { question }
    }
}

#[goondan::extension(name = "questioning")]
impl Questioning {
    #[init]
    fn new(config: Config, api: ExtensionApi) -> Self {
        Self { config, api }
    }

    #[on("questioning.note")]
    async fn note(&self, event: &Event) -> Result<()> {
        self.api.state().set(&event.payload::<String>()?)
    }

    #[middleware(toolCall)]
    async fn ask(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let config = &self.config;
        if config.fails == "unread" && ctx.resumption() > 0 {
            return next.run(ctx).await;
        }
        // A decision may have changed the arguments.
        let is_decided = ctx.decision::<Value>().is_ok_and(|decision| decision.is_some());
        let is_asked = config.asks_x.iter().any(|x| ctx.args().get("x") == Some(&Value::from(*x)));
        if !is_decided && !is_asked && !config.asks.iter().any(|tool| tool == ctx.tool_name()) {
            return next.run(ctx).await;
        }
        let decided = ctx.decision::<Value>()?;
        match &decided {
            None => ctx.ask(config.question(ctx.tool_name())),
            Some(value) => {
                config.log.write(format!("decided {value}"));
                assert_ne!(config.fails, "before");
            }
        }
        let result = next.run(ctx).await?;
        if result.is_waiting() {
            config.log.write(format!("waits {}", ctx.call_id()));
        } else {
            assert_ne!(config.fails, "after");
        }
        Ok(result)
    }

    /// Acts on the world.
    #[tool(effect = once, present = "acts with {x}")]
    async fn act(&self, input: Input) -> Result<u32> {
        self.config.log.write(format!("act {}", input.x));
        Ok(input.x)
    }

    /// Changes something that may change twice.
    #[tool(effect = idempotent)]
    async fn set(&self, input: Input) -> Result<u32> {
        self.config.log.write(format!("set {}", input.x));
        Ok(input.x)
    }

    /// Reads.
    #[tool(effect = read)]
    async fn look(&self, input: Input) -> Result<u32> {
        self.config.log.write(format!("look {}", input.x));
        Ok(input.x)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    x: u32,
}

/// Asks two questions about each call of `questioning__act`, further out.
pub struct QuestioningAgain {
    config: Config,
}

#[goondan::extension(name = "questioning-again")]
impl QuestioningAgain {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    #[middleware(toolCall, priority = -50)]
    async fn ask_twice(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if self.config.asks.iter().any(|tool| tool == ctx.tool_name()) {
            for name in ["who", "why"] {
                if ctx.decision_of::<Value>(name)?.is_none() {
                    ctx.ask(self.config.question(name).named(name));
                }
            }
        }
        next.run(ctx).await
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct How {
    log: Log,
    /// What the layer does.
    how: String,
}

impl How {
    async fn run(
        &self,
        runs: &AtomicU32,
        ctx: &mut ToolCallContext<'_>,
        next: Next<'_, ToolCall>,
    ) -> Result<ToolCallResult> {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        let set = |ctx: &mut ToolCallContext<'_>, x: u32| _ = ctx.args_mut().insert("x".to_owned(), x.into());
        match self.how.as_str() {
            "errorBefore" => return Err(Error::msg("before")),
            "panicBefore" => panic!("before"),
            "retryBefore" if run == 0 => return Err(Error::retry_after(Duration::ZERO, "again")),
            "answer" => ctx.answer_with("prepared"),
            "same" => set(ctx, 77),
            "random" => set(ctx, 100 + run),
            "secondOther" => set(ctx, 100 + run.min(1)),
            "show" => ctx.show(Shown::note("this")),
            "showSecondOther" => ctx.show(Shown::note(format!("\x1b{}", run.min(1)))),
            "showOther" => ctx.show(Shown::note(run.to_string())),
            "showMany" => (0..20).for_each(|_| ctx.show(Shown::difference("x".repeat(1 << 20)))),
            _ => {}
        }
        let outcome = next.catch(ctx).await;
        match (self.how.as_str(), outcome) {
            ("errorAfter", _) => Err(Error::msg("after")),
            ("panicAfter", _) => panic!("after"),
            ("retryAfter", Ok(_)) if run == 0 => Err(Error::retry_after(Duration::ZERO, "again")),
            ("recover", Err(failure)) => Ok(failure.recover(ctx, ToolCallDraft::output("recovered"))),
            ("hide", Ok(mut result)) => {
                result.set_output("hidden");
                Ok(result)
            }
            (_, Ok(result)) => Ok(result),
            (_, Err(failure)) => Err(failure.into_error()),
        }
    }
}

/// A layer outside of those that ask.
pub struct AroundOutside {
    how: How,
    runs: AtomicU32,
}

#[goondan::extension(name = "around-outside")]
impl AroundOutside {
    #[init]
    fn new(how: How) -> Self {
        Self { how, runs: AtomicU32::new(0) }
    }

    #[middleware(toolCall, priority = -100)]
    async fn around(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        self.how.run(&self.runs, ctx, next).await
    }
}

/// A layer inside of those that ask.
pub struct AroundInside {
    how: How,
    runs: AtomicU32,
}

#[goondan::extension(name = "around-inside")]
impl AroundInside {
    #[init]
    fn new(how: How) -> Self {
        Self { how, runs: AtomicU32::new(0) }
    }

    #[middleware(toolCall, priority = 100)]
    async fn around(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        self.how.run(&self.runs, ctx, next).await
    }
}

/// Judges turns and steps that are suspended.
pub struct JudgingWaits {
    how: How,
}

#[goondan::extension(name = "judging-waits")]
impl JudgingWaits {
    #[init]
    fn new(how: How) -> Self {
        Self { how }
    }

    #[middleware(turn)]
    async fn judge_turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let mut result = next.run(ctx).await?;
        self.how.log.write(format!("turn {:?}, {} waits", result.finish_reason(), result.waits().len()));
        ctx.emit(MessageEvent::append(Message::user("the turn is over")));
        if self.how.how == "replace" {
            result.set_text("replaced");
        }
        self.fail()?;
        Ok(result)
    }

    #[middleware(step)]
    async fn judge_step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        match self.how.how.as_str() {
            "hold" => ctx.hold_stream(),
            "project" => ctx.project(MessageEvent::append(Message::user("for this step"))),
            _ => {}
        }
        let mut result = next.run(ctx).await?;
        let waiting = result.tool_results().iter().filter(|result| result.is_waiting()).count();
        self.how.log.write(format!("step {:?}, {waiting} of {}", result.status(), result.tool_calls().len()));
        ctx.emit(MessageEvent::append(Message::user("the step is over")));
        if !result.is_suspended() {
            return Ok(result);
        }
        match self.how.how.as_str() {
            "retry" => return Err(Error::retry_after(Duration::ZERO, "again")),
            "replace" => result.set_continues(true),
            _ => self.fail()?,
        }
        Ok(result)
    }

    fn fail(&self) -> Result<()> {
        match self.how.how.as_str() {
            "fail" => Err(Error::msg("judged")),
            "panic" => panic!("judged"),
            _ => Ok(()),
        }
    }
}
