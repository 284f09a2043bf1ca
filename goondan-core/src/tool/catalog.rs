//! Owns the catalog: the tools that one step shows the model.

#[cfg(feature = "runtime")]
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::name::ToolName;
#[cfg(feature = "runtime")]
use crate::secret::{self, mask_json, mask_text};

/// A tool as the model sees it (F-TOOL).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolItem {
    /// The full name.
    pub name: ToolName,
    /// What the tool does, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments; none means that any object will do (LEGACY-TOOLDEF-01).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// What a call does to the world; a model is not told.
    #[serde(skip)]
    pub effect: Effect,
    /// How long a call may take; the agent's policy decides when this is `None`. A model is not told.
    #[serde(skip)]
    pub timeout: Option<Duration>,
    /// Where the tool comes from; a model is not told.
    #[serde(skip)]
    pub source: Option<ToolSource>,
}

/// What a tool call does to the world (EFFECT-01).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Nothing: it may run beside other such calls (D-06), and again.
    Read,
    /// Something that is the same when done twice: it may run again after a crash.
    Idempotent,
    /// Something that must not happen twice.
    #[default]
    Once,
}

/// Where a tool comes from (F-TOOL).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum ToolSource {
    /// An extension registered it.
    Extension {
        /// The extension.
        name: String,
    },
    /// An MCP server offers it, and an extension brought it in.
    Mcp {
        /// The tool's name at the server.
        name: String,
        /// The extension that brought it in.
        extension_name: String,
        /// The server's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        server_name: Option<String>,
    },
}

impl ToolItem {
    /// The same without secrets, for records.
    #[cfg(feature = "runtime")]
    pub(crate) fn masked(&self) -> Cow<'_, Self> {
        if !secret::any() {
            return Cow::Borrowed(self);
        }
        let mut tool = self.clone();
        tool.description.as_mut().into_iter().for_each(mask_text);
        tool.parameters.as_mut().into_iter().for_each(mask_json);
        Cow::Owned(tool)
    }

    /// A tool without description and parameters.
    ///
    /// # Errors
    /// `E_TOOL_NAME` when `name` is not a legal tool name (TOOL-01).
    pub fn new(name: &str) -> crate::Result<Self> {
        Ok(Self {
            name: ToolName::new(name)?,
            description: None,
            parameters: None,
            effect: Effect::default(),
            timeout: None,
            source: None,
        })
    }

    /// Adds what the tool does, for the model.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds the JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(mut self, schema: impl Into<Value>) -> Self {
        self.parameters = Some(schema.into());
        self
    }

    /// Says what a call does to the world; [`Effect::Once`] unless said otherwise.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Says how long a call may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Says where the tool comes from.
    #[must_use]
    pub fn source(mut self, source: ToolSource) -> Self {
        self.source = Some(source);
        self
    }
}

/// The tools of one step, in the order in which they were registered. Changing it changes this step alone.
#[derive(Clone, Debug, Default)]
pub struct ToolCatalog {
    /// Shared with the registry until someone changes it.
    items: Arc<Vec<Arc<ToolItem>>>,
}

impl ToolCatalog {
    /// The tools.
    pub fn iter(&self) -> impl Iterator<Item = &ToolItem> {
        self.items.iter().map(|item| &**item)
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The tool called `name`.
    pub fn get(&self, name: &str) -> Option<&ToolItem> {
        self.iter().find(|item| item.name == *name)
    }

    /// The tool called `name`, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut ToolItem> {
        let item = Arc::make_mut(&mut self.items).iter_mut().find(|item| item.name == *name)?;
        Some(Arc::make_mut(item))
    }

    /// Adds a tool, in the place of one with the same name if there is one.
    pub fn insert(&mut self, item: ToolItem) {
        self.insert_shared(Arc::new(item));
    }

    /// Adds a tool that others keep, too.
    pub(crate) fn insert_shared(&mut self, item: Arc<ToolItem>) {
        let items = Arc::make_mut(&mut self.items);
        match items.iter_mut().find(|present| present.name == item.name) {
            Some(present) => *present = item,
            None => items.push(item),
        }
    }

    /// Keeps the tools for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&ToolItem) -> bool) {
        Arc::make_mut(&mut self.items).retain(|item| keep(item));
    }
}

impl FromIterator<ToolItem> for ToolCatalog {
    fn from_iter<I: IntoIterator<Item = ToolItem>>(items: I) -> Self {
        let mut catalog = Self::default();
        items.into_iter().for_each(|item| catalog.insert(item));
        catalog
    }
}
