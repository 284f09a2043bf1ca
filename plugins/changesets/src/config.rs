//! The config of the extensions, and what it allows.

use std::path::PathBuf;
use std::sync::Arc;

use goondan::prelude::*;
use process::Environment;
use serde::Serialize;
use wildmatch::WildMatch;

use crate::author::Author;
use crate::objects::Change;

/// The config of the extension.
///
/// ```yaml
/// allowed: ["prompts/*", "goondan.yaml"]
/// check: [goondan, check, .]
/// ```
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("x-goondan" = { "root": "the repository" }))]
pub struct Config {
    /// A directory in the repository, relative to the bundle. It is the bundle's own unless it is set.
    #[schemars(extend("x-goondan" = "root"))]
    pub repository: Option<PathBuf>,
    /// The files that a changeset may add, change and delete: paths from the top of the repository, in which `*` stands
    /// for any text and `?` for one character. All of them, unless it is set.
    pub allowed: Option<Vec<String>>,
    /// A command that must succeed before a changeset is committed. It runs in a directory with exactly the files that
    /// are committed, and with ignored files that earlier checks have left, such as those of a build. Of this
    /// directory, it starts in what corresponds to `repository`. The model reads what it prints if it fails.
    #[schemars(extend("x-goondan" = "command"))]
    pub check: Option<Vec<String>>,
    /// A command that runs before the first check in that directory, such as one that installs what the check needs.
    #[schemars(extend("x-goondan" = "command"))]
    pub setup: Option<Vec<String>>,
    /// The largest number of seconds that the check may take, and the setup.
    pub check_timeout: u64,
    /// The names of variables of the environment that these commands and git inherit besides the others, such as
    /// `GH_TOKEN`.
    #[schemars(extend("x-goondan" = "variable"))]
    pub env: Vec<String>,
    /// The names of the variables of the environment that these commands and git inherit. Defaults to all but those
    /// that have secrets: what the bundle reads as a secret, `GOONDAN_…`, and names with `KEY`, `TOKEN`, `SECRET`,
    /// `PASSWORD` or `CREDENTIAL` in them.
    #[schemars(extend("x-goondan" = "variable"))]
    pub inherit_env: Option<Vec<String>>,
    /// Whether a person is asked before `changesets__commit` commits, and reads the difference.
    pub ask: bool,
    /// Files that the model is told to look at.
    pub recommended_files: Vec<String>,
    /// The author of the commits.
    pub author: Author,
}

impl Config {
    /// Returns the environment of the commands and of git. `secrets` returns the names of variables that they do not
    /// get.
    pub(crate) fn environment(
        &self,
        secrets: impl Fn() -> Option<Arc<[String]>> + Send + Sync + 'static,
    ) -> Environment {
        Environment::without_secrets(secrets).or_only(self.inherit_env.clone()).with(self.env.iter())
    }

    /// Whether a changeset may make this change.
    pub(crate) fn allows(&self, change: &Change) -> bool {
        let matches = |pattern: &String| WildMatch::new(pattern).matches(&change.path);
        let is_safe = !change.is_link() && !work_trees::is_in_git(change.path.as_bytes());
        is_safe && self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(matches))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            repository: None,
            allowed: None,
            check: None,
            setup: None,
            check_timeout: 120,
            env: Vec::new(),
            inherit_env: None,
            ask: false,
            recommended_files: Vec::new(),
            author: Author::default(),
        }
    }
}
