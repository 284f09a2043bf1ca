//! Owns the directory of an instance for tools that work on files: made when the first one asks.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, ErrorCode, Result};

pub(in crate::agent) struct Workdir {
    path: PathBuf,
    made: OnceLock<()>,
}

impl Workdir {
    pub(in crate::agent) fn new(path: PathBuf) -> Self {
        Self { path, made: OnceLock::new() }
    }

    pub(super) fn path(&self) -> Result<&Path> {
        if self.made.get().is_none() {
            std::fs::create_dir_all(&self.path).map_err(|error| {
                Error::new(ErrorCode::STORE_IO, format!("cannot make the work directory {}", self.path.display()))
                    .suggest("check the permissions of the directory above it")
                    .caused_by(error)
            })?;
            self.made.get_or_init(|| ());
        }
        Ok(&self.path)
    }
}
