//! The log of a test: a file, because an extension in a library shares nothing else with the test.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// The file in which the extensions of a test log what they see.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Log(PathBuf);

impl Log {
    /// Appends one line, as JSON, because the text may contain line ends.
    pub(crate) fn write(&self, line: impl Into<String>) {
        let line = format!("{}\n", serde_json::Value::from(line.into()));
        OpenOptions::new().append(true).open(&self.0).unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// The config of an extension that takes only the log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogConfig {
    pub(crate) log: Log,
}
