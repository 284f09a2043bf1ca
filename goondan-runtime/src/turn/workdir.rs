//! The work directory of an instance, for tools that work on files. It is created on first use.

use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use goondan_core::{Error, ErrorCode, Result};

/// The work directory of one open conversation.
pub(crate) struct Workdir {
    path: PathBuf,
    created: OnceLock<()>,
}

impl Workdir {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, created: OnceLock::new() }
    }

    /// Returns the path, after creating the directory.
    pub(super) fn path(&self) -> Result<&Path> {
        if self.created.get().is_none() {
            create(&self.path).map_err(|error| {
                Error::new(ErrorCode::STORE_IO, format!("cannot make the work directory {}", self.path.display()))
                    .suggest("check the permissions of the directory above it, and that no file or link has its name")
                    .caused_by(error)
            })?;
            self.created.get_or_init(|| ());
        }
        Ok(&self.path)
    }
}

/// Creates the directory for its owner alone, unless it exists. A link to a directory does not count.
fn create(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    if path.symlink_metadata()?.is_dir() { Ok(()) } else { Err(io::Error::other("it is a link")) }
}
