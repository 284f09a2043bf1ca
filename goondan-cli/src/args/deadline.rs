//! The deadline of a library that is run to get its schemas.

use std::time::Duration;

/// The deadline of a process that loads a library to get its schemas.
#[derive(Debug, clap::Args)]
pub(crate) struct DeadlineArgs {
    /// The deadline of a library that is run.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    deadline: u64,
}

impl DeadlineArgs {
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.deadline)
    }
}
