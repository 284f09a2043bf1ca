//! `goondan plugin describe`: the child process that loads a library and prints its schemas. If the library crashes
//! or exits, only this process ends.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use goondan::plugin::{ExtensionSchemas, Library};
use goondan::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::args::PluginDescribeArgs;

/// The output of the child process: one JSON value on standard output.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum DescribeReply {
    Schemas(Vec<ExtensionSchemas>),
    /// The library cannot be loaded, or violates the ABI.
    Failed {
        code: String,
        message: String,
        suggestion: Option<String>,
    },
}

/// Loads the library and prints the reply.
pub(crate) fn describe(args: &PluginDescribeArgs) -> Result<()> {
    let mut output = take_stdout()?;
    let schemas = Library::inspect(&args.file).and_then(|inspected| inspected.load()).map(|loaded| loaded.schemas());
    let reply = match schemas {
        Ok(schemas) => DescribeReply::Schemas(schemas),
        Err(error) => failed(&error),
    };
    Ok(output.write_all(&serde_json::to_vec(&reply)?)?)
}

#[expect(clippy::disallowed_methods, reason = "the reply is for a program, and this process has no other output")]
/// Returns the original standard output and redirects standard output to standard error, so that output of the
/// library is not mistaken for the reply.
fn take_stdout() -> Result<File> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    nix::unistd::dup2_stdout(io::stderr())?;
    Ok(output.into())
}

fn failed(error: &Error) -> DescribeReply {
    let (code, message) = (error.code().to_string(), error.message().into_owned());
    DescribeReply::Failed { code, message, suggestion: error.suggestion().map(str::to_owned) }
}
