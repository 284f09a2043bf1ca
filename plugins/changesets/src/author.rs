//! The author of commits.

use goondan::prelude::*;
use serde::Serialize;

/// The author of commits.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

impl Default for Author {
    fn default() -> Self {
        Self { name: "goondan".to_owned(), email: "goondan@localhost".to_owned() }
    }
}
