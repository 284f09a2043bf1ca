//! A reader of bundles: the extensions that bundles are checked against, and the entries that they may have.

use std::path::Path;

use goondan_core::Result;
use goondan_runtime::CassetteMode;

use super::Bundle;
use crate::diagnostic::Diagnostics;
use crate::known::KnownExtension;
use crate::libraries::Libraries;

/// Reads bundles with options; made by [`Bundle::reader`].
#[derive(Clone, Copy, Default)]
pub struct Reader<'a> {
    pub(super) linked: Option<&'a [KnownExtension<'a>]>,
    pub(super) libraries: Option<&'a dyn Libraries>,
    pub(super) allow_absolute: bool,
    pub(super) cassettes: Option<CassetteMode>,
}

impl Bundle {
    /// Returns a reader without any extensions: entries and configs are not checked.
    pub fn reader<'a>() -> Reader<'a> {
        Reader::default()
    }
}

impl<'a> Reader<'a> {
    /// Sets the extensions of the program. Errors are then also: entries of other extensions, configs that do not fit,
    /// and extensions of an agent that cannot be ordered.
    // ORDER-11
    #[must_use]
    pub fn linked(mut self, extensions: &'a [KnownExtension<'a>]) -> Self {
        self.linked = Some(extensions);
        self
    }

    /// Sets the loader that inspects libraries. Errors are then also: libraries that could not be loaded, configs
    /// that do not fit the schemas that they contain, and extensions of an agent that cannot be ordered.
    // ORDER-11
    #[must_use]
    pub fn libraries(mut self, libraries: &'a dyn Libraries) -> Self {
        self.libraries = Some(libraries);
        self
    }

    /// Sets whether entries may be absolute paths. Defaults to `false`: the author of a bundle must not choose which
    /// files of the machine are run.
    #[must_use]
    pub fn allow_absolute(mut self, allowed: bool) -> Self {
        self.allow_absolute = allowed;
        self
    }

    /// Sets whether all models record or play their cassettes, whatever the bundle says. With
    /// [`CassetteMode::Replay`], they play recorded exchanges with their providers, and need no keys.
    #[must_use]
    pub fn cassettes(mut self, mode: CassetteMode) -> Self {
        self.cassettes = Some(mode);
        self
    }

    /// Reads a bundle, as [`Bundle::check`] does.
    ///
    /// # Errors
    /// All errors of the bundle at once.
    // RULE-02
    pub fn check(&self, path: impl AsRef<Path>) -> Result<Bundle, Diagnostics> {
        Bundle::open(path.as_ref(), self)
    }

    /// Reads a bundle, as [`Bundle::load`] does.
    ///
    /// # Errors
    /// The first error of the bundle; see [`Bundle::load`].
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Bundle> {
        self.check(path).map_err(Diagnostics::into_error)
    }
}
