//! Prints the diagnostics of a bundle, in the same way for every command.

use std::fmt;

use goondan::bundle::Diagnostics;
use goondan::{Error, Result, json};

use super::{Stream, Styled, excerpt};
use crate::outcome::Outcome;

/// Why a bundle could not be loaded for a command.
pub(crate) enum LoadError {
    Diagnostics(Diagnostics),
    /// Not a mistake in the bundle, such as an unknown agent on the command line.
    Error(Error),
}

impl LoadError {
    /// Prints the diagnostics and returns the outcome of the command. An `Error` is returned: the caller reports it.
    pub(crate) fn outcome(self, as_json: bool) -> Result<Outcome> {
        match self {
            Self::Diagnostics(diagnostics) if as_json => super::print_data(object(&diagnostics))?,
            Self::Diagnostics(diagnostics) => super::eprint_styled(&page(&diagnostics, Stream::Err)),
            Self::Error(error) => return Err(error),
        }
        Ok(Outcome::Misconfigured)
    }

    /// Returns the reason as it is printed to standard error, for a command that continues.
    pub(crate) fn page(&self) -> Styled {
        match self {
            Self::Diagnostics(diagnostics) => page(diagnostics, Stream::Err),
            Self::Error(error) => Styled::new(false).text(&super::error_text(error)),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diagnostics(diagnostics) => diagnostics.fmt(f),
            Self::Error(error) => error.report().fmt(f),
        }
    }
}

impl From<Diagnostics> for LoadError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Diagnostics(diagnostics)
    }
}

impl From<Error> for LoadError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Returns all diagnostics and their number: with excerpts of the files if `stream` is a terminal, otherwise one line
/// each and its remedy.
pub(crate) fn page(diagnostics: &Diagnostics, stream: Stream) -> Styled {
    let page = if stream.is_terminal() {
        excerpt::page(diagnostics, stream.uses_color())
    } else {
        Styled::new(false).text(diagnostics.to_string().trim_end())
    };
    let count = diagnostics.len();
    let what = if count == 1 { "fault" } else { "faults" };
    page.text(&format!("\n{count} {what}\n"))
}

/// Returns all diagnostics as one JSON object.
pub(crate) fn object(diagnostics: &Diagnostics) -> String {
    json!({ "faults": diagnostics, "hints": [] }).to_string() + "\n"
}
