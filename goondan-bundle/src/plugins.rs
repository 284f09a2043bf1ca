//! Owns the libraries of bundles as this project knows them: files that `goondan-abi` inspects and loads.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use goondan_abi::{Inspected, Library, Loaded};
use goondan_core::{Error, ErrorCode, ExtensionDescriptor, Result};
use serde_json::Value;

use crate::libraries::Libraries;
use crate::resource::LibraryEntry;

/// Loads the libraries that a bundle names. Their code runs with all rights of the program, so load only what you trust.
///
/// A library that did not change since is not loaded again: keep one of these for the life of the program.
///
/// ```no_run
/// # async fn example() -> goondan_core::Result<()> {
/// use goondan_bundle::{Bundle, Plugins};
/// use goondan_core::MemoryStore;
///
/// let agents = Bundle::load("examples/dynamic")?.build_with(MemoryStore::new(), &Plugins::new()).await?;
/// if let Some(agent) = agents.get("guide") {
///     let turn = agent.instance("user:42").await?.run("hi").await?;
///     println!("{}", turn.text());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Plugins {
    loaded: Mutex<BTreeMap<Identity, Arc<Loaded>>>,
}

/// What tells one file from another, and from what it was before.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    fn of(path: &Path) -> Result<Self> {
        let metadata = fs::metadata(path)?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.size());
        Ok(Self { path: path.to_owned(), device, inode, size, modified })
    }
}

impl Plugins {
    /// Loads nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inspects the library of an entry: nothing of it runs. It holds the extension, and has the digest that the entry
    /// pins.
    ///
    /// # Errors
    /// What [`Library::inspect`] and [`Inspected::extension`] say; `E_EXT_LOAD` with both digests when the file has another
    /// one.
    pub fn inspect(&self, library: &LibraryEntry) -> Result<Inspected> {
        let inspected = Library::inspect(&library.file)?;
        if let Some(pinned) = &library.sha256 {
            let actual = inspected.sha256()?;
            if actual != *pinned {
                let file = library.file.display();
                let message = format!("`{file}` has the SHA-256 digest {actual}; the bundle pins {pinned}");
                return Err(Error::new(ErrorCode::EXT_LOAD, message)
                    .suggest("put the right file there; or if this one is right, write its digest as `spec.sha256`"));
            }
        }
        inspected.extension(library.name.as_str())?;
        Ok(inspected)
    }

    fn loaded(&self, inspected: Inspected) -> Result<Arc<Loaded>> {
        let identity = Identity::of(inspected.path())?;
        // Whoever comes while a library is loaded wants the same one.
        let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = all.get(&identity) {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(inspected.load()?);
        all.insert(identity, Arc::clone(&loaded));
        Ok(loaded)
    }
}

impl Libraries for Plugins {
    fn config_schema(&self, library: &LibraryEntry) -> Result<Option<Value>> {
        let inspected = self.inspect(library)?;
        let record = inspected.extension(library.name.as_str())?;
        let mut schemas = inspected.schemas().unwrap_or_default().iter();
        Ok(schemas.find(|schemas| schemas.name == record.name).map(|schemas| schemas.config.clone()))
    }

    fn load(&self, library: &LibraryEntry) -> Result<&'static ExtensionDescriptor> {
        let inspected = self.inspect(library)?;
        let name = inspected.extension(library.name.as_str())?.name.clone();
        self.loaded(inspected)?.extension(Some(&name))
    }
}
