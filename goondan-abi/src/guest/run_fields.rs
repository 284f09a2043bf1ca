//! Owns the fields of a run that were asked for: copies of what the host has, which go back when they were changed.

use std::sync::OnceLock;

use goondan_core::host::{ConversationHost, MessageHost, RunHost};
use goondan_core::linkage::{WireScope, WireToolItem};
use goondan_core::{AgentsHost, MessageEvent, Result, ToolCallId, ToolCatalog, ToolItem, TurnInfo};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::run::Link;
use crate::future::{Imported, Nothing};

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
    scope: OnceLock<TurnInfo>,
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
    read: OnceLock<T>,
    /// What may have been changed.
    own: Option<T>,
}

impl<T> Default for Copy<T> {
    fn default() -> Self {
        Self { read: OnceLock::new(), own: None }
    }
}

impl<T> Copy<T> {
    fn get(&self, read: impl FnOnce() -> T) -> &T {
        match &self.own {
            Some(value) => value,
            None => self.read.get_or_init(read),
        }
    }

    fn get_mut(&mut self, read: impl FnOnce() -> T) -> &mut T {
        let value = self.own.take().or_else(|| self.read.take()).unwrap_or_else(read);
        self.own.insert(value)
    }
}

/// A field of the run.
///
/// # Panics
/// When the host does not keep to the contract. The panic stops at the border of the extension.
#[expect(clippy::panic, reason = "there is no value to go on with")]
fn read<T: DeserializeOwned>(link: Link, field: &str) -> T {
    let value = link.read(field).and_then(|json| json.parse());
    value.unwrap_or_else(|error| panic!("the host gave no `{field}`: {error}"))
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
        let Some(fields) = self.fields.take() else { return Ok(()) };
        if let Some(metadata) = fields.metadata.own {
            self.link.write("metadata", &serde_json::to_vec(&metadata)?)?;
        }
        if let Some(args) = fields.args.own {
            self.link.write("args", &serde_json::to_vec(&args)?)?;
        }
        if let Some(catalog) = fields.catalog.own {
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
        self.fields().scope.get_or_init(|| read::<WireScope<'_>>(self.link, "scope").into())
    }

    fn metadata(&self) -> &Map<String, Value> {
        self.fields().metadata.get(|| read(self.link, "metadata"))
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        let link = self.link;
        self.fields_mut().metadata.get_mut(|| read(link, "metadata"))
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
