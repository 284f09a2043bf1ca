//! The open conversation of `goondan run`: from the command line to the instance.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use goondan::bundle::Plugins;
use goondan::host::{Host, HostTurns, HostedInstance, OpenError, Source};
use goondan::model::CassetteMode;
use goondan::store::{FileStore, Fsync, state_root};
use goondan::{Error, ErrorCode, Result};

use crate::args::{CassettesArg, FsyncArg, RunArgs};
use crate::commands::{bundle, trust};

/// An open instance, and the bundle that it runs on.
pub(crate) struct OpenConversation {
    pub(crate) host: Host,
    pub(crate) instance: HostedInstance,
    pub(crate) background: HostTurns,
    pub(crate) store: Arc<FileStore>,
    /// The directory in which the conversation is stored.
    pub(crate) directory: PathBuf,
}

impl OpenConversation {
    pub(crate) async fn open(args: &RunArgs) -> Result<Self, OpenError> {
        let mut source =
            Source::new(&args.bundle.path).allow_absolute(args.bundle.allow_absolute_plugins).libraries(Plugins::new());
        if let Some(mode) = cassettes(args)? {
            source = source.cassettes(mode);
        }
        let opening = source.read()?;
        let described = opening.bundle();
        let agent = bundle::agent(described, args.agent.as_deref())?.name.clone();
        let root = state_root(args.state_root.as_deref())?;
        if !args.trust {
            trust::require(described, &args.bundle.path, &root, !args.json)?;
        }
        let fsync = args.fsync.map_or_else(|| described.fsync(), Fsync::from);
        let store = Arc::new(FileStore::in_workspace(&root, described.workspace_name()?)?.fsync(fsync));
        let host = opening.open(Arc::clone(&store)).await?;
        // Before extensions are initialized, which may start turns.
        let background = host.background_turns();
        let instance = host.instance(agent.as_str(), &args.instance).await?;
        let directory = store.instance_dir(instance.id());
        Ok(Self { host, instance, background, store, directory })
    }
}

/// Returns the use of cassettes, if the command line or the environment says it. An empty variable counts as not set.
fn cassettes(args: &RunArgs) -> Result<Option<CassetteMode>> {
    let variable = || std::env::var("GOONDAN_CASSETTES").ok().filter(|mode| !mode.is_empty());
    let mode = match (args.cassettes, variable()) {
        (None, None) => return Ok(None),
        (Some(mode), _) => mode,
        (None, Some(mode)) => CassettesArg::from_str(&mode, false).map_err(|_| {
            Error::new(ErrorCode::USAGE, format!("the variable `GOONDAN_CASSETTES` is `{mode}`"))
                .suggest("set it to off, record, replay or auto, or unset it")
        })?,
    };
    Ok(Some(match mode {
        CassettesArg::Off => CassetteMode::Off,
        CassettesArg::Record => CassetteMode::Record,
        CassettesArg::Replay => CassetteMode::Replay,
        CassettesArg::Auto => CassetteMode::Auto,
    }))
}

impl From<FsyncArg> for Fsync {
    fn from(when: FsyncArg) -> Self {
        match when {
            FsyncArg::Turn => Self::Turn,
            FsyncArg::Always => Self::Always,
            FsyncArg::Never => Self::Never,
        }
    }
}
