//! The middlewares, and what happens when a summary fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use goondan::ErrorCode;
use goondan::agent::AgentsApi;
use goondan::conversation::{ConversationView, MessageRef};
use goondan::name::TurnId;
use goondan::prelude::*;

use crate::choice::{Cause, Size, choose, is_too_long};
use crate::config::{Config, OnFailure, Place};
use crate::summary::{Done, Removed, Written};

/// After as many failures in a row, no model is asked until the conversation has been within its limits once.
const MAX_FAILURES: u32 = 2;

/// The extension.
#[derive(Debug)]
pub struct MessageCompaction {
    api: ExtensionApi,
    config: Config,
    /// Whether the request of this step was too long for the model when the step ran before.
    overflowed: AtomicBool,
}

/// The state.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Failures {
    /// The number of failures in a row to write a summary.
    in_a_row: u32,
    /// The newest turn in which none was, and in which the conversation therefore stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_in: Option<TurnId>,
}

/// Replaces older messages of a conversation by a summary.
#[goondan::extension(name = "message-compaction")]
impl MessageCompaction {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Self {
        Self { api, config, overflowed: AtomicBool::new(false) }
    }

    /// Compacts what earlier turns have left.
    #[middleware(turn, priority = -50)]
    async fn before_turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        // RESUME-01: a summary is not paid for again, and a failure does not count twice.
        if !ctx.is_repeated() {
            self.overflowed.store(false, Ordering::Relaxed);
            for event in self.compact(ctx.conversation(), ctx.turn_id(), ctx.agents(), Cause::Limits).await? {
                ctx.emit(event);
            }
        }
        next.run(ctx).await
    }

    /// Compacts what this turn has added, because a turn with many tool calls can exceed the limits on its own, and
    /// what the model cannot take.
    #[middleware(step, priority = -50)]
    async fn within_turn(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let cause = if self.exceeds_tokens(ctx) { Cause::Request } else { Cause::Limits };
        if !ctx.is_repeated()
            && (cause == Cause::Request || ctx.step_index() > 0)
            && self.failures()?.kept_in.as_ref() != Some(ctx.turn_id())
        {
            for event in self.compact(ctx.conversation(), ctx.turn_id(), ctx.agents(), cause).await? {
                ctx.emit(event);
            }
        }
        let error = match next.catch(ctx).await {
            Ok(result) => {
                self.overflowed.store(false, Ordering::Relaxed);
                return Ok(result);
            }
            Err(failure) => failure.into_error(),
        };
        let is_overflow = *error.code() == ErrorCode::MODEL_CONTEXT_OVERFLOW;
        if !is_overflow || self.overflowed.swap(true, Ordering::Relaxed) {
            return Err(error);
        }
        let events = self.compact(ctx.conversation(), ctx.turn_id(), ctx.agents(), Cause::Request).await?;
        if events.is_empty() {
            return Err(error);
        }
        for event in events {
            ctx.emit(event);
        }
        let problem = "the request was too long for the model, and the conversation was shortened";
        Err(Error::retry_after(Duration::ZERO, problem).caused_by(error))
    }

    fn exceeds_tokens(&self, ctx: &StepContext<'_>) -> bool {
        let window = || ctx.model_info().context_window.map(|window| window / 5 * 4);
        let limit = self.config.max_tokens.map(|limit| limit.get()).or_else(window);
        limit.is_some_and(|limit| ctx.token_estimate() > limit)
    }

    /// Returns the events that replace messages by a summary, or none.
    async fn compact(
        &self,
        conversation: ConversationView<'_>,
        turn: &TurnId,
        agents: AgentsApi<'_>,
        cause: Cause,
    ) -> Result<Vec<MessageEvent>> {
        if cause == Cause::Limits && !is_too_long(conversation, &self.config) {
            self.ask_again()?;
            return Ok(Vec::new());
        }
        let messages: Vec<_> = conversation.iter().collect();
        let removed = Removed(choose(&messages, &self.config, cause));
        let Some(first) = removed.0.first().map(MessageRef::to_id) else { return Ok(Vec::new()) };
        let written = match self.write(&removed, agents).await {
            Ok(written) => written,
            Err(error) => {
                let then = match self.config.on_failure {
                    OnFailure::Fail => return Err(error),
                    OnFailure::Keep => "the conversation stays as it is",
                    OnFailure::Count => "the messages are removed without one",
                };
                self.api.logger().warn(format!("no summary was written, and {then}: {error}"));
                if self.config.on_failure == OnFailure::Keep {
                    let kept_in = Some(turn.clone());
                    self.api.state().update(|failures: &mut Failures| failures.kept_in = kept_in)?;
                    return Ok(Vec::new());
                }
                None
            }
        };
        let summary = removed.summary(written.as_ref()).standing_for(removed.0.iter().copied());
        let before = messages.iter().copied().map(Size::of).sum();
        let done = Done::new(before, &removed, &summary, written.as_ref(), &self.config);
        self.api.logger().info(format!("{} messages were replaced by a summary", done.removed));
        self.api.events().emit("compaction.done", (done,));

        let removals = removed.0.iter().map(|message| MessageEvent::remove(message.to_id()));
        Ok(match self.config.place() {
            Place::First => std::iter::once(MessageEvent::replace(first, summary)).chain(removals.skip(1)).collect(),
            Place::End => removals.chain([MessageEvent::append(summary)]).collect(),
        })
    }

    /// Asks the model for a summary, if one is to write it, and counts failures in a row.
    async fn write(&self, removed: &Removed<'_>, agents: AgentsApi<'_>) -> Result<Option<Written>> {
        let Some(config) = &self.config.summary else { return Ok(None) };
        let failures = self.failures()?.in_a_row;
        if failures >= MAX_FAILURES {
            return Ok(None);
        }
        let outcome = removed.summarize(agents, config, self.config.summary_characters(config)).await;
        let now = if outcome.is_ok() { 0 } else { failures + 1 };
        if now != failures {
            self.api.state().set(&Failures { in_a_row: now, kept_in: None })?;
        }
        outcome.map(Some)
    }

    /// Lets the model be asked again after failures, because the conversation is within its limits.
    fn ask_again(&self) -> Result<()> {
        if self.config.summary.is_some() && self.failures()?.in_a_row >= MAX_FAILURES {
            self.api.state().set(&Failures::default())?;
        }
        Ok(())
    }

    fn failures(&self) -> Result<Failures> {
        Ok(self.api.state().get()?.unwrap_or_default())
    }
}
