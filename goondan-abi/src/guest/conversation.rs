//! The conversation behind the context of a middleware or a tool: messages borrowed from the host, one at a time.

use std::sync::OnceLock;

use goondan_core::host::{ConversationHost, RemoteConversation, Snapshot};
use goondan_core::linkage::RemoteMessage;
use goondan_core::{MessageEvent, MessageRef, Result, Role};
use serde::Deserialize;
use serde_json::Value;

use super::call::CallRef;
use super::fields::read_with;
use super::host;
use crate::bytes::OwnedBuffer;
use crate::table::Message;

/// The conversation of a call.
pub(super) struct CallConversation {
    call: CallRef,
    /// The events of the turn, once they were read.
    events: OnceLock<Vec<MessageEvent>>,
}

impl CallConversation {
    pub(super) fn new(call: CallRef) -> Self {
        Self { call, events: OnceLock::new() }
    }

    /// Drops the copies that were read, because the conversation may change.
    #[inline]
    pub(super) fn forget(&mut self) {
        // Few layers read them.
        if self.events.get().is_some() {
            self.events.take();
        }
    }

    fn found(&self, snapshot: Snapshot, message: Option<Message>) -> Option<(MessageRef<'_>, Message)> {
        let message = message?;
        let role = match message.role {
            0 => Role::System,
            1 => Role::User,
            2 => Role::Assistant,
            3 => Role::Tool,
            _ => Role::Other,
        };
        // SAFETY: The contract makes the id UTF-8 and keeps it until the conversation changes, which needs
        // a mutable borrow of the run that owns `self`, or the call ends, which `self` does not outlive.
        let id = unsafe { message.id.str_unchecked() };
        // SAFETY: As above.
        let text = (message.plain == 1).then(|| unsafe { message.text.str_unchecked() });
        let found = RemoteMessage { host: self, snapshot, cursor: message.cursor, id, role, text };
        Some((MessageRef::from(found), message))
    }
}

impl ConversationHost for CallConversation {
    fn message_count(&self, snapshot: Snapshot) -> usize {
        self.call.message_count(snapshot)
    }

    fn message_from(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)> {
        let message = self.call.message(snapshot, cursor, host().run_message_from);
        self.found(snapshot, message).map(|(found, message)| (found, message.next))
    }

    fn message_before(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)> {
        let message = self.call.message(snapshot, cursor, host().run_message_before);
        self.found(snapshot, message).map(|(found, message)| (found, message.cursor))
    }

    fn message_events(&self) -> &[MessageEvent] {
        let read = |json: OwnedBuffer| {
            let events: Vec<Value> = json.parse()?;
            // Left out: events of kinds that this version does not know.
            Ok(events.into_iter().filter_map(|event| MessageEvent::deserialize(event).ok()).collect())
        };
        self.events.get_or_init(|| read_with(self.call, "events", read))
    }
}

impl RemoteConversation for CallConversation {
    fn text(&self, snapshot: Snapshot, cursor: usize) -> String {
        self.call.read_message(snapshot, cursor, "text").map_or_else(|_| String::new(), |text| text.text())
    }

    fn metadata(&self, snapshot: Snapshot, cursor: usize, key: &str) -> Result<Option<Value>> {
        self.call.message_metadata(snapshot, cursor, key)?.map(|json| json.parse()).transpose()
    }

    fn read(&self, snapshot: Snapshot, cursor: usize, field: &'static str) -> Result<Vec<u8>> {
        Ok(self.call.read_message(snapshot, cursor, field)?.bytes().to_vec())
    }
}
