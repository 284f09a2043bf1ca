//! Which tools of a server are registered, and under which names.

use goondan::name::{ExtensionName, ToolName};
use goondan::tool::{Effect, ToolItem, ToolSource};
use goondan::{Result, Value};

use super::listing::Offers;
use super::names;
use crate::config::ToolSettings;
use crate::server::Tool;

/// The tools of a server that are registered. A registration lasts as long as the extension, so a tool that the server
/// has withdrawn is taken out of the catalog of each step.
pub(crate) struct Tools {
    extension: ExtensionName,
    settings: ToolSettings,
    /// Names that tools of the extension itself have.
    reserved: Vec<String>,
    known: Vec<Known>,
    /// Whether any tool of `known` is withdrawn.
    withdrawn: bool,
}

struct Known {
    tool: Tool,
    item: ToolItem,
    offered: bool,
}

/// What a new list of tools changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) added: Vec<ToolItem>,
    pub(crate) changed: Vec<ToolItem>,
    /// The names of the tools that are gone.
    pub(crate) removed: Vec<String>,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
}

impl Tools {
    pub(crate) fn new(extension: ExtensionName, settings: ToolSettings, reserved: Vec<String>) -> Self {
        Self { extension, settings, reserved, known: Vec::new(), withdrawn: false }
    }

    /// Registers what is new or different in `offers`. What cannot be registered is left out with a warning.
    pub(crate) fn update(
        &mut self,
        offers: &Offers,
        mut register: impl FnMut(&ToolItem, &Tool) -> Result<()>,
    ) -> Changes {
        let mut changes = Changes::default();
        changes.warnings.extend(offers.problems.iter().map(|problem| format!("cannot be used: {problem}")));
        let before: Vec<_> = self.known.iter_mut().map(|known| std::mem::replace(&mut known.offered, false)).collect();
        for tool in offers.tools.iter().filter(|tool| self.settings.offers(&tool.name)) {
            let index = self.known.iter().position(|known| known.tool.name == tool.name);
            if let Some(known) = index.map(|index| &mut self.known[index]) {
                if known.offered {
                    changes.warnings.push(format!("the server has two tools `{}`: the second is left out", tool.name));
                    continue;
                }
                if known.tool == *tool {
                    known.offered = true;
                    if !before[index.unwrap_or_default()] {
                        changes.added.push(known.item.clone());
                    }
                    continue;
                }
            }
            let name = match index {
                Some(index) => self.known[index].item.name.to_string(),
                None => self.name(tool, &mut changes.warnings),
            };
            let item = match self.item(&name, tool, offers).and_then(|item| register(&item, tool).map(|()| item)) {
                Ok(item) => item,
                Err(error) => {
                    changes.warnings.push(format!("the tool `{}` is left out: {}", tool.name, error.message()));
                    continue;
                }
            };
            let known = Known { tool: tool.clone(), item: item.clone(), offered: true };
            match index {
                Some(index) => {
                    self.known[index] = known;
                    changes.changed.push(item);
                }
                None => {
                    self.known.push(known);
                    changes.added.push(item);
                }
            }
        }
        let gone = self.known.iter().zip(before).filter(|(known, before)| *before && !known.offered);
        changes.removed.extend(gone.map(|(known, _)| known.item.name.to_string()));
        self.withdrawn = self.known.iter().any(|known| !known.offered);
        changes
    }

    /// Returns a legal name that no other tool of the extension has, or had.
    fn name(&self, tool: &Tool, warnings: &mut Vec<String>) -> String {
        let taken = |name: &str| {
            self.reserved.iter().any(|reserved| reserved == name)
                || self.known.iter().any(|known| known.item.name == *name)
        };
        let name = names::legal(self.extension.as_str(), &tool.name, taken);
        if names::legal(self.extension.as_str(), &tool.name, |_| false) != name {
            warnings.push(format!("the tool `{}` is called `{name}`, because another one has its name", tool.name));
        }
        name
    }

    fn item(&self, name: &str, tool: &Tool, offers: &Offers) -> Result<ToolItem> {
        let hinted = match tool {
            Tool { read_only: true, .. } => Effect::Read,
            Tool { idempotent: true, .. } => Effect::Idempotent,
            _ => Effect::Once,
        };
        let trusted = if self.settings.trust_hints { hinted } else { Effect::Once };
        let mut parameters = tool.parameters.clone();
        // Arguments are an object, and providers refuse a request with a tool that says otherwise.
        parameters.insert("type".to_owned(), Value::from("object"));
        let source = ToolSource::Mcp {
            name: tool.name.clone(),
            extension_name: self.extension.to_string(),
            server_name: offers.server.clone(),
        };
        let item = ToolItem::new(name)?.parameters(parameters).lenient().source(source);
        let item = item.effect(self.settings.effect(&tool.name).unwrap_or(trusted)).timeout(self.settings.timeout());
        Ok(match &tool.description {
            Some(description) => item.describe(description),
            None => item,
        })
    }

    /// Returns the tools that the server has withdrawn, if any.
    pub(crate) fn withdrawn(&self) -> Option<Vec<ToolName>> {
        let withdrawn = || self.known.iter().filter(|known| !known.offered).map(|known| known.item.name.clone());
        self.withdrawn.then(|| withdrawn().collect())
    }
}
