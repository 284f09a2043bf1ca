//! Owns the registry: all tools that an agent can run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Effect, ToolCatalog, ToolHandler, ToolItem, ToolSource};
use crate::error::Result;
use crate::log::LogHost;
use crate::name::{ExtensionName, ToolName};
use crate::schema::{Schema, SchemaCache};

/// All tools of an instance, by name.
#[derive(Default)]
pub(crate) struct ToolRegistry {
    catalog: ToolCatalog,
    tools: HashMap<ToolName, Tool>,
}

/// Who answers the calls of a tool, and what they must look like.
pub(crate) struct Tool {
    pub(crate) handler: Arc<dyn ToolHandler>,
    pub(crate) schema: Option<Arc<Schema>>,
    pub(crate) effect: Effect,
    pub(crate) timeout: Option<std::time::Duration>,
    pub(crate) log: Arc<dyn LogHost>,
    extension: ExtensionName,
}

/// What the instances of an agent have in common of their tools: each item is kept once, and its schema is compiled once.
#[derive(Default)]
pub(crate) struct SharedTools {
    items: Mutex<HashMap<ToolName, Vec<Arc<ToolItem>>>>,
    schemas: SchemaCache,
}

/// How many items of one name are kept: an extension that describes its tool in each instance otherwise gains nothing
/// from more.
const VARIANTS: usize = 8;

impl SharedTools {
    /// The item that `extension` registers as `item`; one that is equal, if an instance has it already.
    pub(crate) fn share(&self, mut item: Arc<ToolItem>, extension: &ExtensionName) -> Arc<ToolItem> {
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
    /// Adds a tool, in the place of one with the same name (TOOL-03), and tells whose that was.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when the parameters are not a JSON Schema.
    pub(crate) fn insert(
        &mut self,
        item: Arc<ToolItem>,
        handler: Arc<dyn ToolHandler>,
        extension: ExtensionName,
        log: Arc<dyn LogHost>,
        shared: &SharedTools,
    ) -> Result<Option<ExtensionName>> {
        let schema = item.parameters.as_ref().map(|schema| shared.schemas.compile(schema)).transpose()?;
        let tool = Tool { handler, schema, effect: item.effect, timeout: item.timeout, log, extension };
        let replaced = self.tools.insert(item.name.clone(), tool);
        self.catalog.insert_shared(item);
        Ok(replaced.map(|tool| tool.extension))
    }

    /// What a step shows the model unless a middleware changes it (TOOL-02).
    pub(crate) fn catalog(&self) -> ToolCatalog {
        self.catalog.clone()
    }

    pub(crate) fn get(&self, name: &str) -> Option<(&ToolName, &Tool)> {
        self.tools.get_key_value(name)
    }
}
