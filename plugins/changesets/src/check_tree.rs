//! The directory in which changesets of a repository are checked. Its files are those of the tree that is committed,
//! and ignored ones of the checks: nothing that only an agent's work tree has decides whether a check succeeds.
// TREE-01

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use goondan::Result;
use process::Environment;

use crate::check;
use crate::config::Config;
use crate::files::{self, Files, Settings};
use crate::git::Git;
use crate::lock::lock;
use crate::objects::Objects;

/// The directory of a repository, which no other check uses meanwhile.
pub(crate) struct CheckTree {
    root: PathBuf,
    /// Is there when the setup has succeeded.
    ready: PathBuf,
    files: Files,
    settings: Settings,
    environment: Environment,
    _lock: File,
}

impl CheckTree {
    /// Returns the tree of a repository, which is below `directory`, when no other check uses it.
    pub(crate) async fn of(git: &Git, objects: &Objects, environment: Environment, directory: &Path) -> Result<Self> {
        let id = objects.id(git.name()).await?;
        let directory = directory.join("checks").join(&id[..16]);
        let [root, ready, path] = ["tree", "ready", "used"].map(|name| directory.join(name));
        fs::create_dir_all(&root)?;
        let lock = lock(path).await?;
        let files = Files::new(root.clone(), directory, objects.clone());
        Ok(Self { root, ready, files, settings: git.settings().await?, environment, _lock: lock })
    }

    /// Runs a check on the files of `tree`, in the directory `bundle` of them. Returns its output if it failed.
    pub(crate) async fn check(
        &self,
        tree: &str,
        command: &[String],
        config: &Config,
        bundle: &Path,
    ) -> Result<Result<(), String>> {
        let directory = self.root.join(bundle);
        if !self.ready.exists() {
            // Files that an earlier setup has left.
            files::delete(&self.root)?;
            fs::create_dir(&self.root)?;
            self.files.set_exactly(tree, self.settings.clone()).await?;
            let setup = config.setup.as_deref().unwrap_or_default();
            if let Err(message) = check::run("setup", setup, &self.environment, &directory, config.check_timeout).await
            {
                return Ok(Err(message));
            }
            fs::write(&self.ready, "")?;
        }
        self.files.set_exactly(tree, self.settings.clone()).await?;
        Ok(check::run("check", command, &self.environment, &directory, config.check_timeout).await)
    }
}
