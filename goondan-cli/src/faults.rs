//! Owns a bundle that cannot be used: how it is read, and how all that is wrong with it is told, whatever command found it.

use std::io::{self, IsTerminal};

use goondan::bundle::{Diagnostics as Faults, KnownExtension, Libraries};
use goondan::{Bundle, Error, Result, json};

use crate::args::BundleArgs;
use crate::excerpt;
use crate::run::Outcome;

/// Why a command that runs a bundle cannot begin.
pub(crate) enum Refusal {
    Faults(Faults),
    /// Something else than what stands in the bundle.
    Error(Error),
}

/// Reads a bundle for this program. The extensions that it names are there, in this program or in `libraries`, and their
/// configs fit.
pub(crate) fn read(bundle: &BundleArgs, libraries: &dyn Libraries) -> Result<Bundle, Faults> {
    bundle.reader().linked(&KnownExtension::linked()).libraries(libraries).check(&bundle.path)
}

impl Refusal {
    /// Tells what is wrong, and gives the outcome of the command: an error is told where all of them are.
    pub(crate) fn outcome(self, as_json: bool) -> Result<Outcome> {
        match self {
            Self::Faults(faults) if as_json => crate::print(&object(&faults))?,
            Self::Faults(faults) => crate::say(&page(&faults, &io::stderr())),
            Self::Error(error) => return Err(error),
        }
        Ok(Outcome::Misconfigured)
    }

    /// Tells what is wrong to somebody who goes on without it.
    pub(crate) fn tell(&self) {
        match self {
            Self::Faults(faults) => crate::say(&page(faults, &io::stderr())),
            Self::Error(error) => crate::report(error),
        }
    }
}

impl From<Faults> for Refusal {
    fn from(faults: Faults) -> Self {
        Self::Faults(faults)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// All faults and their number, for `stream`: people see the lines that are meant, programs read one line a fault.
pub(crate) fn page(faults: &Faults, stream: &impl IsTerminal) -> String {
    let told = if stream.is_terminal() { excerpt::page(faults, crate::in_colour(stream)) } else { faults.to_string() };
    let count = faults.len();
    let what = if count == 1 { "fault" } else { "faults" };
    format!("{}\n{count} {what}\n", told.trim_end())
}

/// All faults for programs.
pub(crate) fn object(faults: &Faults) -> String {
    json!({ "faults": faults, "hints": [] }).to_string() + "\n"
}
