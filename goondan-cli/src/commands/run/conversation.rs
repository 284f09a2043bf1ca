//! The open conversation of `goondan run`: from the bundle to the instance, reloading, and closing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use goondan::agent::{Change, ExtensionChange, ReloadRequest, Reloaded};
use goondan::bundle::{Agents, Entry, Plugins};
use goondan::model::CassetteMode;
use goondan::name::{AgentName, ExtensionName, InstanceKey};
use goondan::store::{FileStore, InstanceId};
use goondan::store::{Fsync, state_root};
use goondan::{Agent, Bundle, Error, ErrorCode, Instance, Result};

use super::background::Background;
use crate::args::{CassettesArg, FsyncArg, RunArgs};
use crate::commands::bundle;
use crate::output::diagnostics::LoadError;
use crate::output::{self, Style, Styled};

/// An open instance with the agents, the store and the libraries that it uses. Call [`OpenConversation::close`] at
/// the end.
pub(crate) struct OpenConversation {
    /// Names the bundle, which is read again for a reload.
    args: RunArgs,
    plugins: Plugins,
    store: Arc<FileStore>,
    agent: AgentName,
    agents: Agents,
    instance: Instance,
    files: Vec<PathBuf>,
    pub(crate) background: Background,
}

impl OpenConversation {
    pub(crate) async fn open(args: &RunArgs) -> Result<Self, LoadError> {
        let plugins = Plugins::new();
        let bundle = bundle::read_with(&args.bundle, &plugins, cassettes(args)?)?;
        bundle.check_values()?;
        let agent = bundle::agent(&bundle, args.agent.as_deref())?.name.clone();
        let root = state_root(args.state_root.as_deref())?;
        let fsync = args.fsync.map_or_else(|| bundle.fsync(), Fsync::from);
        let store = Arc::new(FileStore::in_workspace(&root, bundle.workspace_name()?)?.fsync(fsync));
        let agents = bundle.build_with(Arc::clone(&store), &plugins).await?;
        // Before extensions are initialized, which may start turns.
        let background = Background::of(&agents, &agent)?;
        let instance = instance(&agents, &agent, &args.instance).await?;
        let files = files(&bundle);
        Ok(Self { args: args.clone(), plugins, store, agent, agents, instance, files, background })
    }

    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    pub(crate) fn id(&self) -> Result<InstanceId> {
        Ok(InstanceId { agent: self.agent.clone(), key: InstanceKey::new(&self.args.instance)? })
    }

    /// Returns the directory in which the conversation is stored.
    pub(crate) fn directory(&self) -> Result<PathBuf> {
        Ok(self.store.instance_dir(&self.id()?))
    }

    pub(crate) fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter()
    }

    /// Returns the files to watch: those of the bundle, the scripts of its models, and its libraries.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    /// Reads the bundle again and continues the conversation with it, a turn that runs with its next step. Returns the
    /// changes in words.
    ///
    /// An agent whose extensions cannot be initialized is left unchanged. If it is another agent than the one of this
    /// conversation, `page` gets the error and the reload succeeds.
    ///
    /// # Errors
    /// The bundle has errors, and nothing was changed; or the agent of this conversation could not be reloaded.
    async fn reload(&mut self, page: &mut String) -> Result<Vec<String>, LoadError> {
        let bundle = bundle::read_with(&self.args.bundle, &self.plugins, cassettes(&self.args)?)?;
        bundle.check_values()?;
        bundle.agent(self.agent.as_str())?;
        let outcomes = self.agents.reload_at_next_step(&bundle, Some(&self.plugins)).await?;
        self.files = files(&bundle);
        self.background.follow(self.agents.iter());
        let (mut changes, mut own) = (Vec::new(), Ok(()));
        for (agent, outcome) in outcomes {
            match outcome {
                Ok(Reloaded { changes: some, refused, .. }) => {
                    changes.extend(some.iter().map(|change| self.describe(change, &bundle)));
                    page.extend(refused.iter().map(|(_, error)| output::error_text(error)));
                }
                Err(error) if agent == self.agent => own = Err(error),
                Err(error) => {
                    page.push_str(&format!("the agent `{agent}` was not reloaded\n"));
                    page.push_str(&output::error_text(&error));
                }
            }
        }
        Ok(own.map(|()| changes)?)
    }

    /// Describes a change. Code from a library has the start of the digest of its file, which tells two builds of one
    /// version apart.
    fn describe(&self, change: &ExtensionChange, bundle: &Bundle) -> String {
        let build = match change.change {
            Change::Added { .. } | Change::Replaced { .. } => self.digest(&change.extension, bundle),
            _ => None,
        };
        build.map_or_else(|| change.to_string(), |digest| format!("{change} (build {digest:.8})"))
    }

    /// Returns the digest of the library that has an extension, if it is in one.
    fn digest(&self, extension: &ExtensionName, bundle: &Bundle) -> Option<String> {
        let resource = bundle.extensions().find(|resource| resource.name == *extension)?;
        let Entry::Library(library) = &resource.entry else { return None };
        // It was loaded a moment ago. If it is gone by now, the change is described without it.
        self.plugins.inspect(library).and_then(|inspected| inspected.sha256()).ok()
    }

    /// Reloads. Returns `page` with errors and, as the last line, the result in words. `requests` are refused if it
    /// fails.
    pub(super) async fn reload_and_describe(&mut self, page: Styled, requests: &mut Vec<ReloadRequest>) -> Styled {
        let mut problems = String::new();
        let reloaded = self.reload(&mut problems).await;
        let page = page.text(&problems);
        match reloaded {
            Ok(changes) if changes.is_empty() => page.paint(Style::Dim, "reloaded"),
            Ok(changes) => page.paint(Style::Dim, &format!("reloaded: {}", changes.join(", "))),
            Err(error) => {
                requests.drain(..).for_each(|request| request.refuse(&error));
                page.append(&error.page()).paint(Style::Dim, "not reloaded; the conversation goes on as it was")
            }
        }
        .text("\n")
    }

    /// Closes the instance and the agents; the extensions clean up (LOAD-11).
    pub(crate) async fn close(&self) -> Result<()> {
        self.instance.close().await.and(self.agents.close().await)
    }
}

fn files(bundle: &Bundle) -> Vec<PathBuf> {
    let read_by_models = bundle.models().flat_map(|model| &model.files).map(PathBuf::as_path);
    let libraries = bundle.extensions().filter_map(|extension| match &extension.entry {
        Entry::Library(library) => Some(library.file.as_path()),
        _ => None,
    });
    bundle.files().chain(read_by_models).chain(libraries).map(Path::to_path_buf).collect()
}

async fn instance(agents: &Agents, agent: &AgentName, key: &str) -> Result<Instance> {
    let agent = agents.get(agent.as_str()).ok_or_else(|| Error::msg("a built bundle has its agents"))?;
    agent.instance(key).await
}

/// What models do with their cassettes, if the command line or the environment says it. An empty variable counts as
/// not set.
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
