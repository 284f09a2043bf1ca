//! The config of the extensions, and what it allows.

use std::path::PathBuf;

use goondan::prelude::*;
use serde::Serialize;
use wildmatch::WildMatch;

use crate::author::Author;
use crate::git::Change;

/// The config of the extension.
///
/// ```yaml
/// allowed: ["prompts/*", "goondan.yaml"]
/// check: [goondan, check, .]
/// ```
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// A directory in the repository, relative to the bundle. It is the bundle's own unless it is set.
    pub repository: Option<PathBuf>,
    /// The files that a changeset may add, change and delete: paths from the top of the repository, in which `*` stands
    /// for any text and `?` for one character. All of them, unless it is set.
    pub allowed: Option<Vec<String>>,
    /// A command that must succeed before a changeset is committed. It runs in the directory of the work tree that
    /// corresponds to `repository`, and the model reads what it prints if it fails.
    pub check: Option<Vec<String>>,
    /// The largest number of seconds that the check may take.
    pub check_timeout: u64,
    /// Files that the model is told to look at.
    pub recommended_files: Vec<String>,
    /// The author of the commits.
    pub author: Author,
}

impl Config {
    /// Whether a changeset may make this change.
    pub(crate) fn allows(&self, change: &Change) -> bool {
        let matches = |pattern: &String| WildMatch::new(pattern).matches(&change.path);
        !change.is_link && self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(matches))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            repository: None,
            allowed: None,
            check: None,
            check_timeout: 120,
            recommended_files: Vec::new(),
            author: Author::default(),
        }
    }
}
