//! Owns the ways to read a bundle: what is known of extensions meanwhile, and what its entries may be.

use std::path::Path;

use goondan_core::Result;

use super::Bundle;
use crate::configs::Configs;
use crate::diagnostic::Diagnostics;
use crate::known::KnownExtension;
use crate::libraries::Libraries;

/// How a bundle is read; made by [`Bundle::reader`].
#[derive(Clone, Copy, Default)]
pub struct Reader<'a> {
    pub(crate) linked: Option<&'a [KnownExtension<'a>]>,
    pub(crate) libraries: Option<&'a dyn Libraries>,
    pub(crate) absolute: bool,
}

impl Bundle {
    /// A reader that knows nothing of extensions.
    pub fn reader<'a>() -> Reader<'a> {
        Reader::default()
    }
}

impl<'a> Reader<'a> {
    /// In a program that has these extensions. An entry that is none of them is a fault, and so are a config that does not
    /// fit, and extensions of an agent that cannot be brought into an order (ORDER-11).
    #[must_use]
    pub fn linked(mut self, extensions: &'a [KnownExtension<'a>]) -> Self {
        self.linked = Some(extensions);
        self
    }

    /// With libraries that are looked into: one that could not be loaded is a fault, and so are a config that does not fit
    /// what it tells, and extensions of an agent that cannot be brought into an order (ORDER-11).
    #[must_use]
    pub fn libraries(mut self, libraries: &'a dyn Libraries) -> Self {
        self.libraries = Some(libraries);
        self
    }

    /// Whether entries may be absolute paths. Unless said so they may not: who writes a bundle does not choose which files
    /// of the machine are run.
    #[must_use]
    pub fn allow_absolute(mut self, allowed: bool) -> Self {
        self.absolute = allowed;
        self
    }

    /// Reads the bundle, as [`Bundle::check`] does.
    ///
    /// # Errors
    /// Everything that is wrong, at once (RULE-02).
    pub fn check(&self, path: impl AsRef<Path>) -> Result<Bundle, Diagnostics> {
        Bundle::open(path.as_ref(), &Configs::new(self))
    }

    /// Reads the bundle, as [`Bundle::load`] does.
    ///
    /// # Errors
    /// The first fault; see [`Bundle::load`].
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Bundle> {
        self.check(path).map_err(Diagnostics::into_error)
    }
}
