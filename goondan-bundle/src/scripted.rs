//! The provider `scripted`: plays the answers of a YAML file.

use std::io::ErrorKind;

use goondan_core::{BundleFile, BundleFileError, ErrorCode, Result};
use goondan_runtime::{
    BundlePath, Finding, Findings, Model, ModelProvider, ProviderContext, ScriptItem, ScriptedModel, model_provider,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::diagnostic::Diagnostic;
use crate::plain::{read_file, read_yaml};

struct Scripted;

#[derive(Deserialize, JsonSchema)]
struct ScriptedConfig {
    /// The YAML file with the answers.
    #[schemars(example = "./script.yaml")]
    script: BundlePath,
}

impl ModelProvider for Scripted {
    const NAME: &'static str = "scripted";
    const DESCRIPTION: &'static str = "Plays a list of answers: no key, no network.";
    type Config = ScriptedConfig;

    fn check(config: &ScriptedConfig, at: &ProviderContext<'_>, found: &mut Findings) {
        let script = at.file(&config.script);
        let problem = match BundleFile::open_within(at.root(), &script) {
            Ok(_) => None,
            Err(BundleFileError::Io(error)) if error.kind() != ErrorKind::NotFound => None,
            Err(BundleFileError::Io(_)) => Some("names a file that does not exist"),
            Err(BundleFileError::Outside) => Some("leads out of the bundle through a link"),
            Err(_) => Some("names no regular file"),
        };
        match problem {
            None => {
                // RULE-02: the script of a model is checked before any turn.
                let errors = read_file::<Vec<ScriptItem>>(&script).err().into_iter().flatten();
                errors.for_each(|error| found.add(in_script(error)));
            }
            Some(problem) => {
                let message = format!("`spec.script` {problem}: `{}`", script.display());
                let remedy = "create it, or write its path relative to the bundle";
                found.add(Finding::error(ErrorCode::CONFIG_ENTRY_NOT_FOUND, "/script", message, remedy));
            }
        }
        found.file(script);
    }

    fn build(config: ScriptedConfig, at: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        Ok(Box::new(ScriptedModel::new(read_yaml::<Vec<ScriptItem>>(at.file(&config.script))?)))
    }
}

model_provider!(Scripted);

fn in_script(error: Diagnostic) -> Finding {
    let Diagnostic { code, file, place, message, suggestion, .. } = error;
    let code = code.unwrap_or(ErrorCode::CONFIG_SCHEMA);
    Finding::error(code, "/script", message, suggestion).in_file(file, place.map(|place| (place.line, place.column)))
}
