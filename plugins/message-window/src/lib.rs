//! Keeps the newest messages of a conversation and removes the older ones.
// PATTERN-WINDOW

use std::num::NonZeroUsize;

use goondan::prelude::*;

/// The config of the extension.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The largest number of messages with which a turn starts, its input included.
    pub max_messages: NonZeroUsize,
}

impl Default for Config {
    fn default() -> Self {
        const DEFAULT: NonZeroUsize = NonZeroUsize::new(40).unwrap();
        Self { max_messages: DEFAULT }
    }
}

/// The extension.
#[derive(Debug)]
pub struct MessageWindow {
    max_messages: usize,
}

/// Keeps the newest messages of a conversation.
#[goondan::extension(name = "message-window")]
impl MessageWindow {
    #[init]
    fn new(config: Config) -> Self {
        Self { max_messages: config.max_messages.get() }
    }

    #[middleware(turn)]
    async fn trim(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let excess = ctx.conversation().len().saturating_sub(self.max_messages);
        if excess > 0 {
            // A tool result is removed with its call, because it means nothing without it.
            let messages = ctx.conversation().iter().enumerate();
            let oldest = messages.take_while(|(index, message)| *index < excess || message.role() == Role::Tool);
            let ids: Vec<_> = oldest.map(|(_, message)| message.to_id()).collect();
            for id in ids {
                ctx.emit(MessageEvent::remove(id));
            }
        }
        next.run(ctx).await
    }
}
