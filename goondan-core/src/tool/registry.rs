//! The registry: all tools of an instance, with their handlers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Effect, ToolCatalog, ToolHandler, ToolItem, ToolSource};
use crate::error::Result;
use crate::log::LogHost;
use crate::name::{ExtensionName, ToolName};
use crate::schema::{Schema, SchemaCache, check_input};

/// All tools of an instance, by name. Filled while the extensions register; each step starts with a copy of its
/// catalog.
#[derive(Default)]
pub(crate) struct ToolRegistry {
    catalog: ToolCatalog,
    tools: HashMap<ToolName, Tool>,
}

/// The handler of a tool, and what checks, limits and logs its calls.
pub(crate) struct Tool {
    pub(crate) handler: Arc<dyn ToolHandler>,
    pub(crate) schema: Option<Arc<Schema>>,
    pub(crate) effect: Effect,
    pub(crate) timeout: Option<std::time::Duration>,
    pub(crate) log: Arc<dyn LogHost>,
    pub(crate) extension: ExtensionName,
}

/// The parts of tools that the instances of an agent share: each item is stored once, and its schema is compiled once.
#[derive(Default)]
pub(crate) struct SharedTools {
    items: Mutex<HashMap<ToolName, Vec<Arc<ToolItem>>>>,
    schemas: SchemaCache,
}

/// How many different items of one name are stored. The limit bounds the memory for an extension that describes its
/// tool differently in each instance, for which sharing saves nothing.
const VARIANTS: usize = 8;

impl SharedTools {
    /// Interns an item that `extension` registers: returns an equal one that another instance has registered, if any.
    pub(crate) fn intern(&self, mut item: Arc<ToolItem>, extension: &ExtensionName) -> Arc<ToolItem> {
        if item.source.is_none() {
            Arc::make_mut(&mut item).source = Some(ToolSource::Extension { name: extension.to_string() });
        }
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let known = items.entry(item.name.clone()).or_default();
        if let Some(known) = known.iter().find(|known| **known == item) {
            return Arc::clone(known);
        }
        if known.len() < VARIANTS {
            known.push(Arc::clone(&item));
        }
        item
    }
}

impl ToolRegistry {
    /// TOOL-03: adds a tool; replaces one with the same name, if any, and returns the extension that registered that
    /// one.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when the parameters are not a JSON Schema, or no object can fit it.
    pub(crate) fn insert(
        &mut self,
        item: Arc<ToolItem>,
        handler: Arc<dyn ToolHandler>,
        extension: ExtensionName,
        log: Arc<dyn LogHost>,
        shared: &SharedTools,
    ) -> Result<Option<ExtensionName>> {
        let compile = |schema| check_input(item.name.as_str(), schema).and_then(|()| shared.schemas.compile(schema));
        let schema = item.parameters.as_ref().map(compile).transpose()?;
        let tool = Tool { handler, schema, effect: item.effect, timeout: item.timeout, log, extension };
        let replaced = self.tools.insert(item.name.clone(), tool);
        self.catalog.insert_shared(item);
        Ok(replaced.map(|tool| tool.extension))
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
        self.tools.get_key_value(name)
    }
}
