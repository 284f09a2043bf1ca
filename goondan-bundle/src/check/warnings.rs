//! Warnings about a bundle without errors: things that its author probably does not want.

use super::extensions::Extensions;
use crate::diagnostic::Diagnostic;
use crate::kind::Kind;
use crate::read::{Document, Resource, SourcedValue};
use crate::resource::{AgentResource, Entry, ExtensionRef, Resources, ToCheck};

/// The warnings about a bundle, in the order of its files and their lines. Those about guards were found before.
pub(super) fn warnings(
    documents: &[Document<'_>],
    resources: &Resources,
    to_check: &ToCheck<'_>,
    extensions: &Extensions<'_>,
    uncovered: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let warning = |document: &Document<'_>| {
        let (cursor, name) = (document.name.as_ref()?, document.name()?);
        let (message, suggestion) = match document.kind {
            Kind::Extension => {
                unused_extension(name, resources).or_else(|| unchecked_config(name, resources, extensions))
            }
            Kind::Model => unused_model(name, resources),
            Kind::Agent => unlisted_agent(name, resources)
                .or_else(|| unbounded_agent(name, resources))
                .or_else(|| uncached_requests(name, resources)),
            Kind::Server => open_server(name, resources),
            Kind::Swarm => None,
        }?;
        let warning = Diagnostic::warning(cursor.sink().file(), cursor.place(), message, suggestion);
        Some(warning.with_path(cursor.path()))
    };
    let mut warnings: Vec<_> = documents.iter().filter_map(warning).collect();
    warnings.extend(documents.iter().flat_map(|document| undescribed_tools(document, resources, extensions)));
    warnings.extend(uncovered);
    for warning in missing_values(resources).chain(to_check.hints.iter().cloned()) {
        // Several agents can use one extension, and several models one file.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let files: Vec<_> = documents.iter().filter_map(|document| Some(document.name.as_ref()?.sink().file())).collect();
    warnings.sort_by_key(|warning| (files.iter().position(|file| *file == warning.file), warning.place));
    warnings
}

/// A model chooses tools by their descriptions.
fn undescribed_tools(document: &Document<'_>, resources: &Resources, extensions: &Extensions<'_>) -> Vec<Diagnostic> {
    let named = document.name.as_ref().zip(document.name()).filter(|_| document.kind == Kind::Extension);
    let Some((cursor, name)) = named else { return Vec::new() };
    let extension = resources.extensions.iter().find(|extension| extension.name == *name);
    let tools = extension.map(|extension| extensions.undescribed_tools(extension)).unwrap_or_default();
    let warning = |tool| {
        let message = format!("the tool `{tool}` of the extension `{name}` has no description");
        let remedy = "write a doc comment above its function: models choose tools by their descriptions".to_owned();
        Diagnostic::warning(cursor.sink().file(), cursor.place(), message, remedy).with_path(cursor.path())
    };
    tools.into_iter().map(warning).collect()
}

/// A check needs no values from the environment, but a run does.
fn missing_values(resources: &Resources) -> impl Iterator<Item = Diagnostic> {
    let of_extensions =
        resources.agents.iter().flat_map(|agent| &agent.extensions).flat_map(ExtensionRef::merged_sources);
    let of_models = resources.models.iter().flat_map(|model| &model.sources);
    of_extensions.chain(of_models).filter_map(SourcedValue::warning)
}

/// The message and the remedy, if there is something to warn about.
type Finding = Option<(String, String)>;

fn unused_extension(name: &str, resources: &Resources) -> Finding {
    let used = resources.agents.iter().any(|agent| agent.extensions.iter().any(|used| used.target.name == *name));
    (!used).then(|| {
        let message = format!("no agent uses the extension `{name}`");
        (message, format!("add `{{ ref: \"Extension/{name}\" }}` to the `extensions` of an agent, or remove it"))
    })
}

fn unchecked_config(name: &str, resources: &Resources, extensions: &Extensions<'_>) -> Finding {
    let extension = resources.extensions.iter().find(|extension| extension.name == *name)?;
    let Entry::Library(library) = &extension.entry else { return None };
    extensions.lacks_schema(extension).then(|| {
        let message =
            format!("the config of the extension `{name}` was not checked: no schemas are packed into its library");
        let file = library.file.display();
        (
            message,
            format!("`goondan plugin pack {file}` packs them, and `check --describe` runs the library to ask for them"),
        )
    })
}

fn unused_model(name: &str, resources: &Resources) -> Finding {
    let listed = |agent: &AgentResource| agent.models.iter().flatten().any(|model| model.name() == name);
    let used = resources.agents.iter().any(|agent| agent.model.name() == name || listed(agent));
    (!used).then(|| {
        // API-11: without a list of models, a step middleware can switch to any model of the bundle.
        let message = match resources.agents.iter().any(|agent| agent.models.is_none()) {
            true => format!("no agent asks the model `{name}`: only a middleware that names it does"),
            false => format!("no agent can ask the model `{name}`"),
        };
        (message, format!("write `model: \"Model/{name}\"` in an agent, or remove it"))
    })
}

fn unlisted_agent(name: &str, resources: &Resources) -> Finding {
    let swarm = resources.swarms.first()?;
    (!swarm.agents.iter().any(|agent| agent.name == *name)).then(|| {
        let message =
            format!("the swarm `{}` does not list the agent `{name}`, so its policy is not for it", swarm.name);
        (message, format!("add `{{ ref: \"Agent/{name}\" }}` to the `agents` of the swarm, or remove it"))
    })
}

/// SERVE-03: `goondan serve` refuses to start like that, unless it is told who may use it on the command line.
fn open_server(name: &str, resources: &Resources) -> Finding {
    let server = resources.servers.iter().find(|server| server.name == *name)?;
    let listen = server.listen.filter(|listen| !listen.ip().is_loopback() && server.principals.is_empty())?;
    let message = format!("other machines reach {listen}, and the server `{name}` does not say who may use it");
    Some((message, "add `principals`, or pass `--token-file` to `goondan serve`".to_owned()))
}

/// CACHE-01: a provider's cache keeps the beginnings of requests, and these extensions change them.
fn uncached_requests(name: &str, resources: &Resources) -> Finding {
    let agent = resources.agents.iter().find(|agent| agent.name == *name)?;
    let price = |price| agent.model.config.get("prices")?.get(price)?.as_f64();
    let (input, cached) = (price("input")?, price("cachedInput")?);
    let cuts = |used: &&ExtensionRef| matches!(&used.target.entry, Entry::Linked(entry) if CUTTING.contains(&&**entry));
    let cutting = &agent.extensions.iter().filter(|_| cached < input).find(cuts)?.target.name;
    let model = &agent.model.name;
    let message = format!(
        "the extension `{cutting}` of the agent `{name}` changes the beginnings of requests, which the cache of the \
         model `{model}` keeps for less than they cost anew"
    );
    let remedy = "keep its limits high, so that it rarely acts, or leave it out: docs/models.md, \"What your cache is \
                  worth\", says what it costs, and `goondan instance show` what it has cost";
    Some((message, remedy.to_owned()))
}

/// The extensions that remove the beginning of a request.
const CUTTING: [&str; 2] = ["message-window", "tool-search"];

/// POLICY-04: the conversations of a swarm are long, and without a message policy each request carries all of it.
fn unbounded_agent(name: &str, resources: &Resources) -> Finding {
    let agent = resources.swarms.first()?.agents.iter().find(|agent| agent.name == *name)?;
    agent.extensions.is_empty().then(|| {
        let message = format!("nothing keeps the conversations of the agent `{name}` short: it has no extension");
        (message, "add one with a message policy to its `extensions`, such as `message-window`".to_owned())
    })
}
