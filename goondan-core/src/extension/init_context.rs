//! Questions of `#[init]` about the conversation that it creates an extension for.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BundleFiles, ExtensionApi, ExtensionInfo, PresentExtension, SharedState};
use crate::error::Result;
use crate::name::{AgentName, ExtensionName, InstanceKey};

/// The conversation, agent and bundle that an extension is created for: a parameter of `#[init]`, which may keep it.
///
/// ```
/// use std::path::PathBuf;
///
/// use goondan::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Config {
///     /// Relative to the bundle.
///     words: PathBuf,
/// }
///
/// struct Glossary {
///     words: String,
/// }
///
/// #[goondan::extension(name = "glossary")]
/// impl Glossary {
///     #[init]
///     fn new(ctx: InitContext, config: Config) -> Result<Self> {
///         let path = ctx.bundle_root().map(|root| root.join(&config.words)).unwrap_or(config.words);
///         Ok(Self { words: std::fs::read_to_string(path)? })
///     }
/// }
/// ```
#[derive(Clone)]
pub struct InitContext {
    api: ExtensionApi,
    info: ExtensionInfo,
}

impl InitContext {
    /// Asks the host of `api`.
    pub(crate) fn of(api: &ExtensionApi) -> Result<Self> {
        Ok(Self { api: api.clone(), info: api.host().info()? })
    }

    /// Returns the name by which the agent refers to the extension: the name in the bundle, or in the attribute.
    pub fn extension(&self) -> &ExtensionName {
        &self.info.extension
    }

    /// Returns the name of the agent.
    pub fn agent(&self) -> &AgentName {
        &self.info.agent
    }

    /// Returns the key of the conversation.
    pub fn instance(&self) -> &InstanceKey {
        &self.info.instance
    }

    /// Returns the id of the workspace in which the conversation is stored, if the store has workspaces.
    pub fn workspace(&self) -> Option<&str> {
        self.info.workspace.as_deref()
    }

    /// Returns the directory at which relative paths in configs start. It is absolute. An agent that is not described
    /// by a bundle has one if its program says so.
    pub fn bundle_root(&self) -> Option<&Path> {
        self.info.bundle_root.as_deref()
    }

    /// Returns the current files of the agent's bundle, after a reload others than in `#[init]`, and the
    /// directory in which conversations are stored. An extension that writes files for a model does not write these,
    /// because they decide which code the program runs. Below the stored conversations, it writes in the
    /// [working directory](crate::ToolContext::workdir) alone.
    ///
    /// # Errors
    /// The error of the host, if it cannot tell.
    // TREE-01
    pub fn bundle_files(&self) -> Result<Arc<BundleFiles>> {
        Ok(self.api.host().info()?.bundle_files)
    }

    /// Returns the names of the environment variables that the bundle of the agent reads as secrets now, sorted: after
    /// a reload others than in `#[init]`. An extension that starts processes keeps these variables from them.
    ///
    /// # Errors
    /// The error of the host, if it cannot tell.
    // ENV-01
    pub fn secret_variables(&self) -> Result<Arc<[String]>> {
        Ok(self.api.host().info()?.secret_variables)
    }

    /// Returns whether this conversation is opened only to show the registrations of the extension, as `goondan
    /// order` does. Then it runs no turn, and `#[init]` should register as ever, but start and connect to nothing.
    pub fn inspect(&self) -> bool {
        self.info.inspect
    }

    /// Returns a number that tells this conversation apart from the others that are open in this process. It is the
    /// same for all extensions of the conversation, also in libraries, and stays the same over reloads.
    ///
    /// It is for resources that belong to one conversation and is kept outside of the extension, such as a pool of
    /// connections. Names do not do: two agents in one process that store in different places may have the same name
    /// and the same keys.
    pub fn conversation(&self) -> u64 {
        self.info.conversation
    }

    /// Returns the extensions that the agent has now, this one included, in the order of the agent: after a reload
    /// others than in `#[init]`. So an extension can use another one if it is there:
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// /// Whether tools can ask for access tokens.
    /// fn has_oauth(ctx: &InitContext) -> Result<bool> {
    ///     Ok(ctx.extensions()?.iter().any(|extension| extension.declared == "oauth"))
    /// }
    /// ```
    ///
    /// # Errors
    /// The error of the host, if it cannot tell.
    // LEGACY-CAPS-01
    pub fn extensions(&self) -> Result<Vec<PresentExtension>> {
        Ok(self.api.host().info()?.extensions)
    }

    /// Makes, unless it exists, and returns a directory for files of this extension: `extensions/<name>` in the
    /// workspace, below the state root. The conversations of all agents of the workspace share it, also in several
    /// processes at once. It is not part of the export of a conversation, and stays when conversations are deleted.
    ///
    /// Keep data of one conversation in the [state](ExtensionApi::state), and one value that all of them share in the
    /// [shared state](Self::shared_state).
    ///
    /// # Errors
    /// `E_STORE_IO` when the directory cannot be made, or when a link or a file has its name. `E_STORE_UNSUPPORTED`
    /// when the store has no directories, as a `MemoryStore`.
    // LINKS-01
    pub fn state_dir(&self) -> Result<PathBuf> {
        self.api.host().state_dir()
    }

    /// Returns the value that the conversations of all agents of the workspace share, also in several processes at
    /// once. It belongs to the name of this extension. It is read here once, so that a value that cannot be read fails
    /// `#[init]` instead of a turn.
    ///
    /// # Errors
    /// `E_STORE_UNSUPPORTED` when the store has no directories, as a `MemoryStore`. Otherwise as for
    /// [`SharedState::read`].
    // D-42
    pub fn shared_state<T: Default + Serialize + DeserializeOwned>(&self) -> Result<SharedState<T>> {
        let shared = SharedState::new(self.api.clone());
        shared.read()?;
        Ok(shared)
    }
}

impl fmt::Debug for InitContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info.fmt(f)
    }
}
