//! `goondan trust`.

use std::path::PathBuf;

/// Agree to what the agents of a bundle can do, so that it runs without asking.
///
/// `goondan run` asks, or refuses without a terminal, before it runs a bundle whose agents can do
/// something outside of their conversations besides asking their models: run commands, load
/// libraries, reach hosts or work in directories. An agreement is kept below the state root, for the
/// path of the bundle and what is listed now. A bundle that can do more later is asked about again.
///
/// Exit status: 0 agreed, 1 the agreement cannot be stored, 2 the bundle has mistakes.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["path", "dir"]))]
pub(crate) struct TrustArgs {
    /// The bundle: a directory with a goondan.yaml, or a YAML file.
    #[arg(value_name = "BUNDLE")]
    pub(crate) path: Option<PathBuf>,

    /// Agree to whatever the bundles in a directory can do, now and later.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Allow the bundle to name libraries by absolute paths, not only files inside the bundle.
    #[arg(long, requires = "path")]
    pub(crate) allow_absolute_plugins: bool,

    /// Where agreements are kept [default: $GOONDAN_STATE_ROOT, or ~/.goondan].
    #[arg(long, value_name = "DIR")]
    pub(crate) state_root: Option<PathBuf>,
}
