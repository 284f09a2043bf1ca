//! `goondan instance`.

use std::path::PathBuf;

/// List, show, take back, delete, repair and move stored conversations.
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
/// The status of a conversation is `open` if a process has it open (on Linux), `interrupted` if a
/// turn was interrupted, which the next run closes, `unreadable` if its files cannot be read, and
/// else `idle`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstanceListArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON array.
    #[arg(long)]
    pub(crate) json: bool,
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
/// The file consists of lines of JSON, of which the last is a checksum. The work directory is not
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
