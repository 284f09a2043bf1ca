//! Findings of a provider in the config of a model.

use std::path::PathBuf;

use goondan_core::ErrorCode;

/// Collects the findings of a provider in a config.
///
/// Settings are named by JSON pointers into the config, such as `/timeouts/idleMs`; the empty one means all of it.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    found: Vec<Finding>,
    files: Vec<PathBuf>,
    recordings: Vec<PathBuf>,
    hosts: Vec<String>,
    variables: Vec<String>,
}

impl Findings {
    /// Adds an error: the model cannot be used. `remedy` is for the author.
    pub fn error(&mut self, setting: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) {
        self.add(Finding::error(ErrorCode::CONFIG_SCHEMA, setting, message, remedy));
    }

    /// Adds a hint: the model can be used, but probably not as its author wants.
    pub fn hint(&mut self, setting: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) {
        self.add(Finding::new(None, setting.into(), message.into(), remedy.into()));
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        self.found.push(finding);
    }

    /// Adds a file that the model reads: it belongs to the bundle, is watched for changes, and nothing is recorded to
    /// it.
    pub fn file(&mut self, path: impl Into<PathBuf>) {
        self.files.push(path.into());
    }

    /// Adds a file that the model does not read now, but would with other settings, such as a recording that tests
    /// play. It belongs to the bundle, so that no tool writes it.
    pub fn recording(&mut self, path: impl Into<PathBuf>) {
        self.recordings.push(path.into());
    }

    /// Adds a host that the model connects to although no setting names it, as a URL. Settings that name one are marked
    /// in the schema of the config: `#[schemars(extend("x-goondan" = "host"))]`.
    pub fn host(&mut self, url: impl Into<String>) {
        self.hosts.push(url.into());
    }

    /// Adds a variable of the environment that the model reads although no setting names it.
    // TRUST-01
    pub fn variable(&mut self, name: impl Into<String>) {
        self.variables.push(name.into());
    }

    /// Iterates over the findings.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter()
    }

    /// Returns the files that the model reads.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the files that the model would read with other settings.
    pub fn recordings(&self) -> &[PathBuf] {
        &self.recordings
    }

    /// Returns the hosts that no setting names.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Returns the variables of the environment that no setting names.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }
}

/// Something that a provider found in a config.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The stable code of an error; hints have none.
    pub code: Option<ErrorCode>,
    /// Where it is.
    pub place: FindingPlace,
    /// The fault.
    pub message: String,
    /// The remedy for the author.
    pub remedy: String,
}

/// The place of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingPlace {
    /// A setting, as a JSON pointer into the config.
    Setting(String),
    /// A file that a setting names.
    File {
        /// The file.
        path: PathBuf,
        /// The line and the column, both from 1, if there is text to point at.
        at: Option<(u64, u64)>,
    },
}

impl Finding {
    /// Returns an error at a setting.
    pub fn error(
        code: ErrorCode,
        setting: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(Some(code), setting.into(), message.into(), remedy.into())
    }

    fn new(code: Option<ErrorCode>, setting: String, message: String, remedy: String) -> Self {
        Self { code, place: FindingPlace::Setting(setting), message, remedy }
    }

    /// Sets the place to a file that a setting names, with a line and a column, both from 1.
    #[must_use]
    pub fn in_file(self, path: impl Into<PathBuf>, at: Option<(u64, u64)>) -> Self {
        Self { place: FindingPlace::File { path: path.into(), at }, ..self }
    }
}
