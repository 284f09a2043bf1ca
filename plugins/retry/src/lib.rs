//! Runs a step again when its model failed, after a growing delay or with another model.
//!
//! This file has the config and the middleware, `plan` decides what follows a failure.
// PATTERN-RETRY

mod plan;

use std::num::NonZeroU32;
use std::time::Duration;

use goondan::prelude::*;
use goondan::{Value, json};

use plan::Plan;

/// The config of the extension.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The most retries of a step in a row. The policy of the agent limits them too, by `maxRetries`.
    pub max_retries: u32,
    /// The delay before the first retry, in milliseconds. It doubles with each retry; up to half of it, at random, is
    /// left out.
    pub first_delay_ms: u64,
    /// The longest delay, in milliseconds. A model that wants a longer one is not waited for.
    #[schemars(range(max = 10_000))]
    pub max_delay_ms: u64,
    /// The longest sum of the delays of a turn, in milliseconds.
    pub budget_ms: u64,
    /// Another model to ask.
    pub fallback: Option<Fallback>,
}

/// Another model, and when it is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fallback {
    /// The model, such as `Model/backup`: one that the agent may call.
    pub model: String,
    /// The number of failures in a row of the agent's own model before. Where waiting does not help, the other model is
    /// asked at once.
    #[serde(default = "once")]
    pub after: NonZeroU32,
}

impl Fallback {
    fn name(&self) -> &str {
        self.model.strip_prefix("Model/").unwrap_or(&self.model)
    }
}

fn once() -> NonZeroU32 {
    NonZeroU32::MIN
}

impl Default for Config {
    fn default() -> Self {
        Self { max_retries: 3, first_delay_ms: 1000, max_delay_ms: 10_000, budget_ms: 60_000, fallback: None }
    }
}

/// The record in the metadata of the turn, beside the `attempt` that the runtime counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Spent {
    /// The sum of the delays of the turn.
    waited_ms: u64,
    /// Whether later steps of the turn ask the other model.
    fallback: bool,
}

/// The key of [`Spent`].
const KEY: &str = "retry";

/// The extension.
#[derive(Debug)]
pub struct Retry {
    config: Config,
}

/// Runs a step again when its model failed, after a growing delay or with another model.
#[goondan::extension(name = "retry")]
impl Retry {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    // The innermost layer: it sees the failures of the model alone, and has the last word on which model is asked.
    #[middleware(step, priority = 1000)]
    async fn retry(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>, api: &ExtensionApi) -> Result<StepResult> {
        let mut spent: Spent =
            ctx.metadata().get(KEY).and_then(|spent| json::from_value(spent.clone()).ok()).unwrap_or_default();
        let attempt = ctx.metadata().get("attempt").and_then(Value::as_u64).unwrap_or(0);
        if let Some(other) = self.config.fallback.as_ref().filter(|_| spent.fallback) {
            ctx.set_model(other.name());
        }
        let failure = match next.catch(ctx).await {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        let error = failure.into_error();
        let delay = match Plan::after(&self.config, attempt, spent, &error) {
            Plan::GiveUp => return Err(error),
            Plan::Wait(delay) => delay,
            Plan::Change => {
                spent.fallback = true;
                Duration::ZERO
            }
        };
        spent.waited_ms += u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        ctx.metadata_mut().insert(KEY.to_owned(), json::to_value(spent)?);
        let log = api
            .logger()
            .with("attempt", attempt + 1)
            .with("delayMs", delay.as_millis())
            .with("error", error.to_string());
        log.with("fallback", spent.fallback).warn("the model failed and is asked again");
        // NEXT-01, PIPE-19: another attempt is a new step, which the runtime starts.
        Err(Error::retry_after(delay, format!("the model failed: {}", error.message())).caused_by(error))
    }
}
