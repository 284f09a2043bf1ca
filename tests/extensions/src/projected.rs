//! An extension that edits what the model is sent in a step.

use std::time::Duration;

use goondan::Value;
use goondan::conversation::{Content, ConversationView, Source};
use goondan::prelude::*;

use crate::Log;
use crate::depth::nested;

/// Makes the edits of its config, and logs what the conversation shows.
pub struct Projecting {
    config: Config,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    log: Log,
    edits: Vec<Edit>,
    /// The step in which it makes them; in each one if it is not set.
    step: Option<u32>,
    /// When it makes them.
    #[serde(default)]
    when: When,
}

#[derive(Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
enum When {
    #[default]
    Before,
    /// After `next`.
    After,
    /// Before `next`, and then the first attempt asks for another one.
    ThenRetry,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Edit {
    /// Appends a message of the user with this id and content.
    Append(String, Value),
    /// Replaces the content of the message with this id, or at this index: `#2`.
    Replace(String, Value),
    Remove(String),
    Truncate,
    /// Appends a message with a value that is nested too deeply.
    Deep,
    /// Emits a message, for comparison.
    Emit(String),
}

fn id(conversation: ConversationView<'_>, target: &str) -> String {
    let index = target.strip_prefix('#').and_then(|index| index.parse().ok());
    let message = index.and_then(|index| conversation.iter().nth(index));
    message.map_or(target.to_owned(), |message| message.id().to_owned())
}

impl Edit {
    fn make(&self, ctx: &mut StepContext<'_>) -> Result<()> {
        let user = |content: &Value| {
            Ok::<_, Error>(Message::new(Role::User, serde_json::from_value::<Content>(content.clone())?, Source::User))
        };
        match self {
            Self::Append(id, content) => {
                ctx.project(MessageEvent::append(user(content)?.with_id(id.as_str())));
            }
            Self::Replace(target, content) => {
                let target = id(ctx.conversation(), target);
                let old = ctx.conversation().iter().find(|message| message.id() == target);
                let new = match old.map(|message| message.to_message()) {
                    Some(old) => old.with_content(serde_json::from_value::<Content>(content.clone())?),
                    None => user(content)?.with_id(target.as_str()),
                };
                ctx.project(MessageEvent::replace(target.as_str(), new));
            }
            Self::Remove(target) => ctx.project(MessageEvent::remove(id(ctx.conversation(), target).as_str())),
            Self::Truncate => ctx.project(MessageEvent::truncate()),
            Self::Deep => ctx.project(MessageEvent::append(Message::user("deep").with_metadata("deep", nested(100)))),
            Self::Emit(text) => ctx.emit(MessageEvent::append(Message::user(text.as_str()))),
        }
        Ok(())
    }
}

#[goondan::extension(name = "projecting")]
impl Projecting {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    fn see(&self, ctx: &StepContext<'_>, when: &str) {
        let texts: Vec<_> = ctx.conversation().iter().map(|message| message.text().into_owned()).collect();
        let (events, tokens) = (ctx.conversation().events().len(), ctx.token_estimate());
        self.config.log.write(format!("{when}: {texts:?}, {events} events, {tokens} tokens"));
    }

    #[middleware(step)]
    async fn edit(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let Config { edits, step, when, .. } = &self.config;
        let again = ctx.metadata().contains_key("attempt");
        let edits = if again || step.is_some_and(|step| step != ctx.step_index()) { &[] } else { edits.as_slice() };
        self.see(ctx, "before");
        if *when != When::After {
            edits.iter().try_for_each(|edit| edit.make(ctx))?;
        }
        self.see(ctx, "edited");
        let result = next.run(ctx).await?;
        if *when == When::After {
            edits.iter().try_for_each(|edit| edit.make(ctx))?;
        }
        if *when == When::ThenRetry && !again {
            return Err(Error::retry_after(Duration::ZERO, "again"));
        }
        Ok(result)
    }

    /// Looks around.
    #[tool(effect = read)]
    async fn look(&self) -> Result<&'static str> {
        Ok("nothing to see")
    }
}
