//! Names and places around an extension in one conversation.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::BundleFiles;
use crate::name::{AgentName, ExtensionName, InstanceKey};

/// The data of an [`InitContext`](super::InitContext). This is also its JSON form in the ABI.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionInfo {
    /// See [`InitContext::extension`](super::InitContext::extension).
    pub extension: ExtensionName,
    /// See [`InitContext::agent`](super::InitContext::agent).
    pub agent: AgentName,
    /// See [`InitContext::instance`](super::InitContext::instance).
    pub instance: InstanceKey,
    /// See [`InitContext::workspace`](super::InitContext::workspace).
    pub workspace: Option<String>,
    /// See [`InitContext::bundle_root`](super::InitContext::bundle_root).
    pub bundle_root: Option<PathBuf>,
    /// See [`InitContext::inspect`](super::InitContext::inspect).
    pub inspect: bool,
    /// See [`InitContext::conversation`](super::InitContext::conversation).
    pub conversation: u64,
    /// See [`InitContext::extensions`](super::InitContext::extensions).
    pub extensions: Vec<PresentExtension>,
    /// See [`InitContext::bundle_files`](super::InitContext::bundle_files). Older hosts have none.
    #[serde(default)]
    pub bundle_files: Arc<BundleFiles>,
    /// See [`InitContext::secret_variables`](super::InitContext::secret_variables). Older hosts have none.
    #[serde(default)]
    pub secret_variables: Arc<[String]>,
}

/// An extension that an agent has, returned by [`InitContext::extensions`](super::InitContext::extensions).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PresentExtension {
    /// The name by which the agent refers to it.
    pub name: ExtensionName,
    /// The name that its code has, in the attribute.
    pub declared: String,
    /// The version of its crate.
    pub version: String,
}

impl PresentExtension {
    #[doc(hidden)]
    pub fn new(name: ExtensionName, declared: String, version: String) -> Self {
        Self { name, declared, version }
    }
}
