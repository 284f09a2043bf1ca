//! Owns how a bundle is read: each document by itself, then each kind after those that it refers to.

use std::path::Path;
use std::sync::Arc;

use goondan_core::{ErrorCode, Result};

use super::Bundle;
use super::files::{Files, Opened};
use super::hints::hints;
use crate::configs::Configs;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Document, Kind};
use crate::known::KnownExtension;
use crate::reference::{Names, Resource};
use crate::resource::{AgentResource, ExtensionResource, ModelResource, SwarmResource};

impl Bundle {
    /// Reads a bundle, as [`Bundle::check`] does.
    ///
    /// # Errors
    /// The first fault, with a code of the family `E_CONFIG_…`, or `E_EXT_LOAD` for an entry that
    /// leads to no library. The message begins with `<file>:<line>:<column>: `, or with the path alone when there is no text to point
    /// at; the suggestion is the remedy, and says how many more faults there are.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::check(path).map_err(Diagnostics::into_error)
    }

    /// Reads a bundle, and runs nothing. `path` is a YAML file, which then is the whole bundle, or a directory: all
    /// YAML files below it are read, except for those in `dist`, `node_modules`, hidden and cache directories, and in
    /// directories that are bundles of their own because they hold a `goondan.yaml`. Files in which nothing looks like
    /// a resource are passed over.
    ///
    /// # Errors
    /// Everything that is wrong, at once (RULE-02).
    ///
    /// ```
    /// let faults = goondan_bundle::Bundle::check("no/such/bundle").unwrap_err();
    /// assert_eq!(faults.first().code, Some("E_CONFIG_PARSE_ERROR".into()));
    /// assert_eq!(faults.first().message, "there is no such file or directory");
    /// assert_eq!(faults.first().suggestion, "check the path");
    /// ```
    pub fn check(path: impl AsRef<Path>) -> Result<Self, Diagnostics> {
        Self::reader().check(path)
    }

    /// As [`Bundle::check`], in a program that has these extensions. An entry that is none of them is a fault, and so are a
    /// config that does not fit, and extensions of an agent that cannot be brought into an order (ORDER-11).
    ///
    /// # Errors
    /// Everything that is wrong, at once (RULE-02).
    pub fn check_with(path: impl AsRef<Path>, extensions: &[KnownExtension<'_>]) -> Result<Self, Diagnostics> {
        Self::reader().linked(extensions).check(path)
    }

    pub(super) fn open(path: &Path, configs: &Configs<'_>) -> Result<Self, Diagnostics> {
        let Files { root, opened, complete } = Files::open(path)?;
        let read = read(&opened, &root, complete, configs);
        let files = opened.iter().map(|opened| opened.sink.file().to_owned()).collect();
        match Diagnostics::gather(opened.into_iter().map(|opened| opened.sink)) {
            Some(errors) => Err(errors),
            None => {
                let Read { models, extensions, agents, swarms, hints: warnings } = read;
                let swarm = swarms.into_iter().next();
                Ok(Self { path: path.to_owned(), files, root, models, extensions, agents, swarm, warnings })
            }
        }
    }
}

/// What could be read of a bundle.
pub(super) struct Read {
    pub(super) models: Vec<Arc<ModelResource>>,
    pub(super) extensions: Vec<Arc<ExtensionResource>>,
    pub(super) agents: Vec<Arc<AgentResource>>,
    pub(super) swarms: Vec<Arc<SwarmResource>>,
    /// They mean something only if nothing is wrong.
    pub(super) hints: Vec<Diagnostic>,
}

/// Reads what all files declare; what is wrong goes to the collector of its file.
fn read(opened: &[Opened], root: &Path, mut complete: bool, configs: &Configs<'_>) -> Read {
    let nodes = || opened.iter().flat_map(|file| file.nodes.iter().map(|node| (node, &file.sink)));
    let documents: Vec<_> = nodes().filter_map(|(node, sink)| Document::read(node, sink)).collect();
    let kinds = nodes().filter(|(node, _)| node.get("kind").is_some()).count();
    complete &= documents.len() == kinds && documents.iter().all(|document| document.name().is_some());
    let names = Names::of(&documents, complete);
    let models = read_all(&documents, |document| ModelResource::read(document, root));
    let extensions = read_all(&documents, |document| ExtensionResource::read(document, root, configs));
    let agents = read_all(&documents, |document| AgentResource::read(document, &names, &models, &extensions, configs));
    for extension in &extensions {
        let document = names.document(Kind::Extension, extension.name.as_str());
        if let Some(spec) = document.and_then(|document| document.spec.as_ref()) {
            configs.check_unused(extension, spec);
        }
    }
    let swarms = read_all(&documents, |document| SwarmResource::read(document, &names, &agents));
    refuse_second_swarm(&documents);
    let mut read = Read { models, extensions, agents, swarms, hints: Vec::new() };
    read.hints = hints(&documents, &read, configs);
    read
}

fn read_all<T: Resource>(documents: &[Document<'_>], read: impl Fn(&Document<'_>) -> Option<T>) -> Vec<Arc<T>> {
    documents.iter().filter(|document| document.kind == T::KIND).filter_map(read).map(Arc::new).collect()
}

/// Two swarms would leave open which of them input goes to.
fn refuse_second_swarm(documents: &[Document<'_>]) {
    let mut swarms = documents.iter().filter(|document| document.kind == SwarmResource::KIND);
    let first = swarms.next().and_then(|document| document.name.as_ref()).map(|name| name.at());
    for name in swarms.filter_map(|document| document.name.as_ref()) {
        let first = first.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
        let message = format!("there is another Swarm{first}, and a bundle has one at most");
        name.refuse(ErrorCode::CONFIG_SCHEMA, message, "keep one Swarm, or move the other to a bundle of its own");
    }
}
