//! Tools that providers of models define and programs run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool that a provider of models defines and a program runs, such as the bash of Anthropic or `apply_patch` of
/// OpenAI. The provider's models have learned its arguments, so requests name it by its type, without a schema.
///
/// A [`ToolItem`](crate::ToolItem) says by [`provider_tool`](crate::ToolItem::provider_tool) that it is this tool for the
/// models of one interface. For all others it is a function like any tool, with its own name and schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderTool {
    /// The interface whose models know the tool, such as `anthropic`.
    pub api: String,
    /// Its type, such as `bash_20250124`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name by which models call it, such as `bash`.
    pub name: String,
    /// Other members of the tool in a request, such as `max_characters`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub members: Map<String, Value>,
}

impl ProviderTool {
    /// A tool of Anthropic with its type and name, such as `bash_20250124` and `bash`.
    pub fn anthropic(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { api: "anthropic".to_owned(), kind: kind.into(), name: name.into(), members: Map::new() }
    }

    /// A tool of OpenAI over responses: `apply_patch`, `shell` or `local_shell`. The arguments of a call are its
    /// `operation` or its `action`.
    pub fn openai(kind: impl Into<String>) -> Self {
        let kind = kind.into();
        Self { api: "openai".to_owned(), name: kind.clone(), kind, members: Map::new() }
    }

    /// Sets another member of the tool in a request.
    #[must_use]
    pub fn member(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.members.insert(name.into(), value.into());
        self
    }
}
