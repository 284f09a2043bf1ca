//! Why a bundle cannot be opened, or is not reloaded.

use std::fmt;

use goondan_bundle::{Capabilities, Diagnostics};
use goondan_core::{Error, ErrorCode};

/// Why a bundle cannot be opened, or is not reloaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The bundle has mistakes, each with its place.
    Diagnostics(Diagnostics),
    /// With the changed bundle, agents could do something that they cannot do now. The reload waits for
    /// [`Reloader::accept`](crate::Reloader::accept).
    Adds(Capabilities),
    /// Everything else, such as a library that cannot be loaded.
    Error(Error),
}

impl OpenError {
    /// Returns the code of the error, or of the first mistake.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Diagnostics(diagnostics) => diagnostics.clone().into_error().code().clone(),
            Self::Adds(_) => ErrorCode::RELOAD_ADDS,
            Self::Error(error) => error.code().clone(),
        }
    }
}

/// All mistakes, or the report of the error.
impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diagnostics(diagnostics) => diagnostics.fmt(f),
            Self::Adds(added) => adds(added).report().fmt(f),
            Self::Error(error) => error.report().fmt(f),
        }
    }
}

/// So that `?` converts it to an [`Error`] with its code, the first of the mistakes.
impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Diagnostics(diagnostics) => diagnostics.into_error(),
            OpenError::Adds(added) => adds(&added),
            OpenError::Error(error) => error,
        }
    }
}

fn adds(added: &Capabilities) -> Error {
    Error::new(ErrorCode::RELOAD_ADDS, format!("the changed bundle adds: {added}"))
        .suggest("look at the change, and start the program again if it is right")
}

impl From<Diagnostics> for OpenError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Diagnostics(diagnostics)
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
