//! Owns the payloads of standard events that extensions publish for one another (LEGACY-EVENTS).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::name::{AgentName, ExtensionName};

/// Writes a payload with the name of its event.
macro_rules! payload {
    ($(#[$doc:meta])* $type:ident = $name:literal { $($(#[$field_doc:meta])* $field:ident: $of:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $type {
            $($(#[$field_doc])* pub $field: $of,)*
        }

        impl $type {
            /// The name of the event that carries this.
            pub const NAME: &str = $name;
        }
    };
}

payload! {
    /// A repository can be read (LEGACY-EVENTS-03).
    RepoAvailable = "workspace.repoAvailable" {
        /// Where it lies.
        path: PathBuf,
        /// Where it came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remote: Option<String>,
        /// What is checked out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    }
}

payload! {
    /// A work tree can be written (LEGACY-EVENTS-03).
    WorktreeMounted = "workspace.worktreeMounted" {
        /// Where it lies.
        path: PathBuf,
        /// The changeset that it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changeset_id: Option<String>,
    }
}

payload! {
    /// Another agent should do something (LEGACY-EVENTS-04).
    AgentDelegate = "agent.delegate" {
        /// The other agent.
        target: AgentName,
        /// What it should do.
        input: String,
        /// Whatever else it should know.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    }
}

payload! {
    /// Another agent did what it was asked for (LEGACY-EVENTS-04).
    AgentDelegationResult = "agent.delegationResult" {
        /// The other agent.
        source: AgentName,
        /// What it answered.
        result: Value,
    }
}

payload! {
    /// An application got access on behalf of someone (LEGACY-OAUTH-05).
    AuthGranted = "auth.granted" {
        /// The application.
        app: String,
        /// On whose behalf.
        subject: String,
        /// To what.
        scopes: Vec<String>,
    }
}

payload! {
    /// An extension is about to go away (LEGACY-EVENTS-06).
    ExtensionCleanup = "extension.cleanup" {
        /// The extension.
        extension: ExtensionName,
    }
}
