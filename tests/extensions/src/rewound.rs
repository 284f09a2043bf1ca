//! Extensions of a conversation that is taken back.

use goondan::conversation::MessageRef;
use goondan::event::ConversationRewound;
use goondan::name::TurnId;
use goondan::prelude::*;

use super::LogConfig;

/// Notes what it is told, and forgets what was noted in turns that are gone.
pub struct Noting {
    config: LogConfig,
    api: ExtensionApi,
}

/// What to note.
#[derive(Debug, Deserialize, JsonSchema)]
struct Note {
    text: String,
}

#[goondan::extension(name = "noting")]
impl Noting {
    #[init]
    fn new(config: LogConfig, api: ExtensionApi) -> Self {
        Self { config, api }
    }

    /// Notes a text.
    #[tool(effect = once)]
    async fn note(&self, ctx: &ToolContext<'_>, note: Note) -> Result<String> {
        self.config.log.write(format!("note {}", note.text));
        self.api.state().update(|notes: &mut Vec<(TurnId, String)>| notes.push((ctx.turn_id().clone(), note.text)))?;
        Ok("noted".to_owned())
    }

    #[on("conversation.rewound")]
    async fn forget(&self, event: &Event) -> Result<()> {
        let ConversationRewound { turns, .. } = event.payload()?;
        self.config.log.write(format!("{} gone", turns.len()));
        self.api.state().update(|notes: &mut Vec<(TurnId, String)>| notes.retain(|(turn, _)| !turns.contains(turn)))
    }
}

/// Replaces all messages before the input by one, if the input asks for it.
pub struct Summing;

#[goondan::extension(name = "summing")]
impl Summing {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn shorten(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let messages: Vec<_> = ctx.conversation().iter().collect();
        let Some((input, old)) = messages.split_last() else { return next.run(ctx).await };
        let events: Vec<_> = match &*input.text() {
            "sum at the end" => {
                let summary = Message::system("a summary").standing_for(old.iter().copied());
                let removals = old.iter().map(|message| MessageEvent::remove(message.to_id()));
                removals.chain([MessageEvent::append(summary)]).collect()
            }
            "replace" => {
                let replace = |message: &MessageRef<'_>| {
                    MessageEvent::replace(message.to_id(), Message::system(format!("was {}", message.text())))
                };
                old.iter().map(replace).collect()
            }
            _ => Vec::new(),
        };
        events.into_iter().for_each(|event| ctx.emit(event));
        next.run(ctx).await
    }
}
