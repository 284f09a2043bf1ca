//! `goondan plugin list`: the providers of models and the extensions that are linked into this program, and the
//! extensions in the libraries of a bundle.

use std::fs;

use goondan::Result;
use goondan::bundle::{LibraryEntry, Plugins};
use goondan::extension::linked;
use goondan::model::linked_providers;
use goondan::plugin::Inspected;

use super::listed::{LibraryOrigin, Listed, ListedExtension, ListedProvider};
use crate::args::PluginListArgs;
use crate::output;

pub(crate) fn list(args: &PluginListArgs) -> Result<()> {
    let inspect = |entry: LibraryEntry| Plugins::new().inspect(&entry).map(|inspected| (entry, inspected));
    let libraries = args.bundle.libraries()?.into_iter().map(inspect).collect::<Result<Vec<_>>>()?;
    let mut all: Vec<_> = linked_providers().into_iter().map(|it| Listed::Provider(ListedProvider::from(it))).collect();
    all.extend(linked().into_iter().map(|it| Listed::Extension(ListedExtension::from(it))));
    for (entry, inspected) in &libraries {
        all.push(Listed::Extension(in_library(entry, inspected)?));
    }
    if args.json {
        return output::print_data(serde_json::to_string(&all)? + "\n");
    }
    output::print(&all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn in_library<'a>(entry: &'a LibraryEntry, inspected: &'a Inspected) -> Result<ListedExtension<'a>> {
    let size = fs::metadata(inspected.path())?.len();
    let library = LibraryOrigin { entry: &entry.written, called: entry.name.as_str(), size };
    Ok(ListedExtension::from(entry.record(inspected)?).in_library(library))
}
