//! The provider `scripted`: plays the answers of a YAML file.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use goondan_core::{BundleFile, BundleFileError, ErrorCode, Result};
use goondan_runtime::{
    BundlePath, Finding, Findings, Model, ModelProvider, ProviderContext, ScriptItem, ScriptedModel, model_provider,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::plain::parse;
use crate::source;

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
        let text = match BundleFile::open_within(at.root(), &script) {
            Ok(file) => Ok(source::read_open(&script, file)),
            Err(BundleFileError::Io(error)) if error.kind() != ErrorKind::NotFound => Ok(source::read(&script)),
            Err(BundleFileError::Io(_)) => Err("names a file that does not exist"),
            Err(BundleFileError::Outside) => Err("leads out of the bundle through a link"),
            Err(_) => Err("names no regular file"),
        };
        match text {
            Ok(text) => {
                // RULE-02: the script of a model is checked before any turn.
                let errors = text.and_then(|text| items(&script, text)).err().into_iter().flatten();
                errors.for_each(|error| found.add(in_script(error)));
            }
            Err(problem) => {
                let message = format!("`spec.script` {problem}: `{}`", script.display());
                let remedy = "create it, or write its path relative to the bundle";
                found.add(Finding::error(ErrorCode::CONFIG_ENTRY_NOT_FOUND, "/script", message, remedy));
            }
        }
        found.file(script);
    }

    fn build(config: ScriptedConfig, at: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        let script = at.file(&config.script);
        let items = source::read(&script).and_then(|text| items(&script, text)).map_err(Diagnostics::into_error)?;
        Ok(Box::new(ScriptedModel::new(items)))
    }
}

model_provider!(Scripted);

/// The text of the script that was read last, and its items. A start checks the script and then makes the model of it:
/// reading its items and patterns once saves a tenth of it.
static LAST: Mutex<(String, Vec<ScriptItem>)> = Mutex::new((String::new(), Vec::new()));

/// Returns the items of a script.
fn items(script: &Path, text: String) -> Result<Vec<ScriptItem>, Diagnostics> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    // An empty one is an error each time.
    if text.is_empty() || text != last.0 {
        let items = parse(script, &text)?;
        *last = (text, items);
    }
    Ok(last.1.clone())
}

fn in_script(error: Diagnostic) -> Finding {
    let Diagnostic { code, file, place, message, suggestion, .. } = error;
    let code = code.unwrap_or(ErrorCode::CONFIG_SCHEMA);
    Finding::error(code, "/script", message, suggestion).in_file(file, place.map(|place| (place.line, place.column)))
}
