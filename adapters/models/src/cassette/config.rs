//! Config of a model's cassette.

use std::path::PathBuf;

use goondan_core::Result;
use goondan_runtime::{BundlePath, CassetteMode, ProviderContext};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Cassette, format};

/// The settings of a cassette.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CassetteConfig {
    /// The use of the cassette. The option `--cassettes` of the command overrides it.
    pub mode: CassetteMode,
    /// The file. Defaults to `cassettes/<name of the model>.jsonl`.
    #[schemars(example = "./cassettes/main.jsonl")]
    pub file: Option<BundlePath>,
    /// The comparison of requests.
    #[serde(rename = "match")]
    pub matching: Matching,
    /// JSON pointers to members of requests that may differ.
    pub ignore: Vec<String>,
    /// Regular expressions for what is recorded as `***`, besides keys and other secrets that are known.
    pub redact: Vec<String>,
    /// The speed at which answers are played.
    pub pace: Pace,
}

/// The condition under which a request equals a recorded one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Matching {
    /// The same address and the same body.
    #[default]
    Body,
    /// Its turn: exchanges are played in their order, whatever is asked.
    Order,
}

/// The speed at which answers are played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Pace {
    /// At once.
    #[default]
    None,
    /// As slowly as they were recorded, for demonstrations.
    Real,
}

impl CassetteConfig {
    /// Returns what is done with the cassette of a model of a bundle.
    pub(crate) fn mode(&self, at: &ProviderContext<'_>) -> CassetteMode {
        at.cassettes().unwrap_or(self.mode)
    }

    /// Returns the file of the cassette of a model of a bundle.
    pub(crate) fn file(&self, at: &ProviderContext<'_>) -> PathBuf {
        match &self.file {
            Some(file) => at.file(file),
            None => at.root().join("cassettes").join(format!("{}.jsonl", at.model())),
        }
    }

    /// Returns the cassette of a model of a bundle, unless it has none.
    ///
    /// # Errors
    /// As [`Cassette::open`], and when the file is not in the bundle because of a link.
    pub(crate) fn cassette(&self, at: &ProviderContext<'_>) -> Result<Option<Cassette>> {
        let mode = self.mode(at);
        if mode == CassetteMode::Off {
            return Ok(None);
        }
        let file = self.file(at);
        // The file, or the directory in which it will be.
        let around = file.ancestors().find_map(|path| path.canonicalize().ok());
        if !around.zip(at.root().canonicalize().ok()).is_some_and(|(around, root)| around.starts_with(root)) {
            let message = format!("the cassette `{}` leads out of the bundle through a link", file.display());
            return Err(format::refused(message, "name a file in the bundle"));
        }
        Cassette::open(file, mode, self).map(Some)
    }
}
