//! Owns the log on standard error: which lines are written, for people or, in `json`, for programs.

mod json;
mod panics;

use std::env;
use std::io::{self, Write};

use goondan::secret::mask;
use goondan::{Error, ErrorCode, Result};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

pub(crate) use panics::hide_secrets as hide_secrets_in_panics;

use crate::args::{LogArgs, LogFormat};
use crate::output;

/// Which lines are written: `goondan::extension=debug,warn` shows debug lines of extensions, and warnings of everything.
const VARIABLE: &str = "RUST_LOG";

/// What extensions have to say, and what others warn of.
const DEFAULT: &str = "goondan::extension=info,warn";

pub(crate) fn to_stderr(args: &LogArgs) -> Result<()> {
    let filter = match args.level {
        Some(level) => Targets::new().with_default(LevelFilter::from(level)),
        None => from_environment()?,
    };
    let registry = tracing_subscriber::registry();
    match args.format {
        LogFormat::Pretty => {
            let lines = fmt::layer().with_writer(|| Lines { mask: true });
            registry.with(lines.with_ansi(output::use_color(&io::stderr()))).with(filter).init();
        }
        LogFormat::Json => {
            // A mask over numbers and braces would leave no JSON: the values are masked before.
            let lines = fmt::layer().with_writer(|| Lines { mask: false });
            registry.with(lines.fmt_fields(json::Fields).event_format(json::Line)).with(filter).init();
        }
    }
    Ok(())
}

/// The lines of the log, each in one piece, on standard error. Where they cannot be written nobody wants to read them.
struct Lines {
    mask: bool,
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = if self.mask { mask(&text) } else { text.as_ref().into() };
        _ = io::stderr().lock().write_all(text.as_bytes());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn from_environment() -> Result<Targets> {
    let set = env::var_os(VARIABLE).filter(|filter| !filter.is_empty());
    let filter = set.map_or_else(|| DEFAULT.to_owned(), |filter| filter.to_string_lossy().into_owned());
    filter.parse().map_err(|error| {
        Error::new(ErrorCode::USAGE, format!("`{VARIABLE}` is not a filter of log lines"))
            .suggest(format!("write it like `{DEFAULT}`"))
            .caused_by(error)
    })
}
