//! Owns the command line: what the user can ask for, and the help that says so.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Runs LLM agents that native extensions shape.
#[derive(Debug, Parser)]
#[command(name = "goondan", version, about, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
}

/// Hold a conversation with an agent of a bundle.
///
/// Without --input, each line of standard input that is not blank is one event; on a terminal that is a conversation. The
/// conversation is stored: the next run with the same --instance continues it.
///
/// Exit status: 0 every turn was answered, 1 a turn failed, 2 the command line or the bundle is wrong.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RunArgs {
    /// The bundle: a directory with a goondan.yaml, or a YAML file.
    #[arg(default_value = ".")]
    pub(crate) bundle: PathBuf,

    /// The agent to talk to [default: the entry agent of the swarm, or the only agent].
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Which conversation of the agent to continue or begin.
    #[arg(long, value_name = "KEY", default_value = "default")]
    pub(crate) instance: String,

    /// Handle this one event instead of those on standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) input: Option<String>,

    /// Print one JSON object a turn: turnId, finishReason, response, steps, toolCalls, and error if it failed.
    #[arg(long)]
    pub(crate) json: bool,

    /// Where conversations are stored [default: $GOONDAN_STATE_ROOT, or ~/.goondan].
    #[arg(long, value_name = "DIR")]
    pub(crate) state_root: Option<PathBuf>,
}
