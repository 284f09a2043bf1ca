//! Payloads of the standard events that extensions emit for each other.
// LEGACY-EVENTS

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::name::{AgentName, ExtensionName, ToolCallId, ToolName};

/// Declares a payload and the name of its event.
macro_rules! payload {
    ($(#[$doc:meta])* $type:ident = $name:literal { $($(#[$field_doc:meta])* $field:ident: $of:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $type {
            $($(#[$field_doc])* pub $field: $of,)*
        }

        impl $type {
            /// The name of the event with this payload.
            pub const NAME: &str = $name;
        }
    };
}

payload! {
    /// A repository can be read.
    // LEGACY-EVENTS-03
    RepoAvailable = "workspace.repoAvailable" {
        /// The directory of the repository.
        path: PathBuf,
        /// The URL that it was cloned from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remote: Option<String>,
        /// The branch that is checked out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    }
}

payload! {
    /// A work tree can be written.
    // LEGACY-EVENTS-03
    WorktreeMounted = "workspace.worktreeMounted" {
        /// The directory of the work tree.
        path: PathBuf,
        /// The changeset that it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changeset_id: Option<String>,
    }
}

payload! {
    /// A task is delegated to another agent.
    // LEGACY-EVENTS-04
    AgentDelegate = "agent.delegate" {
        /// The other agent.
        target: AgentName,
        /// The task, as input for the other agent.
        input: String,
        /// Additional values for the other agent.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    }
}

payload! {
    /// Another agent has finished a delegated task.
    // LEGACY-EVENTS-04
    AgentDelegationResult = "agent.delegationResult" {
        /// The other agent.
        source: AgentName,
        /// Its answer.
        result: Value,
    }
}

payload! {
    /// An application was granted access on behalf of a subject.
    // LEGACY-OAUTH-05
    AuthGranted = "auth.granted" {
        /// The application.
        app: String,
        /// The person or program on whose behalf.
        subject: String,
        /// The scopes of the access.
        scopes: Vec<String>,
    }
}

payload! {
    /// How far a tool call is: what its handler said last. At most 20 a second are told, and none is stored.
    ToolProgress = "tool.progress" {
        /// The id of the call.
        tool_call_id: ToolCallId,
        /// The name of the tool.
        tool_name: ToolName,
        /// How much is done.
        done: f64,
        /// How much there is to do, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// What the call is at, for people.
        text: String,
    }
}

payload! {
    /// An extension of the instance is about to be cleaned up and dropped.
    ExtensionCleanup = "extension.cleanup" {
        /// The name of the extension.
        extension: ExtensionName,
    }
}
