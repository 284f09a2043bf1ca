//! Owns the registry: all tools that an agent can run.

use std::collections::HashMap;
use std::sync::Arc;

use super::{ToolCatalog, ToolHandler, ToolItem};
use crate::error::Result;
use crate::name::ToolName;
use crate::schema::Schema;

/// All tools of an agent, by name.
#[derive(Default)]
pub struct ToolRegistry {
    catalog: ToolCatalog,
    tools: HashMap<ToolName, Tool>,
}

/// Who answers the calls of a tool, and what they must look like.
pub(crate) struct Tool {
    pub(crate) handler: Arc<dyn ToolHandler>,
    pub(crate) schema: Option<Schema>,
}

impl ToolRegistry {
    /// Adds a tool, in the place of one with the same name (TOOL-03).
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when the parameters are not a JSON Schema.
    pub fn insert(&mut self, item: ToolItem, handler: Arc<dyn ToolHandler>) -> Result<()> {
        let schema = item.parameters.as_ref().map(Schema::compile).transpose()?;
        self.tools.insert(item.name.clone(), Tool { handler, schema });
        self.catalog.insert(item);
        Ok(())
    }

    /// What a step shows the model unless a middleware changes it (TOOL-02).
    pub fn catalog(&self) -> ToolCatalog {
        self.catalog.clone()
    }

    pub(crate) fn get(&self, name: &str) -> Option<(&ToolName, &Tool)> {
        self.tools.get_key_value(name)
    }
}
