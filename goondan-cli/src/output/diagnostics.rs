//! Owns a bundle that cannot be used: how it is read, and how all that is wrong with it is told, whatever command found it.

use std::io::{self, IsTerminal};

use goondan::bundle::Diagnostics;
use goondan::{Error, Result, json};

use super::excerpt;
use crate::outcome::Outcome;

/// Why a command that runs a bundle cannot begin.
pub(crate) enum Refusal {
    Diagnostics(Diagnostics),
    /// Something else than what stands in the bundle.
    Error(Error),
}

impl Refusal {
    /// Tells what is wrong, and gives the outcome of the command: an error is told where all of them are.
    pub(crate) fn outcome(self, as_json: bool) -> Result<Outcome> {
        match self {
            Self::Diagnostics(faults) if as_json => super::print(&object(&faults))?,
            Self::Diagnostics(faults) => super::eprint(&page(&faults, &io::stderr())),
            Self::Error(error) => return Err(error),
        }
        Ok(Outcome::Misconfigured)
    }

    /// Tells what is wrong to somebody who goes on without it.
    pub(crate) fn tell(&self) {
        match self {
            Self::Diagnostics(faults) => super::eprint(&page(faults, &io::stderr())),
            Self::Error(error) => super::report(error),
        }
    }
}

impl From<Diagnostics> for Refusal {
    fn from(faults: Diagnostics) -> Self {
        Self::Diagnostics(faults)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// All faults and their number, for `stream`: people see the lines that are meant, programs read one line a fault.
pub(crate) fn page(faults: &Diagnostics, stream: &impl IsTerminal) -> String {
    let told = if stream.is_terminal() { excerpt::page(faults, super::use_color(stream)) } else { faults.to_string() };
    let count = faults.len();
    let what = if count == 1 { "fault" } else { "faults" };
    format!("{}\n{count} {what}\n", told.trim_end())
}

/// All faults for programs.
pub(crate) fn object(faults: &Diagnostics) -> String {
    json!({ "faults": faults, "hints": [] }).to_string() + "\n"
}
