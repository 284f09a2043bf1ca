//! Messages, and the events that change a conversation.
//!
//! A conversation is its *base*, the messages of all committed turns, plus the [`MessageEvent`]s of the running turn. A
//! middleware reads it through a [`ConversationView`] and changes it by emitting events:
//!
//! ```
//! use goondan::prelude::*;
//!
//! async fn trim(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
//!     if let Some(oldest) = ctx.conversation().iter().next().map(|message| message.to_id()) {
//!         ctx.emit(MessageEvent::remove(oldest));
//!     }
//!     next.run(ctx).await
//! }
//! ```

pub use goondan_core::{
    Applied, Content, Conversation, ConversationView, FilePart, Message, MessageData, MessageEvent, MessageRef,
    Messages, Part, ProviderData, ProviderPart, ReasoningPart, Role, Source, TextPart, Timestamp, ToolCallPart,
    ToolOutput, ToolResultPart,
};
