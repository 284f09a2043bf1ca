//! The number of tokens of a model request, by estimate: without a tokenizer, which differs from model to model.

use std::sync::Arc;

use goondan_core::host::{ConversationExt, Projection, message_tokens, tokens_of};
use goondan_core::{Conversation, Message, MessageId, TokenUsage, ToolCatalog};

/// The last count of a provider.
#[derive(Default)]
pub(crate) struct TokenEstimate {
    measured: Option<Measured>,
}

struct Measured {
    prompt_tokens: u64,
    /// The newest message of the request that was counted.
    newest: MessageId,
}

impl TokenEstimate {
    /// Takes in the provider's count of a request with all messages of `conversation`.
    pub(super) fn measured(&mut self, usage: TokenUsage, conversation: &Conversation) {
        self.measured = conversation
            .newest()
            .filter(|_| usage.prompt_tokens > 0)
            .map(|newest| Measured { prompt_tokens: usage.prompt_tokens, newest: newest.id().clone() });
    }

    /// Forgets the count: a message that was counted has changed or is gone.
    pub(super) fn forget(&mut self) {
        self.measured = None;
    }

    /// Returns the tokens of a request with the edits of `projection`.
    pub(super) fn projected_tokens(
        &self,
        system: Option<&str>,
        conversation: &Conversation,
        tools: &ToolCatalog,
        projection: &Projection,
    ) -> u64 {
        let sum = |tokens: u64, message: &Arc<Message>| tokens + message_tokens(message);
        let left_out = projection.left_out(conversation).fold(0, sum);
        projection.added().fold(self.tokens(system, conversation, tools).saturating_sub(left_out), sum)
    }

    /// Returns the tokens of a request.
    pub(super) fn tokens(&self, system: Option<&str>, conversation: &Conversation, tools: &ToolCatalog) -> u64 {
        if let Some(measured) = &self.measured {
            let added = conversation.newest_first().take_while(|message| *message.id() != measured.newest);
            return measured.prompt_tokens + added.map(|message| message_tokens(message)).sum::<u64>();
        }
        let tools = tools.iter().map(|tool| {
            let schema = tool.parameters.as_ref().map_or(0, |schema| schema.to_string().len());
            tokens_of(tool.name.as_str().len() + tool.description.as_deref().map_or(0, str::len) + schema)
        });
        let messages = conversation.messages().map(|message| message_tokens(message));
        tokens_of(system.map_or(0, str::len)) + tools.chain(messages).sum::<u64>()
    }
}
