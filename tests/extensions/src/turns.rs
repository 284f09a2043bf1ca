//! An extension that reads which turns made the messages of a conversation, and tries to say so itself.

use goondan::json;
use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Logs the turn of each message. Changes the first, replaces the second by another, and appends one; all three say
/// that they are of another turn.
pub struct Dating {
    log: Log,
}

#[goondan::extension(name = "dating")]
impl Dating {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn date(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let forged = |message: Message| {
            let mut forged = json!(message);
            forged["turn"] = json!("another");
            serde_json::from_value::<Message>(forged)
        };
        ctx.emit(MessageEvent::append(forged(Message::user("forged"))?));
        let mut oldest = ctx.conversation().iter().map(|message| message.to_message());
        if let (Some(first), Some(second)) = (oldest.next(), oldest.next()) {
            ctx.emit(MessageEvent::replace(first.id().clone(), forged(first)?));
            ctx.emit(MessageEvent::replace(second.id().clone(), forged(Message::user("another"))?));
        }
        for message in ctx.conversation().iter() {
            let same = message.to_message().turn().cloned() == message.turn();
            self.log.write(json!([message.text(), message.turn(), same]).to_string());
        }
        next.run(ctx).await
    }
}
