//! Prints the diagnostics of a bundle, in the same way for every command.

use goondan::bundle::Diagnostics;
use goondan::host::OpenError;
use goondan::{Result, json};

use super::{Stream, Styled, excerpt};
use crate::outcome::Outcome;

/// Prints why a bundle could not be opened and returns the outcome of the command. An error that is not a mistake in
/// the bundle is returned: the caller reports it.
pub(crate) fn refused(error: OpenError, as_json: bool) -> Result<Outcome> {
    match error {
        OpenError::Diagnostics(diagnostics) if as_json => super::print_data(object(&diagnostics))?,
        OpenError::Diagnostics(diagnostics) => super::eprint_styled(&page(&diagnostics, Stream::Err)),
        error => return Err(error.into()),
    }
    Ok(Outcome::Misconfigured)
}

/// Returns why a bundle could not be opened as it is printed to standard error, for a command that continues.
pub(crate) fn reason(error: OpenError) -> Styled {
    match error {
        OpenError::Diagnostics(diagnostics) => page(&diagnostics, Stream::Err),
        error => Styled::new(false).text(&super::error_text(&error.into())),
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
