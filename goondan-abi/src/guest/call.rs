//! A call of the host, as the functions `run_…` take it.

use std::ffi::c_void;

use goondan_core::host::Snapshot;
use goondan_core::{MessageEvent, Result};

use super::{host, missing};
use crate::bytes::{OwnedBuffer, ask};
use crate::future::{Imported, NoScope};
use crate::table::{self, BASE, Message, NOW, Text};

/// The pointer by which the host knows one call of this library. It is valid until the future of that call is
/// dropped.
#[derive(Clone, Copy)]
pub(super) struct CallRef(*const c_void);

// SAFETY: The contract allows calling the functions of the host with it from any thread.
unsafe impl Send for CallRef {}
// SAFETY: As above. The contract also allows concurrent calls, except of functions that change the run, which
// `MiddlewareRun` calls only with `&mut self`.
unsafe impl Sync for CallRef {}

impl CallRef {
    /// # Safety
    /// `call` must be valid for as long as this, its copies, and all that is borrowed through them are used.
    pub(super) unsafe fn new(call: *const c_void) -> Self {
        Self(call)
    }

    pub(super) fn raw(self) -> *const c_void {
        self.0
    }

    /// Returns the JSON of a field.
    pub(super) fn read(self, field: &str) -> Result<OwnedBuffer> {
        // SAFETY: By the contract of `new`, the call is valid; the name is borrowed for this function.
        let read = ask(|output| unsafe { (host().run_read)(self.0, Text::new(field.as_bytes()), output) });
        read?.ok_or_else(|| missing(field))
    }

    /// Replaces a field.
    pub(super) fn write(self, field: &str, json: &[u8]) -> Result<()> {
        let (field, json) = (Text::new(field.as_bytes()), Text::new(json));
        // SAFETY: By the contract of `new`, the call is valid; the texts are borrowed for this function.
        ask(|error| unsafe { (host().run_write)(self.0, field, json, error) }).map(|_| ())
    }

    pub(super) fn emit(self, event: &MessageEvent) -> Result<()> {
        if let MessageEvent::Remove { target_id } = event {
            let id = Text::new(target_id.as_str().as_bytes());
            // SAFETY: By the contract of `new`, the call is valid; the text is borrowed for this function.
            return ask(|error| unsafe { (host().run_message_remove)(self.0, id, error) }).map(|_| ());
        }
        let event = serde_json::to_vec(event)?;
        // SAFETY: By the contract of `new`, the call is valid; the text is borrowed for this function.
        ask(|error| unsafe { (host().run_emit)(self.0, Text::new(&event), error) }).map(|_| ())
    }

    /// Starts the rest of the chain.
    pub(super) fn next(self) -> Imported<NoScope> {
        // SAFETY: By the contract of `new`, the call is valid. `MiddlewareRun`, which stores the future, is dropped
        // before the future of the call ends.
        let next = unsafe { (host().run_next)(self.0) };
        // SAFETY: The host just returned the future, which has no other owner.
        unsafe { Imported::new(next, NoScope) }
    }

    pub(super) fn message_count(self, snapshot: Snapshot) -> usize {
        // SAFETY: By the contract of `new`, the call is valid.
        unsafe { (host().run_message_count)(self.0, number(snapshot)) }
    }

    /// Returns the message that `find` finds. Its texts are borrowed until the conversation changes or the call ends.
    pub(super) fn message(self, snapshot: Snapshot, cursor: usize, find: FindMessage) -> Option<Message> {
        let mut message = Message { cursor: 0, next: 0, id: Text::EMPTY, role: 0, plain: 0, text: Text::EMPTY };
        // SAFETY: By the contract of `new`, the call is valid; the output is writable.
        let status = unsafe { find(self.0, number(snapshot), cursor, &raw mut message) };
        (status == table::OK).then_some(message)
    }

    /// Returns a field of the message at `cursor`.
    pub(super) fn read_message(self, snapshot: Snapshot, cursor: usize, field: &str) -> Result<OwnedBuffer> {
        let (snapshot, field) = (number(snapshot), Text::new(field.as_bytes()));
        // SAFETY: By the contract of `new`, the call is valid; the name is borrowed for this function.
        let read = ask(|output| unsafe { (host().run_message_read)(self.0, snapshot, cursor, field, output) });
        read?.ok_or_else(|| missing("message"))
    }

    /// Returns the value that an extension added to the message at `cursor`, as JSON.
    pub(super) fn message_metadata(self, snapshot: Snapshot, cursor: usize, key: &str) -> Result<Option<OwnedBuffer>> {
        let (snapshot, key) = (number(snapshot), Text::new(key.as_bytes()));
        // SAFETY: By the contract of `new`, the call is valid; the key is borrowed for this function.
        ask(|output| unsafe { (host().run_message_metadata)(self.0, snapshot, cursor, key, output) })
    }

    /// Returns the revision of the catalog of a step.
    pub(super) fn tool_catalog_revision(self) -> u64 {
        // SAFETY: By the contract of `new`, the call is valid.
        unsafe { (host().run_tool_catalog_revision)(self.0) }
    }
}

/// `run_message_from` or `run_message_before`.
pub(super) type FindMessage = unsafe extern "C" fn(*const c_void, u32, usize, *mut Message) -> i32;

fn number(snapshot: Snapshot) -> u32 {
    match snapshot {
        Snapshot::Base => BASE,
        Snapshot::Current => NOW,
    }
}
