//! The registry: all tools of an instance, with their handlers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use goondan_core::host::{IdMap, ToolCatalogExt};
use goondan_core::{Effect, ExtensionName, LogHost, Result, ToolCatalog, ToolHandler, ToolItem, ToolName, ToolSource};
use goondan_lock::Lock;

use crate::schema::{Schema, SchemaCache, check_input};

/// All tools of an instance, by name. Each step starts with a copy of its catalog.
#[derive(Clone, Default)]
pub(crate) struct ToolRegistry {
    catalog: ToolCatalog,
    tools: IdMap<ToolName, Arc<Tool>>,
}

/// The handler of a tool, and the parts that check, limit and log its calls.
pub(crate) struct Tool {
    pub(crate) handler: Arc<dyn ToolHandler>,
    pub(crate) schema: Option<Arc<Schema>>,
    pub(crate) effect: Effect,
    pub(crate) timeout: Option<std::time::Duration>,
    /// Whether the handler may ask a person.
    pub(crate) asks: bool,
    /// Whether calls may run beside others.
    // D-45
    pub(crate) parallel: bool,
    pub(crate) log: Arc<dyn LogHost>,
    pub(crate) extension: ExtensionName,
    pub(crate) presenter: PresenterState,
}

/// State of the presenter of a tool.
#[derive(Default)]
pub(crate) struct PresenterState {
    /// Whether it took too long, and is not called again.
    pub(crate) is_slow: AtomicBool,
    /// Whether the log has its failure.
    pub(crate) has_failed: AtomicBool,
}

/// The parts of tools that the instances of an agent share: each item is stored once, and its schema is compiled once.
#[derive(Default)]
pub(crate) struct SharedTools {
    items: Lock<HashMap<ToolName, Vec<Described>>>,
    schemas: SchemaCache,
    /// The tools whose arguments are not checked, which the log has named.
    unchecked: Lock<HashSet<ToolName>>,
}

/// The item of a tool, and the validator of the arguments of its calls.
#[derive(Clone)]
pub(crate) struct Described {
    pub(crate) item: Arc<ToolItem>,
    pub(crate) schema: Option<Arc<Schema>>,
}

/// The most different items of one name that are stored. The limit bounds the memory for an extension that describes
/// its tool differently in each instance, for which sharing saves nothing.
const VARIANTS: usize = 8;

impl SharedTools {
    /// Interns an item that `extension` registers: returns an equal one that another instance has registered, if any.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when the parameters are not a JSON Schema, or no object can fit it.
    pub(crate) fn describe(&self, mut item: Arc<ToolItem>, extension: &ExtensionName) -> Result<Described> {
        if item.source.is_none() {
            Arc::make_mut(&mut item).source = Some(ToolSource::Extension { name: extension.to_string() });
        }
        let equal = |known: &&Described| Arc::ptr_eq(&known.item, &item) || known.item == item;
        let mut items = self.items.lock();
        if let Some(known) = items.get(&item.name).and_then(|known| known.iter().find(equal)) {
            return Ok(known.clone());
        }
        let described = Described { schema: self.schema_of(&item)?, item };
        let known = items.entry(described.item.name.clone()).or_default();
        // An item that no instance has any more was replaced: an item that never changes is the only one of its name.
        known.retain(|known| Arc::strong_count(&known.item) > 1);
        if known.len() < VARIANTS {
            known.push(described.clone());
        }
        Ok(described)
    }

    /// Compiles the parameters. A lenient tool whose parameters cannot be compiled is logged once.
    fn schema_of(&self, item: &ToolItem) -> Result<Option<Arc<Schema>>> {
        let name = &item.name;
        let Some(parameters) = &item.parameters else { return Ok(None) };
        match check_input(name.as_str(), parameters).and_then(|()| self.schemas.compile(parameters)) {
            Ok(schema) => Ok(Some(schema)),
            Err(error) if item.lenient => {
                if self.unchecked.lock().insert(name.clone()) {
                    tracing::warn!(tool = %name, "the arguments of a tool are not checked: {}", error.message());
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl ToolRegistry {
    /// TOOL-03: adds a tool; replaces one with the same name, if any, and returns the extension that registered that
    /// one.
    pub(crate) fn insert(&mut self, item: Arc<ToolItem>, tool: Tool) -> Option<ExtensionName> {
        let replaced = self.tools.insert(item.name.clone(), Arc::new(tool));
        self.catalog.insert_shared(item);
        replaced.map(|tool| tool.extension.clone())
    }

    /// TOOL-02: returns the catalog that a step starts with.
    pub(crate) fn catalog(&self) -> ToolCatalog {
        self.catalog.clone()
    }

    /// Whether `catalog` is still the one that a step starts with.
    pub(crate) fn offers(&self, catalog: &ToolCatalog) -> bool {
        self.catalog.is_shared_with(catalog)
    }

    pub(crate) fn get(&self, name: &str) -> Option<(&ToolName, &Tool)> {
        self.tools.get_key_value(name).map(|(name, tool)| (name, &**tool))
    }
}
