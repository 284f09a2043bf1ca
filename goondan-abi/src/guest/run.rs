//! One run of a middleware: the fields of its context, which are read from the host on demand and written back when
//! they were changed.

use std::cell::Cell;
use std::sync::OnceLock;

use goondan_core::host::{ConversationHost, MessageHost, RunHost};
use goondan_core::linkage::{WireScope, WireToolItem};
use goondan_core::{AgentsHost, MessageEvent, Result, ToolCallId, ToolCatalog, ToolItem, TurnInfo};
use serde::de::DeserializeOwned;
use serde_json::de::StrRead;
use serde_json::{Map, Value};

use super::call::CallRef;
use crate::future::{Imported, NoScope};
use crate::json_map;

/// The host behind the context of a middleware.
pub(super) struct MiddlewareRun {
    pub(super) call: CallRef,
    /// The rest of the chain, while it runs.
    pub(super) next: Option<Imported<NoScope>>,
    /// Created by the first read, because many layers read no field.
    fields: OnceLock<Box<Fields>>,
}

/// The fields that were read since the start of the run or the last call of `next`.
#[derive(Default)]
struct Fields {
    /// Boxed, because it is large and rarely read.
    scope: OnceLock<Box<TurnInfo>>,
    metadata: Cached<Map<String, Value>>,
    events: OnceLock<Vec<MessageEvent>>,
    index: OnceLock<u32>,
    catalog: Cached<ToolCatalog>,
    args: Cached<Map<String, Value>>,
    call_id: OnceLock<ToolCallId>,
    tool_name: OnceLock<String>,
}

/// A copy of a field that a middleware can change.
struct Cached<T> {
    value: OnceLock<T>,
    /// Whether the copy may differ from the field of the host.
    changed: bool,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self { value: OnceLock::new(), changed: false }
    }
}

impl<T> Cached<T> {
    fn get(&self, read: impl FnOnce() -> T) -> &T {
        self.value.get_or_init(read)
    }

    #[expect(clippy::expect_used, reason = "`get_or_init` has just stored the value")]
    fn get_mut(&mut self, read: impl FnOnce() -> T) -> &mut T {
        self.changed = true;
        self.value.get_or_init(read);
        self.value.get_mut().expect("it is there")
    }

    fn into_changed(self) -> Option<T> {
        if self.changed { self.value.into_inner() } else { None }
    }
}

thread_local! {
    /// The metadata that a layer of this library wrote last on this thread. The next layer usually reads the same
    /// entries, and then reuses the allocations.
    static METADATA: Cell<Option<Map<String, Value>>> = const { Cell::new(None) };
}

/// A map with more bytes of JSON is not kept in [`METADATA`].
const MAX_KEPT: usize = 1024;

/// Reads a field of the run.
///
/// # Panics
/// If the host breaks the contract. The panic is caught within the library and reported to the host.
#[expect(clippy::panic, reason = "the accessors of a context cannot return an error")]
fn read<T: DeserializeOwned>(call: CallRef, field: &str) -> T {
    let value = call.read(field).and_then(|json| json.parse());
    value.unwrap_or_else(|error| panic!("the host gave no `{field}`: {error}"))
}

/// Reads the metadata.
///
/// # Panics
/// As [`read`].
#[expect(clippy::panic, reason = "the accessors of a context cannot return an error")]
fn read_metadata(call: CallRef) -> Map<String, Value> {
    // A thread that is ending has no thread-locals any more.
    let mut metadata = METADATA.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let read = call.read("metadata").and_then(|json| {
        // SAFETY: The contract makes JSON of the host UTF-8.
        json_map::overwrite(&mut metadata, StrRead::new(unsafe { json.str_unchecked() }))
    });
    read.unwrap_or_else(|error| panic!("the host gave no `metadata`: {error}"));
    metadata
}

fn read_catalog(call: CallRef) -> ToolCatalog {
    read::<Vec<WireToolItem<'_>>>(call, "toolCatalog").into_iter().map(ToolItem::from).collect()
}

impl MiddlewareRun {
    pub(super) fn new(call: CallRef) -> Self {
        Self { call, next: None, fields: OnceLock::new() }
    }

    /// Writes the changed fields to the host and drops all copies, which `next` may make outdated.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.fields.get_mut().is_none() {
            return Ok(());
        }
        let Some(fields) = self.fields.take() else { return Ok(()) };
        if let Some(metadata) = fields.metadata.into_changed() {
            let json = serde_json::to_vec(&metadata)?;
            self.call.write("metadata", &json)?;
            if json.len() <= MAX_KEPT {
                _ = METADATA.try_with(|kept| kept.set(Some(metadata)));
            }
        }
        if let Some(args) = fields.args.into_changed() {
            self.call.write("args", &serde_json::to_vec(&args)?)?;
        }
        if let Some(catalog) = fields.catalog.into_changed() {
            let items: Vec<_> = catalog.iter().map(WireToolItem::from).collect();
            self.call.write("toolCatalog", &serde_json::to_vec(&items)?)?;
        }
        Ok(())
    }

    pub(super) fn events(&self) -> &[MessageEvent] {
        self.fields().events.get_or_init(|| read(self.call, "events"))
    }

    fn fields(&self) -> &Fields {
        self.fields.get_or_init(Box::default)
    }

    #[expect(clippy::expect_used, reason = "`fields` has just stored the value")]
    fn fields_mut(&mut self) -> &mut Fields {
        self.fields();
        self.fields.get_mut().expect("it is there")
    }

    pub(super) fn index(&self) -> u32 {
        *self.fields().index.get_or_init(|| read(self.call, "stepIndex"))
    }

    pub(super) fn catalog(&self) -> &ToolCatalog {
        self.fields().catalog.get(|| read_catalog(self.call))
    }

    pub(super) fn catalog_mut(&mut self) -> &mut ToolCatalog {
        let call = self.call;
        self.fields_mut().catalog.get_mut(|| read_catalog(call))
    }

    pub(super) fn tool_call(&self) -> &ToolCallId {
        self.fields().call_id.get_or_init(|| read(self.call, "callId"))
    }

    pub(super) fn tool(&self) -> &str {
        self.fields().tool_name.get_or_init(|| read(self.call, "toolName"))
    }

    pub(super) fn arguments(&self) -> &Map<String, Value> {
        self.fields().args.get(|| read(self.call, "args"))
    }

    pub(super) fn arguments_mut(&mut self) -> &mut Map<String, Value> {
        let call = self.call;
        self.fields_mut().args.get_mut(|| read(call, "args"))
    }
}

impl Drop for MiddlewareRun {
    /// Writes changes back when the run ends or is cancelled, so that they are kept in both cases.
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            tracing::error!("what a middleware changed was lost: {error}");
        }
    }
}

impl RunHost for MiddlewareRun {
    fn scope(&self) -> &TurnInfo {
        self.fields().scope.get_or_init(|| Box::new(read::<WireScope<'_>>(self.call, "scope").into()))
    }

    fn metadata(&self) -> &Map<String, Value> {
        self.fields().metadata.get(|| read_metadata(self.call))
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        let call = self.call;
        self.fields_mut().metadata.get_mut(|| read_metadata(call))
    }
}

impl MessageHost for MiddlewareRun {
    fn conversation(&self) -> &dyn ConversationHost {
        self
    }

    fn agents(&self) -> &dyn AgentsHost {
        &self.call
    }

    fn emit(&mut self, event: MessageEvent) {
        if let Some(fields) = self.fields.get_mut() {
            fields.events.take();
        }
        if let Err(error) = self.call.emit(&event) {
            tracing::error!("a message event was lost: {error}");
        }
    }
}
