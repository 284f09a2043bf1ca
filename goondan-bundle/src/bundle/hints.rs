//! Owns the checks whose findings are hints: each looks at a whole bundle that has no fault.

use super::load::Read;
use crate::configs::Configs;
use crate::diagnostic::Diagnostic;
use crate::document::{Document, Kind};
use crate::reference::Resource;
use crate::resource::{Entry, ExtensionRef};
use crate::value::SourcedValue;

/// The hints of a bundle, in the order of its files and their lines.
pub(super) fn hints(documents: &[Document<'_>], read: &Read, configs: &Configs<'_>) -> Vec<Diagnostic> {
    let hint = |document: &Document<'_>| {
        let (field, name) = (document.name.as_ref()?, document.name()?);
        let (message, suggestion) = match document.kind {
            Kind::Extension => unused_extension(name, read).or_else(|| unchecked_config(name, read, configs)),
            Kind::Model => unused_model(name, read),
            Kind::Agent => unreached_agent(name, read).or_else(|| endless_agent(name, read)),
            Kind::Swarm => None,
        }?;
        Some(Diagnostic::warning(field.sink().file(), field.place(), message, suggestion).with_path(field.path()))
    };
    let mut hints: Vec<_> = documents.iter().filter_map(hint).collect();
    for hint in missing_values(read) {
        // Several agents can use one extension.
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    let files: Vec<_> = documents.iter().filter_map(|document| Some(document.name.as_ref()?.sink().file())).collect();
    hints.sort_by_key(|hint| (files.iter().position(|file| *file == hint.file), hint.place));
    hints
}

/// A check needs no secrets, but a run does.
fn missing_values(read: &Read) -> impl Iterator<Item = Diagnostic> {
    let uses = read.agents.iter().flat_map(|agent| &agent.extensions);
    uses.flat_map(ExtensionRef::merged_sources).filter_map(SourcedValue::warning)
}

/// What is wrong, and the remedy.
type Finding = Option<(String, String)>;

fn unused_extension(name: &str, read: &Read) -> Finding {
    let used = read.agents.iter().any(|agent| agent.extensions.iter().any(|used| used.target.name == *name));
    (!used).then(|| {
        let message = format!("no agent uses the extension `{name}`");
        (message, format!("add `{{ ref: \"Extension/{name}\" }}` to the `extensions` of an agent, or remove it"))
    })
}

fn unchecked_config(name: &str, read: &Read, configs: &Configs<'_>) -> Finding {
    let extension = read.extensions.iter().find(|extension| extension.name == *name)?;
    let Entry::Library(library) = &extension.entry else { return None };
    configs.is_unchecked(extension).then(|| {
        let message =
            format!("the config of the extension `{name}` was not checked: no schemas are packed into its library");
        let file = library.file.display();
        (
            message,
            format!("`goondan plugin pack {file}` packs them, and `check --describe` runs the library to ask for them"),
        )
    })
}

fn unused_model(name: &str, read: &Read) -> Finding {
    let used = read.agents.iter().any(|agent| agent.model.name() == name);
    // API-11: a step middleware may ask for any model of the bundle.
    (!used).then(|| {
        let message = format!("no agent asks the model `{name}`: only a middleware that names it does");
        (message, format!("write `model: \"Model/{name}\"` in an agent, or remove it"))
    })
}

fn unreached_agent(name: &str, read: &Read) -> Finding {
    let swarm = read.swarms.first()?;
    (!swarm.agents.iter().any(|agent| agent.name == *name)).then(|| {
        let message =
            format!("the swarm `{}` does not list the agent `{name}`, so its policy is not for it", swarm.name);
        (message, format!("add `{{ ref: \"Agent/{name}\" }}` to the `agents` of the swarm, or remove it"))
    })
}

/// POLICY-04: a swarm lives long, and without a message policy each request carries the whole conversation.
fn endless_agent(name: &str, read: &Read) -> Finding {
    let agent = read.swarms.first()?.agents.iter().find(|agent| agent.name == *name)?;
    agent.extensions.is_empty().then(|| {
        let message = format!("nothing keeps the conversations of the agent `{name}` short: it has no extension");
        (message, "add one with a message policy to its `extensions`, such as `message-window`".to_owned())
    })
}
