//! Logs turns, steps and tool calls, with their duration and outcome.
// PATTERN-LOG

use std::time::Instant;

use goondan::extension::Logger;
use goondan::prelude::*;

/// The config of the extension.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The lowest level that is written. Tool calls are logged at `debug`, turns and steps at `info`, and failures at
    /// `error`.
    pub level: Level,
    /// Whether lines of tool calls show the arguments. Defaults to false, because arguments may hold secrets.
    pub include_tool_args: bool,
    /// Whether the first line of a turn shows the trace, the kind of the input event, and the metadata with which the
    /// turn begins.
    pub include_turn_metadata: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { level: Level::Info, include_tool_args: false, include_turn_metadata: true }
    }
}

/// The level of a line, lowest first.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Tool calls, turns and steps, and failures.
    Debug,
    /// Turns and steps, and failures.
    Info,
    /// The same as `error`: the extension logs no warnings.
    Warn,
    /// Failures.
    Error,
}

/// The extension.
#[derive(Debug)]
pub struct Logging {
    api: ExtensionApi,
    config: Config,
}

/// Logs turns, steps and tool calls, with their duration and outcome.
// The priority puts these layers outside those with a priority of 0 or near it: durations include everything inside,
// and a failure is logged as the caller gets it. Layers that must be outside the log can have a lower priority.
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
            if call.is_waiting() {
                return line.with("status", "waiting");
            }
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

/// A turn, step or tool call that is logged when it starts and when it ends.
struct Run<'a> {
    what: &'static str,
    /// The level of its lines, unless it fails.
    level: Level,
    /// The lowest level that is written.
    least: Level,
    /// Has the fields that all lines of the run share.
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

    // PATTERN-LOG-05: the outcome is only read.
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
