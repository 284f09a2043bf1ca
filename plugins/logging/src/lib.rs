//! Logs turns, steps and tool calls, with how long they took and how they ended (PATTERN-LOG).

use std::time::Instant;

use goondan::Logger;
use goondan::prelude::*;

/// The config of the extension.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The least important lines that are written. Tool calls are at `debug`, turns and steps at `info`, and what failed at
    /// `error`.
    pub level: Level,
    /// Whether lines of tool calls show the arguments. They may hold secrets, so they stay out unless asked for.
    pub include_tool_args: bool,
    /// Whether the first line of a turn shows what started it: the trace, the kind of the input event, and the metadata
    /// that the turn begins with.
    pub include_turn_metadata: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { level: Level::Info, include_tool_args: false, include_turn_metadata: true }
    }
}

/// How important a line is, the least important first.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Tool calls, and everything below.
    Debug,
    /// Turns and steps, and everything below.
    Info,
    /// The same as `error`: nothing of what happens here is a warning.
    Warn,
    /// What failed.
    Error,
}

/// The extension.
#[derive(Debug)]
pub struct Logging {
    api: ExtensionApi,
    config: Config,
}

/// Logs turns, steps and tool calls, with how long they took and how they ended.
// The priority puts these layers outside of those that leave theirs at 0 or near it: the times are those of everything
// inside, and a failure is logged as the caller gets it. What must be outside of the log can still go below.
#[goondan::extension(name = "logging")]
impl Logging {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Self {
        Self { api, config }
    }

    #[middleware(turn, priority = -1000)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let run = self.run("turn", Level::Info).with("turn", ctx.turn_id());
        if self.config.include_turn_metadata {
            let input = run.logger.clone().with("trace", ctx.trace_id()).with("input", &ctx.input().kind);
            run.started(&input.with("metadata", ctx.metadata()));
        } else {
            run.started(&run.logger);
        }
        let outcome = next.run(ctx).await;
        run.ended(&outcome, |turn, line| line.with("finishReason", turn.finish_reason()));
        outcome
    }

    #[middleware(step, priority = -1000)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let run = self.run("step", Level::Info).with("turn", ctx.turn_id()).with("step", ctx.step_index());
        run.started(&run.logger);
        let outcome = next.run(ctx).await;
        run.ended(&outcome, |step, line| line.with("status", step.status()).with("toolCalls", step.tool_calls().len()));
        outcome
    }

    #[middleware(toolCall, priority = -1000)]
    async fn tool_call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut run = self.run("tool call", Level::Debug).with("turn", ctx.turn_id()).with("step", ctx.step_index());
        run = run.with("call", ctx.call_id()).with("tool", ctx.tool_name());
        if self.config.include_tool_args {
            run = run.with("args", ctx.args());
        }
        run.started(&run.logger);
        let outcome = next.run(ctx).await;
        run.ended(&outcome, |call, line| {
            let line = line.with("status", call.status());
            match call.error() {
                Some(error) => line.with("error", error),
                None => line,
            }
        });
        outcome
    }
}

impl Logging {
    fn run(&self, what: &'static str, level: Level) -> Run<'_> {
        Run { what, level, least: self.config.level, logger: self.api.logger(), start: Instant::now() }
    }
}

/// Something that is logged: it starts, and it ends well or fails.
struct Run<'a> {
    what: &'static str,
    /// How important it is, unless it fails.
    level: Level,
    /// How important a line must be to be written.
    least: Level,
    /// Carries what all lines of the run say.
    logger: Logger<'a>,
    start: Instant,
}

impl<'a> Run<'a> {
    fn with(mut self, key: &str, value: impl Serialize) -> Self {
        self.logger = self.logger.with(key, value);
        self
    }

    fn started(&self, line: &Logger<'_>) {
        self.write(line, "started");
    }

    /// Only looks at the outcome (PATTERN-LOG-05).
    fn ended<T>(self, outcome: &Result<T>, describe: impl FnOnce(&T, Logger<'a>) -> Logger<'a>) {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let line = self.logger.clone().with("elapsedMs", elapsed);
        match outcome {
            Ok(output) => self.write(&describe(output, line), "completed"),
            Err(error) => {
                let line = line.with("code", error.code().as_str()).with("error", error.to_string());
                line.error(format!("{} failed", self.what));
            }
        }
    }

    fn write(&self, line: &Logger<'_>, verb: &str) {
        if self.level >= self.least {
            let text = format!("{} {verb}", self.what);
            match self.level {
                Level::Debug => line.debug(text),
                _ => line.info(text),
            }
        }
    }
}
