//! `goondan plugin`.

use std::path::PathBuf;

use super::bundle::OptionalBundleArgs;
use super::deadline::DeadlineArgs;

/// List extensions, and inspect or pack libraries of extensions.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    pub(crate) command: PluginCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum PluginCommand {
    List(PluginListArgs),
    Inspect(PluginInspectArgs),
    Pack(PluginPackArgs),
    /// The child process of `inspect --describe`, `pack`, `check --describe` and `schema --describe`.
    #[command(hide = true)]
    Describe(PluginDescribeArgs),
}

/// List the providers and extensions of this program, and the extensions in the libraries of a bundle.
///
/// For each extension: its middlewares with kind, priority and function, its tools, the events
/// that it subscribes to, and the capabilities that it requires. For an extension in a library,
/// which is read but not loaded, also the entry by which the bundle names it and the size of the
/// file. What an extension registers at run time, in its initialization, is listed with --start.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PluginListArgs {
    #[command(flatten)]
    pub(crate) bundle: OptionalBundleArgs,

    /// Also start the extensions of the bundle's agents, as a conversation does, and list the tools that each agent
    /// then has, and what the extensions say about themselves. This starts MCP servers.
    #[arg(long, requires = "path")]
    pub(crate) start: bool,

    /// With --start, start the extensions whatever they can do, without asking: see `goondan check --capabilities`.
    #[arg(long, requires = "start")]
    pub(crate) trust: bool,

    /// Print one JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the content of a library without running any of its code.
///
/// It shows the versions that the library was built for, its extensions and what they declare,
/// and the schemas of configs and tools, if `goondan plugin pack` added them to the file, with the
/// settings by which an extension acts outside of conversations.
///
/// Exit status: 0 this program can load the library; 2 it cannot, and the error says why.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PluginInspectArgs {
    /// The library.
    pub(crate) file: PathBuf,

    /// If the library contains no schemas, run it in a separate process to get them.
    #[arg(long)]
    pub(crate) describe: bool,

    #[command(flatten)]
    pub(crate) deadline: DeadlineArgs,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Add the schemas of a library's configs and tools to its file.
///
/// The library is run in a separate process to get them. Afterwards `inspect` and `check` find the
/// schemas without running the library. It loads as before, but its digest changes.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PluginPackArgs {
    /// The library.
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) deadline: DeadlineArgs,
}

/// Load a library and write its schemas to standard output.
#[derive(Debug, clap::Args)]
pub(crate) struct PluginDescribeArgs {
    pub(crate) file: PathBuf,
}
