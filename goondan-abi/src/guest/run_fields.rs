//! Owns the fields of a run that were asked for: copies of what the host has, which go back when they were changed.

use std::cell::Cell;
use std::sync::OnceLock;

use goondan_core::host::{ConversationHost, MessageHost, RunHost};
use goondan_core::linkage::{WireScope, WireToolItem};
use goondan_core::{AgentsHost, MessageEvent, Result, ToolCallId, ToolCatalog, ToolItem, TurnInfo};
use serde::de::DeserializeOwned;
use serde_json::de::StrRead;
use serde_json::{Map, Value};

use super::run::Link;
use crate::future::{Imported, Nothing};
use crate::map;

/// One run of a middleware.
pub(super) struct Run {
    pub(super) link: Link,
    /// The rest of the onion, while it runs.
    pub(super) next: Option<Imported<Nothing>>,
    /// Most layers ask for few fields, and many for none.
    fields: OnceLock<Box<Fields>>,
}

#[derive(Default)]
struct Fields {
    /// In a box, for it is large.
    scope: OnceLock<Box<TurnInfo>>,
    metadata: Copy<Map<String, Value>>,
    events: OnceLock<Vec<MessageEvent>>,
    index: OnceLock<u32>,
    catalog: Copy<ToolCatalog>,
    args: Copy<Map<String, Value>>,
    call: OnceLock<ToolCallId>,
    tool: OnceLock<String>,
}

/// A copy of a field that the host has.
struct Copy<T> {
    value: OnceLock<T>,
    /// Whether it may differ from what the host has.
    changed: bool,
}

impl<T> Default for Copy<T> {
    fn default() -> Self {
        Self { value: OnceLock::new(), changed: false }
    }
}

impl<T> Copy<T> {
    fn get(&self, read: impl FnOnce() -> T) -> &T {
        self.value.get_or_init(read)
    }

    #[expect(clippy::expect_used, reason = "`get_or_init` has just put it there")]
    fn get_mut(&mut self, read: impl FnOnce() -> T) -> &mut T {
        self.changed = true;
        self.value.get_or_init(read);
        self.value.get_mut().expect("it is there")
    }

    fn changed(self) -> Option<T> {
        if self.changed { self.value.into_inner() } else { None }
    }
}

thread_local! {
    /// The metadata that a layer of this library wrote last on this thread. The next layer will read much the same, and then
    /// needs no new room for it.
    static METADATA: Cell<Option<Map<String, Value>>> = const { Cell::new(None) };
}

/// A map whose JSON is longer is not kept.
const MOST_KEPT: usize = 1024;

/// A field of the run.
///
/// # Panics
/// When the host does not keep to the contract. The panic stops at the border of the extension.
#[expect(clippy::panic, reason = "there is no value to go on with")]
fn read<T: DeserializeOwned>(link: Link, field: &str) -> T {
    let value = link.read(field).and_then(|json| json.parse());
    value.unwrap_or_else(|error| panic!("the host gave no `{field}`: {error}"))
}

/// The metadata.
///
/// # Panics
/// As [`read`].
#[expect(clippy::panic, reason = "there is no value to go on with")]
fn read_metadata(link: Link) -> Map<String, Value> {
    // A thread that ends keeps none.
    let mut metadata = METADATA.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let read = link.read("metadata").and_then(|json| {
        // SAFETY: The contract makes text of the host UTF-8.
        map::replace(&mut metadata, StrRead::new(unsafe { json.lent() }))
    });
    read.unwrap_or_else(|error| panic!("the host gave no `metadata`: {error}"));
    metadata
}

fn read_catalog(link: Link) -> ToolCatalog {
    read::<Vec<WireToolItem<'_>>>(link, "toolCatalog").into_iter().map(ToolItem::from).collect()
}

impl Run {
    pub(super) fn new(link: Link) -> Self {
        Self { link, next: None, fields: OnceLock::new() }
    }

    /// Writes what was changed to the host, and forgets all: it may be another when `next` has run.
    pub(super) fn hand_over(&mut self) -> Result<()> {
        if self.fields.get_mut().is_none() {
            return Ok(());
        }
        let Some(fields) = self.fields.take() else { return Ok(()) };
        if let Some(metadata) = fields.metadata.changed() {
            let json = serde_json::to_vec(&metadata)?;
            self.link.write("metadata", &json)?;
            if json.len() <= MOST_KEPT {
                _ = METADATA.try_with(|kept| kept.set(Some(metadata)));
            }
        }
        if let Some(args) = fields.args.changed() {
            self.link.write("args", &serde_json::to_vec(&args)?)?;
        }
        if let Some(catalog) = fields.catalog.changed() {
            let items: Vec<_> = catalog.iter().map(WireToolItem::from).collect();
            self.link.write("toolCatalog", &serde_json::to_vec(&items)?)?;
        }
        Ok(())
    }

    pub(super) fn events(&self) -> &[MessageEvent] {
        self.fields().events.get_or_init(|| read(self.link, "events"))
    }

    fn fields(&self) -> &Fields {
        self.fields.get_or_init(Box::default)
    }

    #[expect(clippy::expect_used, reason = "`fields` has just put it there")]
    fn fields_mut(&mut self) -> &mut Fields {
        self.fields();
        self.fields.get_mut().expect("it is there")
    }

    pub(super) fn index(&self) -> u32 {
        *self.fields().index.get_or_init(|| read(self.link, "stepIndex"))
    }

    pub(super) fn catalog(&self) -> &ToolCatalog {
        self.fields().catalog.get(|| read_catalog(self.link))
    }

    pub(super) fn catalog_mut(&mut self) -> &mut ToolCatalog {
        let link = self.link;
        self.fields_mut().catalog.get_mut(|| read_catalog(link))
    }

    pub(super) fn tool_call(&self) -> &ToolCallId {
        self.fields().call.get_or_init(|| read(self.link, "callId"))
    }

    pub(super) fn tool(&self) -> &str {
        self.fields().tool.get_or_init(|| read(self.link, "toolName"))
    }

    pub(super) fn arguments(&self) -> &Map<String, Value> {
        self.fields().args.get(|| read(self.link, "args"))
    }

    pub(super) fn arguments_mut(&mut self) -> &mut Map<String, Value> {
        let link = self.link;
        self.fields_mut().args.get_mut(|| read(link, "args"))
    }
}

impl Drop for Run {
    /// At the end of the run, and when it is cancelled: what the layer changed until then stays changed.
    fn drop(&mut self) {
        if let Err(error) = self.hand_over() {
            tracing::error!("what a middleware changed was lost: {error}");
        }
    }
}

impl RunHost for Run {
    fn scope(&self) -> &TurnInfo {
        self.fields().scope.get_or_init(|| Box::new(read::<WireScope<'_>>(self.link, "scope").into()))
    }

    fn metadata(&self) -> &Map<String, Value> {
        self.fields().metadata.get(|| read_metadata(self.link))
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        let link = self.link;
        self.fields_mut().metadata.get_mut(|| read_metadata(link))
    }
}

impl MessageHost for Run {
    fn conversation(&self) -> &dyn ConversationHost {
        self
    }

    fn agents(&self) -> &dyn AgentsHost {
        &self.link
    }

    fn emit(&mut self, event: MessageEvent) {
        if let Some(fields) = self.fields.get_mut() {
            fields.events.take();
        }
        if let Err(error) = self.link.emit(&event) {
            tracing::error!("a message event was lost: {error}");
        }
    }
}
