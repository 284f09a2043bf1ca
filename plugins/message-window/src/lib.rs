//! Keeps the newest messages of a conversation and removes the older ones, many at a time.
// PATTERN-WINDOW

use std::num::NonZeroUsize;

use goondan::prelude::*;

/// The config of the extension.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The largest number of messages with which a turn starts, its input included. If there are more, the newest half
    /// of that number stays, so that the requests of the turns after it begin as those before, as caches of providers
    /// want it.
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
        let len = ctx.conversation().len();
        if len > self.max_messages {
            // CACHE-01: a window that removes two messages in each turn would change the beginning of each request.
            let excess = len - self.max_messages.div_ceil(2);
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
