//! The libraries of a bundle, with schemas from a child process if their files contain none.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use goondan::Result;
use goondan::bundle::{Declared, Libraries, LibraryEntry, Plugins};
use goondan::extension::ExtensionDescriptor;
use goondan::plugin::ExtensionSchemas;
use goondan_lock::Lock;

use super::child;
use crate::args::DeadlineArgs;

/// Returns the access to libraries for checking a bundle. With a deadline, libraries that contain no schemas are run,
/// each in a child process.
pub(crate) fn libraries(deadline: Option<&DeadlineArgs>) -> Box<dyn Libraries> {
    match deadline {
        Some(deadline) => Box::new(DescribedLibraries::new(deadline.timeout())),
        None => Box::new(Plugins::new()),
    }
}

/// Libraries whose missing schemas are read from a child process.
struct DescribedLibraries {
    plugins: Plugins,
    timeout: Duration,
    /// The schemas by file, so that each file is run once, however many of its extensions the bundle names.
    schemas: Lock<BTreeMap<PathBuf, Vec<ExtensionSchemas>>>,
}

impl DescribedLibraries {
    fn new(timeout: Duration) -> Self {
        Self { plugins: Plugins::new(), timeout, schemas: Lock::default() }
    }
}

impl Libraries for DescribedLibraries {
    fn declared(&self, library: &LibraryEntry) -> Result<Declared> {
        let declared = self.plugins.declared(library)?;
        if declared.config_schema.is_some() {
            return Ok(declared);
        }
        let inspected = self.plugins.inspect(library)?;
        let name = &library.record(&inspected)?.name;
        let mut known = self.schemas.lock();
        if !known.contains_key(&library.file) {
            known.insert(library.file.clone(), child::schemas(&library.file, self.timeout)?);
        }
        let mut all = known.get(&library.file).into_iter().flatten();
        Ok(match all.find(|schemas| schemas.name == *name) {
            Some(schemas) => declared.with_schemas(schemas),
            None => declared,
        })
    }

    fn load(&self, library: &LibraryEntry) -> Result<&'static ExtensionDescriptor> {
        self.plugins.load(library)
    }
}
