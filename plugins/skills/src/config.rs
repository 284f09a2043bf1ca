//! Config of the extension.

use std::path::{Component, PathBuf};

use goondan::{Error, ErrorCode, Result};
use schemars::JsonSchema;
use serde::Deserialize;

/// The config of the extension.
///
/// ```yaml
/// discovery: { repoSkillDirs: [.agents/skills] }
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Where skills are found. Without it, the extension logs a warning and registers nothing.
    pub discovery: Option<Discovery>,
    /// When the directories are searched.
    pub auto_scan: AutoScan,
    /// The number of characters of an open skill that the model reads.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_characters: usize,
    /// The largest number of skills that are open at the same time.
    #[schemars(range(min = 1))]
    pub max_open: usize,
    /// Whether the model can run commands in the directories of skills.
    #[schemars(extend("x-goondan" = { "shell": "skills" }))]
    pub run: bool,
    /// The names of variables of the environment that commands inherit besides the others, such as `GH_TOKEN`.
    #[schemars(extend("x-goondan" = "variable"))]
    pub env: Vec<String>,
    /// The names of the variables of the environment that commands inherit. Defaults to all but those that have
    /// secrets: what the bundle reads as a secret, `GOONDAN_…`, and names with `KEY`, `TOKEN`, `SECRET`, `PASSWORD` or
    /// `CREDENTIAL` in them.
    #[schemars(extend("x-goondan" = "variable"))]
    pub inherit_env: Option<Vec<String>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            discovery: None,
            auto_scan: AutoScan::default(),
            max_characters: 50_000,
            max_open: 3,
            run: true,
            env: Vec::new(),
            inherit_env: None,
        }
    }
}

/// Where skills are found.
// PATTERN-SKILL-07, PATTERN-SKILL-20
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Discovery {
    /// Directories with a folder for each skill, relative to the root of the repository. Of skills with the same name,
    /// the first one counts.
    pub repo_skill_dirs: Vec<PathBuf>,
}

impl Default for Discovery {
    fn default() -> Self {
        Self { repo_skill_dirs: [".agents/skills", "skills", ".claude/skills"].map(PathBuf::from).into() }
    }
}

/// When the directories are searched.
// PATTERN-SKILL-08
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AutoScan {
    /// When the conversation opens: below the directory of the bundle, or the current directory if there is none.
    pub on_init: bool,
    /// When a repository becomes available: below its directory, which stays the root of the conversation.
    pub on_repo_available: bool,
}

impl Default for AutoScan {
    fn default() -> Self {
        Self { on_init: true, on_repo_available: true }
    }
}

impl Config {
    /// Returns the directories with skills; `None` for an empty config.
    ///
    /// # Errors
    /// `E_EXT_CONFIG` when there are other settings but no `discovery`, and when a directory is outside of the root.
    // PATTERN-SKILL-19
    pub(crate) fn directories(&self) -> Result<Option<Vec<PathBuf>>> {
        let Some(Discovery { repo_skill_dirs }) = &self.discovery else {
            if *self == Self::default() {
                return Ok(None);
            }
            return Err(Error::new(ErrorCode::EXT_CONFIG, "the config has no `discovery`")
                .suggest("write `discovery: {}` for the directories that are searched by default"));
        };
        let stays = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        match repo_skill_dirs.iter().find(|directory| !directory.components().all(stays)) {
            None => Ok(Some(repo_skill_dirs.clone())),
            Some(outside) => Err(Error::new(
                ErrorCode::EXT_CONFIG,
                format!(
                    "the directory `{}` of `discovery.repoSkillDirs` may be outside of the root",
                    outside.display()
                ),
            )
            .suggest("write a path that starts at the root of the repository, without `..`")),
        }
    }
}
