//! `goondan completions` and `goondan man`.

use std::path::PathBuf;

use clap_complete::Shell;

/// Print the completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompletionsArgs {
    pub(crate) shell: Shell,
}

/// Write the manual pages: one for the command, and one for each of its subcommands.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ManArgs {
    /// The directory for the pages; it is created if it does not exist.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
