//! A bundle on disk, read anew for each reload.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use goondan_bundle::{Bundle, KnownExtension, Libraries};
use goondan_runtime::CassetteMode;

use crate::error::OpenError;

/// Where a host reads its bundle, at first and for each reload, and the things it is checked against: the extensions
/// that are linked into this program and, with [`Source::libraries`], those in libraries.
#[derive(Clone)]
pub struct Source {
    path: PathBuf,
    allow_absolute: bool,
    cassettes: Option<CassetteMode>,
    libraries: Option<Arc<dyn Libraries>>,
}

impl Source {
    /// A directory with a `goondan.yaml`, or a YAML file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), allow_absolute: false, cassettes: None, libraries: None }
    }

    /// Sets whether entries may be absolute paths. Defaults to `false`, as
    /// [`Reader::allow_absolute`](goondan_bundle::Reader::allow_absolute) does.
    #[must_use]
    pub fn allow_absolute(mut self, allowed: bool) -> Self {
        self.allow_absolute = allowed;
        self
    }

    /// Sets whether all models record or play their cassettes, whatever the bundle says.
    #[must_use]
    pub fn cassettes(mut self, mode: CassetteMode) -> Self {
        self.cassettes = Some(mode);
        self
    }

    /// Sets the loader of the libraries that the bundle names. Without it, such a bundle cannot be opened.
    #[must_use]
    pub fn libraries(mut self, libraries: impl Libraries + 'static) -> Self {
        self.libraries = Some(Arc::new(libraries));
        self
    }

    /// Reads and checks the bundle.
    pub(crate) fn read_bundle(&self) -> Result<Bundle, OpenError> {
        let linked = KnownExtension::linked();
        let mut reader = Bundle::reader().allow_absolute(self.allow_absolute).linked(&linked);
        if let Some(libraries) = self.loader() {
            reader = reader.libraries(libraries);
        }
        if let Some(mode) = self.cassettes {
            reader = reader.cassettes(mode);
        }
        let bundle = reader.check(&self.path)?;
        bundle.check_values()?;
        Ok(bundle)
    }

    pub(crate) fn loader(&self) -> Option<&dyn Libraries> {
        self.libraries.as_deref()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Source").field(&self.path).finish()
    }
}
