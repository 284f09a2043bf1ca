//! The catalog: the tools that one step offers to the model.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::provided::ProviderTool;
use crate::depth;
use crate::name::ToolName;
use crate::secret::{self, mask_json, mask_text};

/// A tool that is offered to the model.
// F-TOOL
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolItem {
    /// The full name.
    pub name: ToolName,
    /// A description of the tool for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments; if `None`, any object is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// The side effects of a call; not sent to the model.
    #[serde(skip)]
    pub effect: Effect,
    /// The longest time of a call; defaults to the timeout of the agent's policy. Not sent to the model.
    #[serde(skip)]
    pub timeout: Option<Duration>,
    /// Whether the handler asks a person, by [`ToolReply::ask`](crate::ToolReply::ask); not sent to the model.
    // ASK-04
    #[serde(skip)]
    pub asks: bool,
    /// Whether calls run beside other calls of the same answer, as those of a tool that only reads do; not sent to the
    /// model.
    // D-45
    #[serde(skip)]
    pub parallel: bool,
    /// The origin of the tool; not sent to the model.
    #[serde(skip)]
    pub source: Option<ToolSource>,
    /// Whether arguments are not checked if the parameters cannot be compiled; not sent to the model.
    #[serde(skip)]
    pub lenient: bool,
    /// The tools of providers that it is for their models, at most one of an interface.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provider_tools: Vec<ProviderTool>,
    /// The members of the wire form that this version does not know, and the name of effects that it does not know.
    #[serde(skip)]
    pub(crate) unknown: Option<Box<Map<String, Value>>>,
}

/// The side effects of a tool call, which decide whether it may run again.
// EFFECT-01
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Effect {
    /// None: the call may run concurrently with other such calls, and again.
    // D-06
    Read,
    /// Running the call twice has the same effect as running it once: it may run again after a crash.
    Idempotent,
    /// The call must not run twice.
    #[default]
    Once,
    /// Effects that this version does not know. Such a call does not run twice.
    #[serde(other)]
    Other,
}

/// The origin of a tool.
// F-TOOL
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ToolSource {
    /// A tool of an extension.
    Extension {
        /// The extension's name.
        name: String,
    },
    /// A tool of an MCP server, registered by an extension.
    Mcp {
        /// The tool's name at the server.
        name: String,
        /// The name of the extension that registered it.
        extension_name: String,
        /// The server's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        server_name: Option<String>,
    },
    /// An origin that this version does not know.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl ToolItem {
    /// Returns the tool if its parameters are not nested too deeply, and drops it otherwise.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH` with the tool and the place in its parameters.
    pub(crate) fn checked(self) -> crate::Result<Self> {
        match self.check_depth() {
            Ok(()) => Ok(self),
            Err(error) => {
                depth::discard(self.into_values());
                Err(error)
            }
        }
    }

    /// Returns the JSON in the tool.
    fn into_values(self) -> impl Iterator<Item = Value> {
        let provided = self.provider_tools.into_iter().map(|tool| Value::Object(tool.members));
        self.parameters.into_iter().chain(provided)
    }

    fn check_depth(&self) -> crate::Result<()> {
        let parameters = self.parameters.as_ref().map(depth::check);
        let unknown = self.unknown.as_deref().map(depth::check_map);
        let provided = self.provider_tools.iter().map(|tool| depth::check_map(&tool.members));
        let checked = [parameters, unknown].into_iter().flatten().chain(provided);
        let Some(error) = checked.into_iter().find_map(Result::err) else { return Ok(()) };
        Err(error.refuse(format_args!("the schema of the tool `{}`", self.name)))
    }

    /// Returns a tool without description and parameters.
    ///
    /// # Errors
    /// `E_TOOL_NAME` when `name` is not a legal tool name.
    pub fn new(name: &str) -> crate::Result<Self> {
        Ok(Self {
            name: ToolName::new(name)?,
            description: None,
            parameters: None,
            effect: Effect::default(),
            timeout: None,
            asks: false,
            parallel: false,
            source: None,
            lenient: false,
            provider_tools: Vec::new(),
            unknown: None,
        })
    }

    /// Sets the provider's tool that this tool is, and replaces one of the same interface. Models over that
    /// interface are offered it as such, and their calls of it are calls of this tool: its parameters must take the
    /// arguments that the provider documents.
    ///
    /// ```
    /// use goondan::tool::{ProviderTool, ToolItem};
    ///
    /// let bash = ProviderTool::anthropic("bash_20250124", "bash");
    /// let item = ToolItem::new("terminal__run")?.provider_tool(bash);
    /// assert_eq!(item.provider_tool_of("anthropic").map(|tool| &*tool.name), Some("bash"));
    /// # Ok::<(), goondan::Error>(())
    /// ```
    #[must_use]
    pub fn provider_tool(mut self, tool: ProviderTool) -> Self {
        self.provider_tools.retain(|known| known.api != tool.api);
        self.provider_tools.push(tool);
        self
    }

    /// Returns the tool of a provider that this tool is for models over an interface.
    pub fn provider_tool_of(&self, api: &str) -> Option<&ProviderTool> {
        self.provider_tools.iter().find(|tool| tool.api == api)
    }

    /// Sets the description for the model.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(mut self, schema: impl Into<Value>) -> Self {
        self.parameters = Some(schema.into());
        self
    }

    /// Sets the side effects of a call; the default is [`Effect::Once`].
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets how long a call may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Says that the handler asks a person.
    #[must_use]
    pub fn asks(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Lets calls run beside other calls of the same answer: see [`ToolItem::parallel`](Self#structfield.parallel).
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.parallel = true;
        self
    }

    /// Accepts parameters that cannot be compiled, for schemas of others: the model reads them as they are, the
    /// arguments are not checked here, and the log says so once. Without this, registering such a tool fails.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Sets the origin of the tool.
    #[must_use]
    pub fn source(mut self, source: ToolSource) -> Self {
        self.source = Some(source);
        self
    }
}

/// The tools that one step offers to the model, in registration order. A change affects this step only.
#[derive(Clone, Debug, Default)]
pub struct ToolCatalog {
    /// Shared with the registry until it is changed (copy on write).
    tools: Arc<Tools>,
}

#[derive(Debug, Default)]
struct Tools {
    list: Vec<Arc<ToolItem>>,
    /// A number that no other list of this process has, once it was asked for.
    revision: OnceLock<u64>,
}

impl Clone for Tools {
    /// Returns a copy to change.
    fn clone(&self) -> Self {
        Self { list: self.list.clone(), revision: OnceLock::new() }
    }
}

impl ToolCatalog {
    /// Iterates over the tools.
    pub fn iter(&self) -> impl Iterator<Item = &ToolItem> {
        self.tools.list.iter().map(|item| &**item)
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.tools.list.len()
    }

    /// Returns whether the catalog has no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.list.is_empty()
    }

    /// Returns the tool called `name`, if any.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&ToolItem> {
        self.iter().find(|item| item.name == *name)
    }

    /// Returns the tool called `name`, if any, to change it for this step.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut ToolItem> {
        let item = self.list_mut().iter_mut().find(|item| item.name == *name)?;
        Some(Arc::make_mut(item))
    }

    /// Adds a tool; replaces one with the same name, if any.
    pub fn insert(&mut self, item: ToolItem) {
        self.insert_shared(Arc::new(item));
    }

    /// Returns a number that is the same as long as the catalog, or one that was cloned from it, is not changed.
    #[doc(hidden)]
    pub fn revision(&self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        *self.tools.revision.get_or_init(|| LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the tools to change them.
    fn list_mut(&mut self) -> &mut Vec<Arc<ToolItem>> {
        let tools = Arc::make_mut(&mut self.tools);
        tools.revision.take();
        &mut tools.list
    }

    /// Checks the parameters of all tools.
    ///
    /// # Errors
    /// As [`ToolCatalog::checked`].
    pub(crate) fn check_depth(&self) -> crate::Result<()> {
        self.iter().try_for_each(ToolItem::check_depth)
    }

    fn shared_beside<'a>(&'a self, registered: &'a Self) -> impl Iterator<Item = &'a Arc<ToolItem>> {
        let own = |item: &'a Arc<ToolItem>| self.tools.list.iter().find(|own| own.name == item.name).unwrap_or(item);
        let others = self.tools.list.iter().filter(|item| registered.get(item.name.as_str()).is_none());
        registered.tools.list.iter().map(own).chain(others)
    }

    /// Removes the tools for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&ToolItem) -> bool) {
        self.list_mut().retain(|item| keep(item));
    }
}

impl FromIterator<ToolItem> for ToolCatalog {
    fn from_iter<I: IntoIterator<Item = ToolItem>>(items: I) -> Self {
        let mut catalog = Self::default();
        items.into_iter().for_each(|item| catalog.insert(item));
        catalog
    }
}

/// The members of a [`ToolCatalog`] for the runtime.
pub trait ToolCatalogExt: Sized {
    /// Adds a tool that other instances share.
    fn insert_shared(&mut self, item: Arc<ToolItem>);
    /// Whether neither this catalog nor `other` was changed since one was cloned from the other.
    fn is_shared_with(&self, other: &Self) -> bool;
    /// Iterates over the tools of `registered`, those that are also here as they are here, and then over the others
    /// that are here. Tools that layers take out and put back keep their places.
    // CACHE-01
    fn beside<'a>(&'a self, registered: &'a Self) -> impl Iterator<Item = &'a ToolItem>;
    /// Returns the catalog of the tools that [`beside`](Self::beside) returns.
    #[must_use]
    fn merged_into(&self, registered: &Self) -> Self;
    /// Returns the catalog if the parameters of no tool are nested too deeply, and drops it otherwise.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH` with the tool and the place in its parameters.
    fn checked(self) -> crate::Result<Self>;
}

impl ToolCatalogExt for ToolCatalog {
    fn insert_shared(&mut self, item: Arc<ToolItem>) {
        let items = self.list_mut();
        match items.iter_mut().find(|present| present.name == item.name) {
            Some(present) => *present = item,
            None => items.push(item),
        }
    }

    #[inline]
    fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tools, &other.tools)
    }

    fn beside<'a>(&'a self, registered: &'a Self) -> impl Iterator<Item = &'a ToolItem> {
        self.shared_beside(registered).map(|item| &**item)
    }

    fn merged_into(&self, registered: &Self) -> Self {
        let list: Vec<_> = self.shared_beside(registered).cloned().collect();
        let known = &registered.tools.list;
        if list.len() == known.len() && list.iter().zip(known).all(|(item, known)| Arc::ptr_eq(item, known)) {
            return registered.clone();
        }
        Self { tools: Arc::new(Tools { list, revision: OnceLock::new() }) }
    }

    fn checked(self) -> crate::Result<Self> {
        match self.check_depth() {
            Ok(()) => Ok(self),
            Err(error) => {
                let tools = Arc::into_inner(self.tools).map(|tools| tools.list);
                let items = tools.into_iter().flatten().filter_map(Arc::into_inner);
                depth::discard(items.flat_map(ToolItem::into_values));
                Err(error)
            }
        }
    }
}

/// The members of a [`ToolItem`] for the runtime.
pub trait ToolItemExt {
    /// Returns the tool with secrets masked, for recorded requests.
    fn masked(&self) -> Cow<'_, ToolItem>;
}

impl ToolItemExt for ToolItem {
    #[inline]
    fn masked(&self) -> Cow<'_, ToolItem> {
        if !secret::any() {
            return Cow::Borrowed(self);
        }
        let mut tool = self.clone();
        tool.description.as_mut().into_iter().for_each(mask_text);
        tool.parameters.as_mut().into_iter().for_each(mask_json);
        tool.provider_tools.iter_mut().flat_map(|tool| tool.members.values_mut()).for_each(mask_json);
        Cow::Owned(tool)
    }
}
