//! Owns the log on standard error: what extensions and the runtime tell beside the answers.

use std::env;
use std::io::{self, IsTerminal};

use goondan::{Error, ErrorCode, Result};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Which lines are written: `goondan::extension=debug,warn` shows debug lines of extensions, and warnings of everything.
const VARIABLE: &str = "GOONDAN_LOG";

/// What extensions have to say, and what others warn of.
const DEFAULT: &str = "goondan::extension=info,warn";

pub(crate) fn to_stderr() -> Result<()> {
    let filter = env::var(VARIABLE).unwrap_or_else(|_| DEFAULT.to_owned());
    let filter: Targets = filter.parse().map_err(|error| {
        Error::new(ErrorCode::USAGE, format!("`{VARIABLE}` is not a filter of log lines"))
            .suggest(format!("write it like `{DEFAULT}`"))
            .caused_by(error)
    })?;
    // Colours are for people; in a file they are noise.
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
    tracing_subscriber::registry().with(lines).with(filter).init();
    Ok(())
}
