//! `goondan serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::bundle::BundleArgs;

/// Serve the agents of a bundle over HTTP.
///
/// A turn belongs to its request, and not to the connection: a client that goes away may come back,
/// and others may watch. A request with an `Idempotency-Key` is answered once, however often it is
/// sent. Turns that an earlier process left open are gone on with at the start.
///
/// Front ends that are written for AI SDK UI use the address /v1/agents/AGENT/ui, those for AG-UI
/// /v1/agents/AGENT/ag-ui. docs/serving.md describes all addresses.
///
/// Without principals, only this machine is listened to. They are in the Server of the bundle, or in
/// --token-file: each of that uses the conversations whose keys begin with its name and a colon.
///
/// A turn with `"wait": "accepted"` is stored before its answer is sent, and begins when there is
/// room; also at the next start.
///
/// After SIGTERM or Ctrl-C, no turn is accepted any more, and those that run have --grace to end.
/// The others are left open: the next start goes on with them. A second signal ends the process.
///
/// Exit status: 0 after a signal; 1 the address cannot be listened on; 2 the command line, the
/// tokens or the bundle are wrong.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) bundle: BundleArgs,

    /// Serve the bundle whatever its agents can do, without asking: see `goondan check --capabilities`.
    #[arg(long)]
    pub(crate) trust: bool,

    /// The address to listen on [default: as in the bundle's Server, or 127.0.0.1:7717]. The port 0 is a free one,
    /// which is printed.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// A file with a line `NAME: SHA256` for each principal, with the digest of its token. Needed for addresses that
    /// other machines reach.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Let pages of this origin, such as https://app.example, send requests; may be repeated.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,

    /// The most turns that run at the same time [default: those of the bundle's Server, or 256]. Others are refused
    /// with 429, or wait in the queue if they were sent for that.
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<usize>,

    /// The most bytes of what turns have told that have ended, together: the oldest are forgotten first, and told from
    /// the store then.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub(crate) log_bytes: usize,

    /// Serve a page at / for trying the agents out: it shows answers, tools, questions and decisions.
    #[arg(long)]
    pub(crate) ui: bool,

    /// Reload when files of the bundle, scripts of its models, or its libraries change, also between the steps of a
    /// turn. What a reload adds, such as a command, is refused.
    #[arg(long)]
    pub(crate) watch: bool,

    /// Where conversations are stored [default: $GOONDAN_STATE_ROOT, or ~/.goondan].
    #[arg(long, value_name = "DIR")]
    pub(crate) state_root: Option<PathBuf>,

    /// The time that turns have to end after a signal.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    grace: u64,
}

impl ServeArgs {
    /// Returns the address to listen on, for a bundle that names this one.
    pub(crate) fn listen(&self, written: Option<SocketAddr>) -> SocketAddr {
        self.listen.or(written).unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7717)))
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
}
