//! Owns the log of a test: a file, because an extension in a library shares nothing else with the test.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// Where the extensions of a test write down what they see.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Log(PathBuf);

impl Log {
    /// Adds one line, as JSON: what is written may have lines of its own.
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
