//! Owns the child process that asks a library for its schemas: the library runs there, and whatever it does ends with that
//! process.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use goondan::{Error, ExtensionSchemas, Library, Result};
use serde::{Deserialize, Serialize};

use crate::args::PluginDescribeArgs;

/// What the child writes to its standard output, as one JSON value.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Answer {
    Schemas(Vec<ExtensionSchemas>),
    /// The library cannot be loaded, or does not keep to the contract.
    Failed {
        code: String,
        message: String,
        suggestion: Option<String>,
    },
}

/// Loads the library, and answers.
pub(crate) fn describe(args: &PluginDescribeArgs) -> Result<()> {
    let mut output = take_stdout()?;
    let schemas = Library::inspect(&args.file).and_then(|inspected| inspected.load()).map(|loaded| loaded.schemas());
    let answer = match schemas {
        Ok(schemas) => Answer::Schemas(schemas),
        Err(error) => failed(&error),
    };
    Ok(output.write_all(&serde_json::to_vec(&answer)?)?)
}

/// What is written to standard output from now on goes to standard error: a library may say what it likes, and nobody takes
/// it for the answer.
fn take_stdout() -> Result<File> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    nix::unistd::dup2_stdout(io::stderr())?;
    Ok(output.into())
}

fn failed(error: &Error) -> Answer {
    let (code, message) = (error.code().to_string(), error.message().into_owned());
    Answer::Failed { code, message, suggestion: error.suggestion().map(str::to_owned) }
}
