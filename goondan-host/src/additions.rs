//! Abilities that a changed bundle has and the running one lacks.
// TREE-01

use std::collections::BTreeSet;
use std::path::Path;

use goondan_bundle::{Bundle, Capabilities, Entry, Libraries};
use goondan_core::Result;

/// Returns the abilities that `new` has and `running` has not. No library is loaded but those that the agents of
/// `running` use, also as other builds; of others, only their packed schemas are known.
///
/// # Errors
/// As [`Capabilities::of`], and those of libraries that cannot be loaded.
pub(crate) fn additions(running: &Bundle, new: &Bundle, libraries: Option<&dyn Libraries>) -> Result<Capabilities> {
    let used = running.agents().flat_map(|agent| &agent.extensions);
    let known: BTreeSet<&Path> = used.filter_map(|used| file(&used.target.entry)).collect();
    let schema = |entry: &Entry| match (entry, libraries) {
        (Entry::Library(library), Some(libraries)) if !known.contains(&*library.file) => {
            Ok(libraries.declared(library)?.config_schema)
        }
        _ => entry.config_schema(libraries),
    };
    let new = Capabilities::of(new, schema)?;
    // A library may be gone.
    let running = Capabilities::of(running, |entry| Ok(schema(entry).unwrap_or_default()))?;
    Ok(new.beyond(&running))
}

fn file(entry: &Entry) -> Option<&Path> {
    match entry {
        Entry::Library(library) => Some(&library.file),
        _ => None,
    }
}
