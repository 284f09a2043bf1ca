//! The typed resources of a bundle. Each file reads one kind from its spec.

mod model;
pub use model::ModelResource;
mod settings;

mod extension;
pub use extension::ExtensionResource;

mod entry;
pub use entry::Entry;
mod library_file;

mod agent;
pub use agent::{AgentResource, ExtensionRef};
pub(crate) use agent::{AgentUses, ExtensionUse};

mod policy;
pub use policy::Policy;

mod swarm;
pub use swarm::SwarmResource;

mod server;
pub use server::{ServerPrincipal, ServerResource};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::ErrorCode;
use goondan_runtime::CassetteMode;

use crate::diagnostic::Diagnostic;
use crate::kind::Kind;
use crate::read::{Cursor, Document, Names, Resource};

/// The resources of a bundle, as far as they can be read.
pub(crate) struct Resources {
    pub(crate) models: Vec<Arc<ModelResource>>,
    pub(crate) extensions: Vec<Arc<ExtensionResource>>,
    pub(crate) agents: Vec<Arc<AgentResource>>,
    pub(crate) swarms: Vec<Arc<SwarmResource>>,
    pub(crate) servers: Vec<Arc<ServerResource>>,
}

/// Values that are checked when all resources are read, with the places for the errors.
///
/// It also has parts of resources that could not be read, so that one mistake does not hide another.
#[derive(Default)]
pub(crate) struct ToCheck<'a> {
    /// The entries of all extensions.
    pub(crate) entries: Vec<(Entry, Cursor<'a>)>,
    /// The files to which models append their requests.
    pub(crate) records: Vec<(PathBuf, Cursor<'a>)>,
    /// Findings of model providers that are no errors.
    pub(crate) hints: Vec<Diagnostic>,
    /// The extensions that each agent lists.
    pub(crate) agents: Vec<AgentUses<'a>>,
    /// Those that the swarm lists.
    pub(crate) of_swarm: AgentUses<'a>,
}

impl Resources {
    /// Reads each kind after the kinds that it refers to.
    pub(crate) fn read<'a>(
        documents: &[Document<'a>],
        names: &Names<'_>,
        root: &Path,
        allow_absolute: bool,
        cassettes: Option<CassetteMode>,
    ) -> (Self, ToCheck<'a>) {
        let mut to_check = ToCheck::default();
        let models = read_all(documents, |document| ModelResource::read(document, root, cassettes, &mut to_check));
        let extensions =
            read_all(documents, |document| ExtensionResource::read(document, root, allow_absolute, &mut to_check));
        let mut agents =
            read_all(documents, |document| AgentResource::read(document, names, &models, &extensions, &mut to_check));
        let mut swarms =
            read_all(documents, |document| SwarmResource::read(document, names, &extensions, &agents, &mut to_check));
        if let Some(swarm) = swarms.first_mut().map(Arc::make_mut) {
            swarm.give_extensions(&mut agents, &mut to_check);
        }
        let servers = read_all(documents, |document| ServerResource::read(document, names, &agents));
        // With two swarms it would be ambiguous which one receives input, with two servers which one listens.
        deny_second(documents, SwarmResource::KIND);
        deny_second(documents, ServerResource::KIND);
        (Self { models, extensions, agents, swarms, servers }, to_check)
    }
}

fn read_all<'a, T: Resource>(documents: &[Document<'a>], read: impl FnMut(&Document<'a>) -> Option<T>) -> Vec<Arc<T>> {
    documents.iter().filter(|document| document.kind == T::KIND).filter_map(read).map(Arc::new).collect()
}

/// Reports resources of a kind that a bundle has once at most.
fn deny_second(documents: &[Document<'_>], kind: Kind) {
    let mut all = documents.iter().filter(|document| document.kind == kind);
    let first = all.next().and_then(|document| document.name.as_ref()).map(|name| name.location());
    for name in all.filter_map(|document| document.name.as_ref()) {
        let first = first.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
        let message = format!("there is another {kind}{first}, and a bundle has one at most");
        let remedy = format!("keep one {kind}, or move the other to a bundle of its own");
        name.error(ErrorCode::CONFIG_SCHEMA, message, remedy);
    }
}
