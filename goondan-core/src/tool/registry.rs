//! Owns the registry: all tools that an agent can run.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Effect, ToolCatalog, ToolHandler, ToolItem, ToolSource};
use crate::error::Result;
use crate::extension::LogHost;
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

impl ToolRegistry {
    /// Adds a tool, in the place of one with the same name (TOOL-03), and tells whose that was.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when the parameters are not a JSON Schema.
    pub(crate) fn insert(
        &mut self,
        mut item: ToolItem,
        handler: Arc<dyn ToolHandler>,
        extension: ExtensionName,
        log: Arc<dyn LogHost>,
        schemas: &SchemaCache,
    ) -> Result<Option<ExtensionName>> {
        let schema = item.parameters.as_ref().map(|schema| schemas.compile(schema)).transpose()?;
        item.source.get_or_insert_with(|| ToolSource::Extension { name: extension.to_string() });
        let tool = Tool { handler, schema, effect: item.effect, timeout: item.timeout, log, extension };
        let replaced = self.tools.insert(item.name.clone(), tool);
        self.catalog.insert(item);
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
