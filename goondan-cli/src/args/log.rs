//! `--log-level` and `--log-format`, which every command has.

use clap::ValueEnum;
use tracing_subscriber::filter::LevelFilter;

/// Where the help of every command lists these options: behind its own.
const HEADING: &str = "Logging";

/// The content and form of the log on standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Log this level and above: off, error, warn, info, debug or trace. Overrides $RUST_LOG.
    #[arg(long = "log-level", value_name = "LEVEL", help_heading = HEADING, global = true, hide_possible_values = true)]
    pub(crate) level: Option<LogLevel>,

    /// Format of the log: `pretty` for people, or `json`, one object per line.
    #[arg(long = "log-format", value_name = "FORMAT", help_heading = HEADING, global = true, default_value = "pretty")]
    pub(crate) format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Pretty,
    Json,
}
