//! Which tools of a server are registered, and under which names.

use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// The most tools that are registered.
    most: usize,
    /// Names that tools of the extension itself have.
    reserved: Vec<String>,
    known: Vec<Known>,
    /// Whether any tool of `known` is withdrawn.
    withdrawn: bool,
}

struct Known {
    tool: Arc<Tool>,
    name: ToolName,
    offered: bool,
}

/// The changes that a new list of tools makes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) added: Vec<ToolItem>,
    pub(crate) changed: Vec<ToolItem>,
    /// The names of the tools that are gone.
    pub(crate) removed: Vec<String>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

impl Tools {
    pub(crate) fn new(extension: ExtensionName, settings: ToolSettings, most: usize, reserved: Vec<String>) -> Self {
        Self { extension, settings, most, reserved, known: Vec::new(), withdrawn: false }
    }

    /// Returns the digest of each tool that is offered, by its name at the server.
    pub(crate) fn digests(&self) -> BTreeMap<String, String> {
        let offered = self.known.iter().filter(|known| known.offered);
        offered.map(|Known { tool, .. }| (tool.name.clone(), tool.digest.clone())).collect()
    }

    /// Registers the new and different ones of `offers`. One that cannot be registered is left out with a warning.
    pub(crate) fn update(
        &mut self,
        offers: &Offers,
        mut register: impl FnMut(&ToolItem, &Tool) -> Result<()>,
    ) -> Changes {
        let mut changes = Changes::default();
        changes.warnings.extend(offers.problems.iter().map(|problem| format!("left out: {problem}")));
        let before: Vec<_> = self.known.iter_mut().map(|known| std::mem::replace(&mut known.offered, false)).collect();
        let mut beyond = 0;
        for tool in &offers.tools {
            if !self.settings.offers(&tool.name) {
                continue;
            }
            if let Err(reason) = self.settings.check_pin(&tool.name, &tool.digest) {
                changes.warnings.push(format!("the tool `{}` is withheld: {reason}", tool.name));
                continue;
            }
            let index = self.known.iter().position(|known| known.tool.name == tool.name);
            if index.is_none() && self.known.len() >= self.most {
                beyond += 1;
                continue;
            }
            let was_offered = index.and_then(|index| before.get(index)).is_some_and(|before| *before);
            if let Err(left_out) = self.offer(tool, index, was_offered, offers, &mut register, &mut changes) {
                changes.warnings.push(left_out);
            }
        }
        if beyond > 0 {
            changes.warnings.push(format!("{beyond} tools are left out: `limits.tools` is {}", self.most));
        }
        let gone = self.known.iter().zip(before).filter(|(known, before)| *before && !known.offered);
        changes.removed.extend(gone.map(|(known, _)| known.name.to_string()));
        self.withdrawn = self.known.iter().any(|known| !known.offered);
        changes
    }

    /// Offers the tool, which is known at `index`, and is registered if it is new or different.
    ///
    /// # Errors
    /// A warning, if it is left out.
    fn offer(
        &mut self,
        tool: &Arc<Tool>,
        index: Option<usize>,
        was_offered: bool,
        offers: &Offers,
        register: &mut impl FnMut(&ToolItem, &Tool) -> Result<()>,
        changes: &mut Changes,
    ) -> std::result::Result<(), String> {
        let known = index.map(|index| &mut self.known[index]);
        if known.as_ref().is_some_and(|known| known.offered) {
            return Err(format!("the server has two tools `{}`: the second is left out", tool.name));
        }
        let is_known = known.as_ref().is_some_and(|known| known.tool.digest == tool.digest);
        let name = match known {
            Some(known) if is_known && was_offered => {
                known.offered = true;
                return Ok(());
            }
            Some(known) => known.name.to_string(),
            None => self.name(tool, &mut changes.warnings),
        };
        let item = self.item(&name, tool, offers);
        // A registration stays when its tool is withdrawn.
        let item = item.and_then(|item| if is_known { Ok(item) } else { register(&item, tool).map(|()| item) });
        let item = item.map_err(|error| format!("the tool `{}` is left out: {}", tool.name, error.message()))?;
        let new = Known { tool: Arc::clone(tool), name: item.name.clone(), offered: true };
        let Some(index) = index else {
            self.known.push(new);
            changes.added.push(item);
            return Ok(());
        };
        let old = std::mem::replace(&mut self.known[index], new);
        if is_known {
            changes.added.push(item);
        } else {
            changes.warnings.push(format!(
                "the server has changed the tool `{}`: its digest was {}, and is {}",
                tool.name, old.tool.digest, tool.digest
            ));
            changes.changed.push(item);
        }
        Ok(())
    }

    /// Returns a legal name that no other tool of the extension has, or had.
    fn name(&self, tool: &Tool, warnings: &mut Vec<String>) -> String {
        let taken = |name: &str| {
            self.reserved.iter().any(|reserved| reserved == name) || self.known.iter().any(|known| known.name == *name)
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
        let item = ToolItem::new(name)?.parameters(parameters).lenient().asks().source(source);
        let item = item.effect(self.settings.effect(&tool.name).unwrap_or(trusted)).timeout(self.settings.timeout());
        Ok(match &tool.description {
            Some(description) => item.describe(description),
            None => item,
        })
    }

    /// Returns the tools that the server has withdrawn, if any.
    pub(crate) fn withdrawn(&self) -> Option<Vec<ToolName>> {
        let withdrawn = || self.known.iter().filter(|known| !known.offered).map(|known| known.name.clone());
        self.withdrawn.then(|| withdrawn().collect())
    }
}
