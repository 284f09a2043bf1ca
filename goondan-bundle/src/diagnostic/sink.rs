//! Collects the diagnostics of one file while it is read.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use super::Diagnostic;

/// Collects the diagnostics of one file. Reading goes on after a mistake, so that one run reports all of them.
///
/// All cursors into the documents of the file share it by reference, hence the `RefCell`.
#[derive(Debug)]
pub(crate) struct Sink {
    file: PathBuf,
    diagnostics: RefCell<Vec<Diagnostic>>,
}

impl Sink {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, diagnostics: RefCell::default() }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Takes a diagnostic of this file, or of a file that this one names.
    pub(crate) fn report(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// As [`Sink::report`], for a diagnostic that may have been reported already.
    pub(crate) fn report_once(&self, diagnostic: Diagnostic) {
        let mut diagnostics = self.diagnostics.borrow_mut();
        if !diagnostics.contains(&diagnostic) {
            diagnostics.push(diagnostic);
        }
    }

    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics.into_inner()
    }
}
