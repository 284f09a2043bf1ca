//! Owns the command line: what the user can ask for, and the help that says so.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use goondan::bundle::{Entry, LibraryEntry, Reader};
use goondan::{Bundle, ExtensionName, Result};
use tracing_subscriber::filter::LevelFilter;

use crate::new;

const LOG: &str = "\
Log: extensions and the runtime write to standard error what is not an answer. --log-level says which lines, else RUST_LOG, a \
list such as goondan::extension=debug,warn; without either they are those of RUST_LOG=goondan::extension=info,warn. Colours \
are for terminals, and NO_COLOR turns them off.";

/// Runs LLM agents that native extensions shape.
#[derive(Debug, Parser)]
#[command(name = "goondan", version, about, max_term_width = 100, after_long_help = LOG)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is told on standard error beside the answers, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Log everything from this level up: off, error, warn, info, debug or trace. Goes before $RUST_LOG.
    #[arg(long = "log-level", value_name = "LEVEL", global = true, hide_possible_values = true)]
    pub(crate) level: Option<LogLevel>,

    /// How the log is written: `pretty`, lines for people, or `json`, one object a line.
    #[arg(long = "log-format", value_name = "FORMAT", global = true, default_value = "pretty")]
    pub(crate) format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Pretty,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Check(CheckArgs),
    Order(OrderArgs),
    Instance(InstanceArgs),
    Schema(SchemaArgs),
    New(NewArgs),
    Plugin(PluginArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Which bundle, and what it may name.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct BundleArgs {
    /// The bundle: a directory with a goondan.yaml, or a YAML file.
    #[arg(value_name = "BUNDLE", default_value = ".")]
    pub(crate) path: PathBuf,

    /// Let the bundle name libraries by absolute paths, not only those that lie in it.
    #[arg(long)]
    pub(crate) allow_absolute_plugins: bool,
}

impl BundleArgs {
    pub(crate) fn reader<'a>(&self) -> Reader<'a> {
        Bundle::reader().allow_absolute(self.allow_absolute_plugins)
    }
}

/// A bundle, for a command that does without one.
#[derive(Debug, clap::Args)]
pub(crate) struct MaybeBundle {
    /// A bundle whose libraries are looked into: a directory with a goondan.yaml, or a YAML file.
    #[arg(value_name = "BUNDLE")]
    path: Option<PathBuf>,

    /// Let the bundle name libraries by absolute paths, not only those that lie in it.
    #[arg(long, requires = "path")]
    allow_absolute_plugins: bool,
}

impl MaybeBundle {
    /// The extensions of the bundle that are in libraries, by name. What else it says need not be right.
    pub(crate) fn libraries(&self) -> Result<Vec<LibraryEntry>> {
        let Some(path) = &self.path else { return Ok(Vec::new()) };
        let bundle = Bundle::reader().allow_absolute(self.allow_absolute_plugins).load(path)?;
        let entries = bundle.extensions().filter_map(|extension| match &extension.entry {
            Entry::Library(library) => Some(library.clone()),
            _ => None,
        });
        Ok(entries.collect())
    }
}

/// Hold a conversation with an agent of a bundle.
///
/// Without --input, each line of standard input that is not blank is one event; on a terminal that is a conversation. The
/// conversation is stored: the next run with the same --instance continues it.
///
/// Ctrl-C cancels the running turn: on a terminal the conversation goes on, elsewhere it ends. SIGTERM, and a terminal that
/// goes away, let the running turn end and take no new event. A second signal ends the process at once. What a cancelled turn
/// had said is kept.
///
/// Exit status: 0 every turn was answered, or SIGTERM; 1 a turn failed, 2 the command line or the bundle is wrong, 130 Ctrl-C.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) bundle: BundleArgs,

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

    /// Reload between two turns when files of the bundle, scripts of its models, or its libraries change.
    #[arg(long, conflicts_with = "input")]
    pub(crate) watch: bool,

    /// When the conversation is synced to the disk [default: what the swarm says, or turn].
    #[arg(long, value_name = "WHEN")]
    pub(crate) fsync: Option<Sync>,

    /// Where conversations are stored [default: $GOONDAN_STATE_ROOT, or ~/.goondan].
    #[arg(long, value_name = "DIR")]
    pub(crate) state_root: Option<PathBuf>,

    /// How long a running turn may go on after SIGTERM before it is cancelled.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    grace: u64,
}

impl RunArgs {
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
}

/// When a conversation is synced to the disk.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Sync {
    /// At the end of each turn, and before each tool call that may act on the world.
    Turn,
    /// Whenever something was said.
    Always,
    /// Never: a machine that stops may take the newest turns with it, and damage files.
    Never,
}

/// Find everything that is wrong with a bundle, without running anything.
///
/// Libraries are read, and not loaded. The config of an extension in one is checked if the library tells what it must be: see
/// `goondan plugin pack`.
///
/// Each fault comes with its place, what was expected, and the remedy. Hints are about bundles that are right, but perhaps
/// not meant so.
///
/// Exit status: 0 no faults, 2 faults.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) bundle: BundleArgs,

    /// Run libraries whose schemas are not packed, each in a process of its own, and ask for them.
    #[arg(long)]
    pub(crate) describe: bool,

    #[command(flatten)]
    pub(crate) deadline: Deadline,

    /// Print one JSON object: faults, hints.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the JSON Schema of bundles, with the configs of the extensions of this program, and of the libraries of a bundle.
///
/// Editors check and complete YAML files by it. Libraries are read, and not loaded: they tell the schemas of their configs if
/// `goondan plugin pack` put them into the file.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SchemaArgs {
    #[command(flatten)]
    pub(crate) bundle: MaybeBundle,

    /// Run libraries whose schemas are not packed, each in a process of its own, and ask for them.
    #[arg(long, requires = "path")]
    pub(crate) describe: bool,

    #[command(flatten)]
    pub(crate) deadline: Deadline,
}

/// Show which extension wraps which, and why.
///
/// For each kind of middleware the layers around an agent, outermost first. The extensions are registered for this, over an
/// empty store: conversations are not touched.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct OrderArgs {
    #[command(flatten)]
    pub(crate) bundle: BundleArgs,

    /// The agent [default: the entry agent of the swarm, or the only agent].
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Print one JSON object, with a list for each kind.
    #[arg(long)]
    pub(crate) json: bool,
}

/// See, move, repair and delete the conversations that are stored.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceArgs {
    #[command(subcommand)]
    pub(crate) what: Instance,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Instance {
    List(ListArgs),
    Show(ShowArgs),
    Delete(DeleteArgs),
    Repair(RepairArgs),
    Export(ExportArgs),
    Import(ImportArgs),
}

/// Where conversations are looked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// Look only into this workspace: the name, or instance key, of a swarm.
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: Option<String>,

    /// Where conversations are stored [default: $GOONDAN_STATE_ROOT, or ~/.goondan].
    #[arg(long, value_name = "DIR")]
    pub(crate) state_root: Option<PathBuf>,
}

/// One conversation.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The conversation, as `<agent>:<key>`.
    pub(crate) instance: String,

    #[command(flatten)]
    pub(crate) place: Place,
}

/// List the conversations that are stored.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) place: Place,

    /// Print one JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what was said in a conversation, and what each turn cost.
///
/// The cost of a turn is its time, its steps, its tool calls, and the tokens, if the model counts them. It stands after the
/// last message of the turn, as long as the runtime events of the turn are kept.
///
/// Nothing is opened, locked or repaired: this works while a turn runs, too.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) which: Which,

    /// Show long texts as a whole.
    #[arg(long)]
    pub(crate) full: bool,

    /// Print one JSON object a message, and one with the member `turn` for what a turn cost.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Delete a conversation with all that belongs to it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) which: Which,

    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Say what is wrong with the files of a conversation that does not open, and take it out of the way.
///
/// Without --yes, only what is wrong, and what would be done about it, is printed. Nothing is deleted: damaged lines and
/// files are kept beside, as <file>.corrupt-<n>.
///
/// Exit status: 0 nothing is wrong, or all is repaired; 1 something is wrong.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    pub(crate) which: Which,

    /// Do what the plan says.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Print one JSON array: file, line, what, remedy.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a conversation to one file: messages, state of extensions, and a turn that was interrupted.
///
/// The file holds lines of JSON, of which the last one is a checksum. The work directory is left out.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) which: Which,

    /// The file, which must not exist; `-` is standard output.
    pub(crate) file: PathBuf,
}

/// Read a conversation from a file that `export` wrote. It is there as a whole or not at all.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ImportArgs {
    /// The file; `-` is standard input.
    pub(crate) file: PathBuf,

    /// The name that it gets, as `<agent>:<key>` [default: the one that it had].
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The workspace that it goes to: the name, or instance key, of a swarm.
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: String,

    /// Where conversations are stored [default: $GOONDAN_STATE_ROOT, or ~/.goondan].
    #[arg(long, value_name = "DIR")]
    pub(crate) state_root: Option<PathBuf>,
}

/// Start something of your own.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct NewArgs {
    #[command(subcommand)]
    pub(crate) what: New,
}

#[derive(Debug, Subcommand)]
pub(crate) enum New {
    Extension(NewExtensionArgs),
}

/// Make a crate with an extension, its test, and a program to try it.
///
/// Exit status: 0 the crate was made, 1 it could not be written, 2 the name is not legal or the place is not free.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct NewExtensionArgs {
    /// What the extension is called: lower-case words joined by hyphens, such as `message-window`.
    #[arg(value_parser = new::parse_name)]
    pub(crate) name: ExtensionName,

    /// Where the crate goes [default: a directory with its name].
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
}

/// See what extensions there are.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    pub(crate) what: Plugin,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    List(PluginListArgs),
    Inspect(PluginInspectArgs),
    Pack(PluginPackArgs),
    /// The child process of the two above, of `check --describe` and of `schema --describe`.
    #[command(hide = true)]
    Describe(PluginDescribeArgs),
}

/// Show what a library holds, without running anything of it.
///
/// For whom it was built, which extensions it has and what they declare; and the schemas of configs and tools, if `goondan
/// plugin pack` put them into the file.
///
/// Exit status: 0 this program could load it; 2 it could not, and why.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PluginInspectArgs {
    /// The library.
    pub(crate) file: PathBuf,

    /// Run the library in a process of its own, and ask it for schemas that are not packed into it.
    #[arg(long)]
    pub(crate) describe: bool,

    #[command(flatten)]
    pub(crate) deadline: Deadline,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Put the schemas of the configs and tools of a library into its file.
///
/// The library runs in a process of its own, and is asked for them. After that `inspect` and `check` know them without running
/// it. The file can be loaded as before; its digest is another one.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PluginPackArgs {
    /// The library.
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) deadline: Deadline,
}

/// Load a library, and write its schemas to standard output.
#[derive(Debug, clap::Args)]
pub(crate) struct PluginDescribeArgs {
    pub(crate) file: PathBuf,
}

/// How long a library may take to describe itself.
#[derive(Debug, clap::Args)]
pub(crate) struct Deadline {
    /// How long a library that is run may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    deadline: u64,
}

impl Deadline {
    pub(crate) fn get(&self) -> Duration {
        Duration::from_secs(self.deadline)
    }
}

/// List the extensions that are linked into this program, and those in the libraries of a bundle.
///
/// For each: its middlewares with kind, priority and function, its tools, the events that it listens to, and what it
/// requires of the program; and for one in a library, which is read and not loaded, the entry by which the bundle names it and
/// the size of the file. What an extension registers by itself when it starts is not known here.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PluginListArgs {
    #[command(flatten)]
    pub(crate) bundle: MaybeBundle,

    /// Print one JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the script by which a shell completes the command line.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompletionsArgs {
    pub(crate) shell: Shell,
}

/// Write the manual pages: one for the command, and one for each of its subcommands.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ManArgs {
    /// The directory for the pages; it is made if need be.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
