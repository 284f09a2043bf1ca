//! Answers that middlewares have prepared, which are taken instead of asking a model or running a handler.
// PREP-01, D-26

use goondan_core::host::ConversationExt;
use goondan_core::host::directive::AnswerWith;
use goondan_core::{Conversation, Error, ErrorCode, ExtensionName, MiddlewareKind, Part, Result, ToolReply};

use super::directed::{Directed, at_layer};

/// The metadata key of a message whose content an extension has prepared.
pub(super) const PREPARED_BY: &str = "preparedBy";

/// An answer, and the extension that has prepared it.
struct Prepared<T> {
    answer: T,
    by: ExtensionName,
}

/// The answer of a step, if one was prepared.
#[derive(Default)]
pub(super) struct PreparedAnswer(Option<Box<Prepared<Vec<Part>>>>);

impl Directed<AnswerWith> for PreparedAnswer {
    fn take(&mut self, AnswerWith(content): AnswerWith, by: &ExtensionName, conversation: &Conversation) -> Result<()> {
        conversation.check_brought(&content)?;
        let answer = content.into_parts();
        self.0 = Some(Box::new(Prepared { answer, by: by.clone() }));
        Ok(())
    }
}

impl PreparedAnswer {
    /// Returns whether an answer was prepared and is not used yet.
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the content of the answer, and the extension that has prepared it.
    ///
    /// # Errors
    /// When a model could not have given it.
    #[cold]
    pub(super) fn use_up(&mut self) -> Result<Option<(Vec<Part>, ExtensionName)>> {
        let Some(Prepared { answer, by }) = self.0.take().map(|prepared| *prepared) else { return Ok(None) };
        match answer.iter().any(|part| matches!(part, Part::ToolResult(_))) {
            true => Err(unusable("it has the result of a tool call", &by)),
            false => Ok(Some((answer, by))),
        }
    }
}

/// Returns the error for a prepared answer that cannot be used.
#[cold]
pub(super) fn unusable(problem: &str, by: &ExtensionName) -> Error {
    let error = Error::new(ErrorCode::EXT_ANSWER, format!("the prepared answer cannot be used: {problem}"))
        .suggest("prepare text, a file, or tool calls whose arguments are objects");
    at_layer(error, by, MiddlewareKind::Step)
}

/// The reply of a tool call, if one was prepared.
#[derive(Default)]
pub(super) struct PreparedReply {
    reply: Option<Box<Prepared<ToolReply>>>,
    /// The extension whose reply was used.
    used: Option<ExtensionName>,
}

impl PreparedReply {
    /// Replaces the reply by one of the extension `by`.
    #[cold]
    pub(super) fn set(&mut self, reply: ToolReply, by: &ExtensionName) {
        self.reply = Some(Box::new(Prepared { answer: reply, by: by.clone() }));
    }

    /// Returns the reply, if one was prepared.
    pub(super) fn use_up(&mut self) -> Option<ToolReply> {
        let Prepared { answer, by } = *self.reply.take()?;
        self.used = Some(by);
        Some(answer)
    }

    /// Returns the extension whose reply was used.
    pub(super) fn take_user(&mut self) -> Option<ExtensionName> {
        self.used.take()
    }
}
