//! Conversations with skills in a directory.

use std::fs;
use std::path::{Path, PathBuf};

use goondan::testing::{Chat, ChatBuilder};
use goondan::{Value, json};
use tempfile::TempDir;

use crate::linkage::WithPlugin;

/// A directory with skills.
pub(crate) struct Repo {
    directory: TempDir,
}

impl Repo {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    /// A directory with the skills `deploy` and `review`.
    pub(crate) fn with_two() -> Self {
        let repo = Self::new();
        repo.write("skills/deploy/SKILL.md", "# Deploys the shop\nRun `./deploy.sh`.");
        repo.write("skills/review/SKILL.md", "# Reviews a change\nRead it twice.");
        repo
    }

    /// Returns the path without links.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn builder(&self, config: Value) -> ChatBuilder {
        builder(self.directory.path(), config)
    }

    pub(crate) async fn chat(&self, config: Value) -> Chat {
        self.builder(config).start().await.unwrap()
    }
}

pub(crate) fn builder(root: &Path, config: Value) -> ChatBuilder {
    Chat::builder().agent(|agent| agent.bundle_root(root).plugin("skills", "skills", config))
}

/// The config with all defaults.
pub(crate) fn defaults() -> Value {
    json!({ "discovery": {} })
}

/// Calls a tool of the extension, and returns its output.
pub(crate) async fn call(chat: &mut Chat, tool: &str, arguments: Value) -> Value {
    let result = chat.call(&format!("skills__{tool}"), arguments).await.unwrap();
    result.output().unwrap_or_else(|| panic!("{result:?}")).clone()
}

/// Calls a tool of the extension, and returns the code, the message and the suggestion of its error.
pub(crate) async fn refused(chat: &mut Chat, tool: &str, arguments: Value) -> (String, String) {
    let result = chat.call(&format!("skills__{tool}"), arguments).await.unwrap();
    let error = result.error().unwrap_or_else(|| panic!("{result:?}"));
    let suggestion = error.suggestion.clone().unwrap_or_default();
    (error.code.clone().unwrap_or_default(), format!("{}; {suggestion}", error.message))
}

/// Returns the names of the skills that are listed.
pub(crate) async fn listed(chat: &mut Chat) -> Vec<String> {
    let list = call(chat, "list", json!({})).await;
    list["skills"].as_array().unwrap().iter().map(|skill| skill["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns what the extension has logged as a warning.
pub(crate) fn warnings(chat: &Chat) -> Vec<String> {
    let lines = chat.logs().into_iter().filter(|line| line.extension.as_deref() == Some("skills"));
    lines.filter(|line| line.level == goondan::extension::LogLevel::Warn).map(|line| line.text).collect()
}

/// Returns the lines of the last request that contain `text`.
pub(crate) fn shown(chat: &Chat, text: &str) -> Vec<String> {
    chat.last_request().transcript().into_iter().filter(|line| line.contains(text)).collect()
}
