//! `goondan run`.

use std::path::PathBuf;
use std::time::Duration;

use goondan::decision::Decision;

use super::bundle::BundleArgs;

/// Hold a conversation with an agent of a bundle.
///
/// Without --input, each line of standard input that is not blank is one input event; on a
/// terminal, lines are edited interactively. The conversation is stored: the next run with the
/// same --instance continues it.
///
/// A bundle whose agents can do something outside of their conversations, such as running a
/// command, is run when a person has agreed: on a terminal, the command asks once; otherwise it
/// needs --trust, or `goondan trust` before.
///
/// Turns that extensions start in the background are printed between the answers. At the end of the
/// input, those that are running or waiting are completed first.
///
/// Ctrl-C cancels the running turn; on a terminal the conversation continues, otherwise the
/// command ends. After SIGTERM, or when the terminal is closed, the running turn is completed and
/// no further input is read. A second signal ends the process immediately. What a cancelled turn
/// produced so far is kept.
///
/// Exit status: 0 every turn was answered, or SIGTERM; 1 a turn failed; 2 the command line or the
/// bundle is wrong; 3 the last turn waits for a decision; 130 Ctrl-C.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) bundle: BundleArgs,

    /// Run the bundle whatever its agents can do, without asking: see `goondan check --capabilities`.
    #[arg(long)]
    pub(crate) trust: bool,

    /// The agent to talk to [default: the entry agent of the swarm, or the only agent].
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Key of the conversation to continue, or to start.
    #[arg(long, value_name = "KEY", default_value = "default")]
    pub(crate) instance: String,

    /// Run one turn with this input instead of reading standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) input: Option<String>,

    /// A file that goes with the input; may be repeated. At most 5 MB each.
    #[arg(long = "file", value_name = "PATH", requires = "input")]
    pub(crate) files: Vec<PathBuf>,

    /// Without a terminal: the decision about calls that wait, unless their questions say one [default: suspend].
    #[arg(long, value_name = "DECISION", value_enum)]
    pub(crate) unanswered: Option<UnansweredArg>,

    /// Print one JSON object per turn: turnId, finishReason, response, steps, toolCalls, usage if the model reports it,
    /// waits if it waits for decisions, and error if it failed.
    #[arg(long)]
    pub(crate) json: bool,

    /// With --json, also print what happens while a turn runs, one JSON object each: pieces of text, reasoning and
    /// tool calls, and events. The last one of a turn has the type `turn`.
    #[arg(long, requires = "json")]
    pub(crate) stream: bool,

    /// With --stream, also print what happens in the turns of other agents that a turn waits for, as objects of the
    /// type `child`.
    #[arg(long, requires = "stream")]
    pub(crate) children: bool,

    /// On a terminal, print what the model thinks before it answers.
    #[arg(long)]
    pub(crate) reasoning: bool,

    /// Reload when files of the bundle, scripts of its models, or its libraries change, also between the steps of a
    /// turn. What a reload adds, such as a command, waits for `/accept`; without a terminal it is refused.
    #[arg(long, conflicts_with = "input")]
    pub(crate) watch: bool,

    /// What models do with their cassettes, the files with their recorded exchanges with providers [default:
    /// $GOONDAN_CASSETTES, or what the bundle says].
    #[arg(long, value_name = "MODE")]
    pub(crate) cassettes: Option<CassettesArg>,

    /// When the conversation is synced to disk [default: `fsync` of the swarm, or turn].
    #[arg(long, value_name = "WHEN")]
    pub(crate) fsync: Option<FsyncArg>,

    /// Where conversations are stored [default: $GOONDAN_STATE_ROOT, or ~/.goondan].
    #[arg(long, value_name = "DIR")]
    pub(crate) state_root: Option<PathBuf>,

    /// Decisions to take instead of reading inputs.
    #[arg(skip)]
    pub(crate) decisions: Vec<Decision>,

    /// How long a running turn may continue after SIGTERM, and turns in the background after the end of the input,
    /// before they are cancelled.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(super) grace: u64,
}

/// The decision about calls that wait where there is no person.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub(crate) enum UnansweredArg {
    /// They wait on, and the exit status is 3.
    Suspend,
    /// They are rejected, and the model goes on without them.
    Reject,
}

impl RunArgs {
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
}

/// The use of cassettes.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum CassettesArg {
    /// Nothing: ask the provider.
    Off,
    /// Ask the provider and record the exchanges, which replace an earlier recording.
    Record,
    /// Play what was recorded: no key, no network.
    Replay,
    /// Play what was recorded, and record what was not.
    Auto,
}

/// When a conversation is synced to disk.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum FsyncArg {
    /// At the end of each turn, and before each tool call that is not read-only.
    Turn,
    /// Also before each model call and after its answer.
    Always,
    /// Never: a crash of the system may lose the newest turns and damage files.
    Never,
}
