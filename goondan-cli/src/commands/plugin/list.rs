//! `goondan plugin list`: the providers of models and the extensions that are linked into this program, the extensions
//! in the libraries of a bundle, and, if they are started, the tools that they register.

use std::fs;

use goondan::bundle::{LibraryEntry, Plugins};
use goondan::extension::linked;
use goondan::host::OpenError;
use goondan::model::linked_providers;
use goondan::plugin::Inspected;
use goondan::store::{MemoryStore, state_root};
use goondan::{Error, Result};

use super::listed::{LibraryOrigin, Listed, ListedAgent, ListedExtension, ListedProvider};
use crate::args::{BundleArgs, PluginListArgs};
use crate::commands::tools::Tools;
use crate::commands::{bundle, trust};
use crate::outcome::Outcome;
use crate::output::{self, diagnostics};

pub(crate) fn list(args: &PluginListArgs) -> Result<Outcome> {
    match text(args) {
        Ok(text) if args.json => output::print_data(text).map(|()| Outcome::Done),
        Ok(text) => output::print(&text).map(|()| Outcome::Done),
        Err(error) => diagnostics::refused(error, args.json),
    }
}

fn text(args: &PluginListArgs) -> Result<String, OpenError> {
    let inspect = |entry: LibraryEntry| Plugins::new().inspect(&entry).map(|inspected| (entry, inspected));
    let libraries = args.bundle.libraries()?.into_iter().map(inspect).collect::<Result<Vec<_>>>()?;
    let mut all: Vec<_> = linked_providers().into_iter().map(|it| Listed::Provider(ListedProvider::from(it))).collect();
    all.extend(linked().into_iter().map(|it| Listed::Extension(ListedExtension::from(it))));
    for (entry, inspected) in &libraries {
        all.push(Listed::Extension(in_library(entry, inspected)?));
    }
    if let Some(bundle) = args.bundle.required().filter(|_| args.start) {
        all.extend(agents(&bundle, args)?.into_iter().map(Listed::Agent));
    }
    if args.json {
        return Ok(serde_json::to_string(&all).map_err(Error::from)? + "\n");
    }
    Ok(all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Opens a conversation of each agent in memory, so that stored conversations are not touched.
fn agents(named: &BundleArgs, args: &PluginListArgs) -> Result<Vec<ListedAgent>, OpenError> {
    let plugins = Plugins::new();
    let bundle = bundle::read(named, &plugins)?;
    if !args.trust {
        trust::require(&bundle, &named.path, &state_root(None)?, !args.json)?;
    }
    bundle.check_values()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::from)?;
    let listed = runtime.block_on(async {
        let agents = bundle.build_with(MemoryStore::new(), &plugins).await?;
        let mut listed = Vec::new();
        for resource in bundle.agents() {
            let name = resource.name.as_str();
            let agent = agents.get(name).ok_or_else(|| Error::msg("a built bundle has its agents"))?;
            let instance = agent.instance("list").await?;
            listed.push(ListedAgent { name: name.to_owned(), tools: Tools::of(&instance).await? });
            instance.close().await?;
        }
        agents.close().await?;
        Ok::<_, Error>(listed)
    })?;
    Ok(listed)
}

fn in_library<'a>(entry: &'a LibraryEntry, inspected: &'a Inspected) -> Result<ListedExtension<'a>> {
    let size = fs::metadata(inspected.path())?.len();
    let library = LibraryOrigin { entry: &entry.written, called: entry.name.as_str(), size };
    Ok(ListedExtension::from(entry.record(inspected)?).in_library(library))
}
