//! Extensions that hold the stream of a step, and that change the message of an answer.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use goondan::conversation::{ConversationView, Source};
use goondan::middleware::StepDraft;
use goondan::prelude::*;

use crate::Log;

#[derive(Debug, Deserialize, JsonSchema)]
struct Config {
    log: Log,
    /// When it holds the stream, if it does.
    hold: Option<Hold>,
    /// What it does when `next` has returned.
    then: Option<Then>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Hold {
    Before,
    Twice,
    After,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Then {
    /// Replaces the text of the answer.
    Replace(String),
    /// Replaces the answer by a message with the id of another one, which is refused.
    ReplaceBadly,
    Remove,
    Truncate,
    /// Appends another message of the assistant.
    Append(String),
    /// Removes the answer, and appends another message.
    RemoveAndAppend(String),
    /// Sets the text for the caller; for turns.
    Set(String),
    Fail,
    /// Removes the answer of the first attempt, and asks for another one.
    Retry,
    /// Goes on if the inner layers have failed.
    Recover,
}

fn append(text: &str) -> MessageEvent {
    MessageEvent::append(Message::new(Role::Assistant, text, Source::System))
}

impl Then {
    /// Returns the events that change the newest message of the assistant.
    fn events(&self, conversation: ConversationView<'_>) -> Vec<MessageEvent> {
        let answer = conversation.iter().rev().find(|message| message.role() == Role::Assistant);
        let Some(answer) = answer.map(|message| message.to_message()) else { return Vec::new() };
        let id = answer.id().clone();
        match self {
            Self::Replace(text) => vec![MessageEvent::replace(id, answer.with_content(text.as_str()))],
            Self::ReplaceBadly => {
                let first = conversation.iter().next().map(|message| message.to_message());
                first.map(|first| MessageEvent::replace(id, first)).into_iter().collect()
            }
            Self::Remove | Self::Retry => vec![MessageEvent::remove(id)],
            Self::Truncate => vec![MessageEvent::truncate()],
            Self::Append(text) => vec![append(text)],
            Self::RemoveAndAppend(text) => {
                vec![MessageEvent::remove(id), append(text)]
            }
            Self::Set(_) | Self::Fail | Self::Recover => Vec::new(),
        }
    }
}

/// Holds the stream of a step as its config says, and treats the answer.
pub struct Guarding {
    config: Config,
}

/// Lets the reader of the stream run.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[goondan::extension(name = "guarding")]
impl Guarding {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    #[middleware(step)]
    async fn guard(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let Config { log, hold, then } = &self.config;
        if let Some(Hold::Before | Hold::Twice) = hold {
            ctx.hold_stream();
        }
        if *hold == Some(Hold::Twice) {
            ctx.hold_stream();
        }
        let outcome = next.catch(ctx).await;
        yield_once().await;
        if *hold == Some(Hold::After) {
            ctx.hold_stream();
        }
        let result = match (outcome, then) {
            (Err(failure), Some(Then::Recover)) => failure.recover(ctx, StepDraft::stop()),
            (outcome, _) => outcome?,
        };
        let first = !ctx.metadata().contains_key("attempt");
        match then {
            Some(Then::Fail) => return Err(Error::msg("refused")),
            Some(Then::Retry) if !first => {}
            Some(then) => then.events(ctx.conversation()).into_iter().for_each(|event| ctx.emit(event)),
            None => {}
        }
        if matches!(then, Some(Then::Retry)) && first {
            return Err(Error::retry_after(Duration::ZERO, "not good enough"));
        }
        log.write("returned");
        Ok(result)
    }

    /// Looks around.
    #[tool(effect = read)]
    async fn look(&self) -> Result<&'static str> {
        Ok("nothing to see")
    }
}

/// Changes the answer of a turn as its config says, and logs what it was.
pub struct Amending {
    config: Config,
}

#[goondan::extension(name = "amending")]
impl Amending {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    #[middleware(turn)]
    async fn amend(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let mut result = next.run(ctx).await?;
        self.config.log.write(result.text());
        match &self.config.then {
            Some(Then::Set(text)) => result.set_text(text.as_str()),
            Some(then) => then.events(ctx.conversation()).into_iter().for_each(|event| ctx.emit(event)),
            None => {}
        }
        Ok(result)
    }
}
