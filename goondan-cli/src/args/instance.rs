//! `goondan instance`.

use std::path::PathBuf;

use goondan::decision::Decision;

use super::bundle::BundleArgs;
use super::run::RunArgs;

/// List, show, decide, take back, delete, repair and move stored conversations.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceArgs {
    #[command(subcommand)]
    pub(crate) command: InstanceCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum InstanceCommand {
    List(InstanceListArgs),
    Show(InstanceShowArgs),
    Decide(InstanceDecideArgs),
    Rewind(InstanceRewindArgs),
    Delete(InstanceDeleteArgs),
    Repair(InstanceRepairArgs),
    Export(InstanceExportArgs),
    Import(InstanceImportArgs),
}

/// Where to look for stored conversations.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    /// Search only this workspace: the name, or instance key, of a swarm.
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: Option<String>,

    /// Where conversations are stored [default: $GOONDAN_STATE_ROOT, or ~/.goondan].
    #[arg(long, value_name = "DIR")]
    pub(crate) state_root: Option<PathBuf>,
}

/// One stored conversation.
#[derive(Debug, clap::Args)]
pub(crate) struct InstanceSelector {
    /// The conversation, as `<agent>:<key>`.
    pub(crate) instance: String,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// List the stored conversations.
///
/// The status of a conversation is `open` if a process has it open (on Linux), `suspended` if a
/// turn waits for a decision, `interrupted` if one was interrupted, which the next run closes,
/// `unreadable` if its files cannot be read, and else `idle`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceListArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Only those whose turn waits for a decision, with what is asked.
    #[arg(long)]
    pub(crate) suspended: bool,

    /// Print one JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Decide about a tool call that waits, and go on with its turn.
///
/// Without a call, those that wait are listed with what is asked, and nothing is changed. The call
/// runs, unless it is rejected. Once all calls of the turn are decided, the turn goes on with the
/// bundle, and its answer is printed, as `goondan run` does.
///
/// Exit status: 0 the turn was answered; 1 it failed, or the decision was not taken; 2 the command
/// line or the bundle is wrong; 3 the turn waits for another decision; 130 Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceDecideArgs {
    #[command(flatten)]
    pub(crate) selector: InstanceSelector,

    /// The call, as it is listed.
    pub(crate) call: Option<String>,

    /// Do not run the call; the model reads why.
    #[arg(long, value_name = "REASON", requires = "call", conflicts_with_all = ["args", "value", "always"])]
    pub(crate) reject: Option<String>,

    /// Run it with these arguments, a JSON object.
    #[arg(long, value_name = "JSON", requires = "call")]
    pub(crate) args: Option<String>,

    /// The value that the question expects [default: true].
    #[arg(long, value_name = "JSON", requires = "call", conflicts_with = "always")]
    pub(crate) value: Option<String>,

    /// The answer as it is typed on a terminal, such as a text or the number of one of several. `-` reads a line of
    /// standard input, as a secret needs it.
    #[arg(long, value_name = "TEXT", requires = "call", conflicts_with_all = ["value", "always", "reject"])]
    pub(crate) answer: Option<String>,

    /// Approve later calls like this one too, in this conversation, if the extension offers that.
    #[arg(long, requires = "call")]
    pub(crate) always: bool,

    /// The question, for a call with several: the extension, and after a slash the name of the question if it has one.
    #[arg(long, value_name = "EXTENSION[/NAME]", requires = "call")]
    pub(crate) question: Option<String>,

    /// The bundle that the turn goes on with: a directory with a goondan.yaml, or a YAML file.
    #[arg(long, value_name = "BUNDLE", default_value = ".")]
    pub(crate) bundle: PathBuf,

    /// Allow the bundle to name libraries by absolute paths.
    #[arg(long)]
    pub(crate) allow_absolute_plugins: bool,

    /// Run the bundle whatever its agents can do, without asking.
    #[arg(long)]
    pub(crate) trust: bool,

    /// Print one JSON object per turn, as `goondan run --json` does; without a call, one JSON array of the calls.
    #[arg(long)]
    pub(crate) json: bool,
}

impl InstanceDecideArgs {
    /// Returns the arguments of the run that goes on with the turn.
    pub(crate) fn run(&self, agent: String, instance: String, decisions: Vec<Decision>) -> RunArgs {
        RunArgs {
            bundle: BundleArgs { path: self.bundle.clone(), allow_absolute_plugins: self.allow_absolute_plugins },
            trust: self.trust,
            agent: Some(agent),
            instance,
            input: None,
            files: Vec::new(),
            unanswered: None,
            json: self.json,
            stream: false,
            children: false,
            reasoning: false,
            watch: false,
            cassettes: None,
            fsync: None,
            state_root: self.selector.store.state_root.clone(),
            decisions,
            grace: 300,
        }
    }
}

/// Show the messages of a conversation, what each turn cost, and how the last one ended.
///
/// The cost of a turn is its duration, its steps, its tool calls, and its tokens, if the model
/// reports them, and how much of each request the next one began with. It is printed after the last
/// message of the turn if the runtime events of the turn are still stored.
///
/// Nothing is opened, locked or repaired, so this works while a turn is running.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceShowArgs {
    #[command(flatten)]
    pub(crate) selector: InstanceSelector,

    /// Do not shorten long texts.
    #[arg(long)]
    pub(crate) full: bool,

    /// Print one JSON object per message, one with the member `turn` for the cost of each turn, and at the end one with
    /// the member `instance`: the status, an open turn, and the outcome of the last one.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take a conversation back to an earlier turn.
///
/// The messages of later turns are removed, in a turn of its own: it happens as a whole or not at
/// all. What the turns did stays: files, and the state of extensions, which are told when the
/// conversation is opened next. Messages that a window removed do not come back, and a conversation
/// cannot be taken back to before a summary.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceRewindArgs {
    #[command(flatten)]
    pub(crate) selector: InstanceSelector,

    /// The last turn that stays. Without it, the turns are listed, and nothing is changed.
    #[arg(long, value_name = "TURN")]
    pub(crate) to: Option<String>,
}

/// Delete a conversation with everything that belongs to it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceDeleteArgs {
    #[command(flatten)]
    pub(crate) selector: InstanceSelector,

    /// Do not ask for confirmation.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Find damage in the files of a conversation that cannot be opened, and repair it.
///
/// Without --yes, the damage, the planned repairs and what they keep are printed, and nothing is
/// changed. Nothing is deleted: damaged lines and files are moved to `<file>.corrupt-<n>` beside
/// the original. A file that was changed after the last commit, by a disk or by hand, is accepted
/// as it is.
///
/// Exit status: 0 nothing is damaged, or everything is repaired; 1 something is damaged.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceRepairArgs {
    #[command(flatten)]
    pub(crate) selector: InstanceSelector,

    /// Carry out the repairs.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Print one JSON array: file, line, what, remedy.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a conversation to one file: messages, state of extensions, and an interrupted turn.
///
/// The file consists of lines of JSON; the last one is a checksum. The work directory is not
/// included.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceExportArgs {
    #[command(flatten)]
    pub(crate) selector: InstanceSelector,

    /// The file, which must not exist; `-` is standard output.
    pub(crate) file: PathBuf,
}

/// Read a conversation from a file that `export` wrote. It is imported as a whole or not at all.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceImportArgs {
    /// The file; `-` is standard input.
    pub(crate) file: PathBuf,

    /// Its new name, as `<agent>:<key>` [default: the exported name].
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The workspace to import into: the name, or instance key, of a swarm.
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: String,

    /// Where conversations are stored [default: $GOONDAN_STATE_ROOT, or ~/.goondan].
    #[arg(long, value_name = "DIR")]
    pub(crate) state_root: Option<PathBuf>,
}
