//! The edits that middlewares make to the request of one step. They end with the step.
// PROJ-01, D-27

use goondan_core::host::directive::Project;
use goondan_core::host::{ConversationExt, Projection};
use goondan_core::{Applied, Conversation, ErrorCode, ExtensionName, MessageEvent, MiddlewareKind, Result};

use super::directed::{Directed, at_layer};

/// The edits of one step, in the order in which they were made.
#[derive(Default)]
pub(super) struct Projected(Vec<Edit>);

/// An edit, and the extension that made it.
struct Edit {
    event: MessageEvent,
    /// `None` for an edit of the runtime.
    by: Option<ExtensionName>,
}

impl Directed<Project> for Projected {
    fn take(&mut self, Project(event): Project, by: &ExtensionName, conversation: &Conversation) -> Result<()> {
        conversation.check_emitted(&event)?;
        self.add(event, Some(by));
        Ok(())
    }
}

impl Projected {
    /// Adds an edit on behalf of an extension, or of the runtime.
    pub(super) fn add(&mut self, event: MessageEvent, by: Option<&ExtensionName>) {
        self.0.push(Edit { event, by: by.cloned() });
    }

    /// Returns the edits of extensions, each with the one that made it.
    pub(super) fn edits(&self) -> impl Iterator<Item = (&MessageEvent, &ExtensionName)> {
        self.0.iter().filter_map(|Edit { event, by }| Some((event, by.as_ref()?)))
    }

    /// Returns the conversation with the edits, if there are any. `warns` if a target is not there.
    ///
    /// # Errors
    /// `E_MESSAGE_DUPLICATE_ID` when an edit adds a message with the id of another one.
    #[inline]
    pub(super) fn of(&self, conversation: &Conversation, warns: bool) -> Result<Option<Box<Projection>>> {
        if self.0.is_empty() { Ok(None) } else { self.apply(conversation, warns).map(Some) }
    }

    #[cold]
    fn apply(&self, conversation: &Conversation, warns: bool) -> Result<Box<Projection>> {
        let mut projection = Box::<Projection>::default();
        for Edit { event, by } in &self.0 {
            let applied = projection.apply(conversation, event);
            // The runtime appends messages with ids of their own.
            let Some(by) = by else { continue };
            let applied = applied.map_err(|error| at_layer(error, by, MiddlewareKind::Step))?;
            if applied == Applied::TargetNotFound && warns {
                tracing::warn!(
                    code = %ErrorCode::MESSAGE_TARGET_NOT_FOUND,
                    extension = %by,
                    "an edit of the model's input aims at a message that is not there"
                );
            }
        }
        Ok(projection)
    }
}
