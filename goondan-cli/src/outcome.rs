//! The end of a command, and the exit code for it.

use std::process::ExitCode;

use goondan::Error;

/// The work failed.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong.
const USAGE: u8 = 2;
/// The turn waits for a decision.
const SUSPENDED: u8 = 3;
/// Ended by Ctrl-C: 128 plus the number of SIGINT, as shells report it.
const INTERRUPTED: u8 = 130;

/// The end of a command that returned no error.
pub(crate) enum Outcome {
    Done,
    /// At least one turn failed, or something is left to repair.
    SomeFailed,
    /// The bundle has mistakes, which were reported.
    Misconfigured,
    /// The last turn waits for a decision.
    // ASK-01
    Suspended,
    /// Ctrl-C ended it.
    Interrupted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::SomeFailed => Self::from(FAILED),
            Outcome::Misconfigured => Self::from(USAGE),
            Outcome::Suspended => Self::from(SUSPENDED),
            Outcome::Interrupted => Self::from(INTERRUPTED),
        }
    }
}

/// Returns the exit code for a command that returned `error`.
pub(crate) fn exit_code(error: &Error) -> ExitCode {
    ExitCode::from(if error.code().is_configuration() { USAGE } else { FAILED })
}
