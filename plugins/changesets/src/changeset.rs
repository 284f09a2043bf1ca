//! Changesets in the directory of the extension: `<id>.json` describes one, `<id>` is its work tree, and `<id>.git` has
//! the listing of its files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan::ErrorCode;
use goondan::prelude::*;
use process::Environment;
use serde::Serialize;

use crate::command::GIT;
use crate::config::Config;
use crate::files::{self, Files, Staged};
use crate::git::Git;
use crate::lock::lock;
use crate::objects::{Change, Merged, Objects};

/// There is no such changeset in this conversation.
const UNKNOWN: &str = "E_CHANGESET_UNKNOWN";

/// A repository and its changesets, which all conversations of the workspace share.
#[derive(Debug)]
pub(crate) struct Changesets {
    pub(crate) git: Git,
    pub(crate) directory: PathBuf,
    /// Whose changesets can be ended here.
    owner: String,
    pub(crate) config: Config,
    /// That of git and of the check.
    pub(crate) environment: Environment,
    /// Where the bundle is in the repository.
    pub(crate) bundle: PathBuf,
    /// Whether the agent is made of files of the repository.
    pub(crate) is_own: bool,
}

/// A changeset that is open.
#[derive(Clone, Debug)]
pub(crate) struct Changeset {
    pub(crate) id: String,
    pub(crate) description: Description,
    /// The file of the description.
    file: PathBuf,
    pub(crate) git: Git,
    pub(crate) objects: Objects,
    files: Files,
}

/// The stored part of a changeset.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Description {
    /// `agent/instance` of the conversation that opened it.
    pub(crate) owner: String,
    pub(crate) reason: Option<String>,
    /// The directory of the checkout.
    repository: PathBuf,
    /// Where the bundle is in it.
    bundle: PathBuf,
    /// The rules for the commit.
    config: Config,
    /// The variables that are not passed to git and to the check.
    #[serde(default)]
    secret_variables: Option<Arc<[String]>>,
    /// Whether its files are still being written.
    #[serde(default)]
    opening: bool,
    /// The commit to which the repository was about to be moved.
    #[serde(default)]
    pub(crate) commit: Option<String>,
    /// The files in which versions are marked since a merge.
    #[serde(default)]
    conflicts: Vec<String>,
}

/// A tree that is based on the commit that is checked out.
pub(crate) enum Rebased {
    Done {
        head: String,
        tree: String,
        changes: Vec<Change>,
    },
    Conflict {
        head: String,
        files: Vec<String>,
    },
    Forbidden {
        head: String,
        files: Vec<String>,
    },
    /// Its tree is another one than that which was approved.
    Other {
        head: String,
    },
}

impl Changesets {
    /// Returns those of the extension for which `ctx` is, or `None` if it should run nothing.
    pub(crate) async fn of(api: &ExtensionApi, ctx: &InitContext, config: Config) -> Result<Option<Self>> {
        if ctx.inspect() {
            return Ok(None);
        }
        let directory = match (ctx.bundle_root(), &config.repository) {
            (Some(root), Some(repository)) => root.join(repository),
            (Some(root), None) => root.to_owned(),
            (None, Some(repository)) => repository.clone(),
            (None, None) => {
                return Err(Error::new(ErrorCode::EXT_CONFIG, "there is no bundle, and so no repository to change")
                    .suggest("write a directory of the repository as `repository` in the config"));
            }
        };
        let this = ctx.clone();
        let environment = config.environment(move || this.secret_variables().ok());
        if let Some(note) = environment.note() {
            api.logger().info(note);
        }
        let git = Git::find(&directory, environment.clone()).await?;
        let bundle = fs::canonicalize(&directory)?.strip_prefix(&git.root).map(Path::to_owned).unwrap_or_default();
        let root = ctx.bundle_root().map(fs::canonicalize).transpose()?;
        let is_own = root.is_some_and(|root| root.starts_with(&git.root));
        let owner = format!("{}/{}", ctx.agent(), ctx.instance());
        let directory = ctx.state_dir()?;
        Ok(Some(Self { git, directory, owner, config, environment, bundle, is_own }))
    }

    /// Returns those in `directory` as the conversation of `description` has them.
    pub(crate) async fn at(directory: &Path, description: &Description) -> Result<Self> {
        let Description { owner, repository, bundle, config, secret_variables, .. } = description.clone();
        let environment = config.environment(move || secret_variables.clone());
        let (git, directory) = (Git::find(&repository, environment.clone()).await?, directory.to_owned());
        Ok(Self { git, directory, owner, config, environment, bundle, is_own: false })
    }

    /// Returns them for a tool.
    pub(crate) fn to_run(this: Option<&Self>) -> Result<&Self> {
        this.ok_or_else(|| Error::msg("the conversation was opened to look at it, and runs no tool"))
    }

    /// Opens a changeset on the commit that is checked out, which is returned too.
    pub(crate) async fn open(&self, reason: Option<String>) -> Result<(Changeset, String)> {
        let head = self.git.head().await?;
        let id = format!("cs-{:016x}", fastrand::u64(..));
        let description = Description {
            owner: self.owner.clone(),
            reason,
            repository: self.git.root.clone(),
            bundle: self.bundle.clone(),
            config: self.config.clone(),
            secret_variables: self.environment.secret_variables(),
            opening: true,
            commit: None,
            conflicts: Vec::new(),
        };
        let mut changeset = self.changeset(&id, description)?;
        // Before the work tree: the rest of an opening that was interrupted is listed, and can be discarded.
        changeset.store()?;
        self.git.add_work_tree(&changeset.git.root, &head).await?;
        changeset.set(&head).await?;
        changeset.description.opening = false;
        changeset.store()?;
        Ok((changeset, head))
    }

    /// Returns the changeset `id` of this conversation.
    pub(crate) fn get(&self, id: &str) -> Result<Changeset> {
        let unknown = |message| {
            Err(Error::new(UNKNOWN, message)
                .suggest("`changesets__list` lists the open ones, `changesets__open` opens one"))
        };
        match self.all()?.into_iter().find(|(known, _)| known == id) {
            Some((_, description)) if description.owner == self.owner => self.changeset(id, description),
            Some((_, description)) => {
                unknown(format!("the changeset `{id}` belongs to the conversation {}", description.owner))
            }
            None => unknown(format!("there is no open changeset `{id}`")),
        }
    }

    /// Returns the ids and descriptions of the open changesets of all conversations.
    pub(crate) fn all(&self) -> Result<Vec<(String, Description)>> {
        descriptions(&self.directory)
    }

    /// Returns the path of the work tree of a changeset.
    pub(crate) fn work_tree(&self, id: &str) -> PathBuf {
        self.directory.join(id)
    }

    /// Returns the open changesets of this conversation in this repository, the newest last.
    pub(crate) fn own(&self) -> Result<Vec<Changeset>> {
        let mut own = self.all()?;
        own.retain(|(id, description)| {
            let is_whole = || !description.opening && self.git.work_tree(&self.work_tree(id)).is_linked();
            description.owner == self.owner && is_whole()
        });
        let own = own.into_iter().map(|(id, description)| self.changeset(&id, description));
        let mut own: Vec<_> = own.collect::<Result<_>>()?;
        own.sort_by_key(|changeset| fs::metadata(&changeset.file).and_then(|file| file.modified()).ok());
        Ok(own)
    }

    /// Returns the changeset `id` of this conversation, or the only one if there is no id.
    pub(crate) fn choose(&self, id: Option<&str>) -> Result<Changeset> {
        let Some(id) = id else {
            let own = <[_; 1]>::try_from(self.own()?);
            return own.map(|[only]| only).map_err(|own| {
                Error::new(UNKNOWN, format!("this conversation has {} open changesets, and not one", own.len()))
                    .suggest("name one that `changesets__list` lists, or open one with `changesets__open`")
            });
        };
        self.get(id)
    }

    /// Removes a changeset with its work tree.
    pub(crate) async fn remove(&self, changeset: &Changeset) -> Result<()> {
        // Not by git, which would look at files of an agent.
        files::delete(&changeset.git.root)?;
        files::delete(&changeset.objects.directory)?;
        self.git.remove(&changeset.git).await?;
        self.git.keep(&changeset.reference(), None).await?;
        Ok(fs::remove_file(&changeset.file)?)
    }

    /// As [`Changesets::remove`], while no other program changes the repository.
    pub(crate) async fn discard(&self, changeset: &Changeset) -> Result<()> {
        let _lock = self.lock().await?;
        self.remove(changeset).await
    }

    /// Waits until no other program changes the repository by changesets.
    pub(crate) async fn lock(&self) -> Result<File> {
        lock(self.git.lock_file()).await
    }

    fn changeset(&self, id: &str, description: Description) -> Result<Changeset> {
        let [file, scratch] = ["json", "git"].map(|ending| self.directory.join(format!("{id}.{ending}")));
        let root = self.work_tree(id);
        let git = self.git.work_tree(&root);
        let objects = Objects::new(scratch.clone(), git.store(), self.config.author.clone())?;
        let files = Files::new(root, scratch, objects.clone());
        Ok(Changeset { id: id.to_owned(), description, file, git, objects, files })
    }
}

/// Returns the descriptions in `directory` with the ids of their changesets.
pub(crate) fn descriptions(directory: &Path) -> Result<Vec<(String, Description)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        let Some(id) = name.strip_suffix(".json") else { continue };
        let Ok(text) = fs::read(entry.path()) else { continue };
        // A file that is no description was not written by this extension.
        if let Ok(description) = serde_json::from_slice(&text) {
            all.push((id.to_owned(), description));
        }
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(all)
}

impl Changeset {
    /// Returns the path of the work tree.
    pub(crate) fn work_tree(&self) -> &Path {
        &self.git.root
    }

    /// Returns the changes of the changeset to the commit that is checked out in `repository`. If that is not the one
    /// on which it was opened, they are merged in the work tree; where that is not possible, both versions are
    /// marked.
    pub(crate) async fn rebase(&mut self, repository: &Git, approved: Option<&str>) -> Result<Rebased> {
        let (head, base) = (repository.head().await?, self.git.head().await?);
        let mut tree = match self.stage(&base).await? {
            Staged::Tree(tree) if approved.is_some_and(|approved| approved != tree) => {
                return Ok(Rebased::Other { head });
            }
            Staged::Tree(tree) => tree,
            Staged::Forbidden(files) => return Ok(Rebased::Forbidden { head, files }),
        };
        if head != base {
            let ours = self.objects.commit(&tree, &base, "changeset").await?;
            // Whatever happens to the work tree, git does not forget its files.
            self.git.keep(&self.reference(), Some(&ours)).await?;
            let Merged { tree: merged, conflicts } = self.objects.merge(&head, &ours).await?;
            self.description.conflicts.clone_from(&conflicts);
            self.store()?;
            self.set(&merged).await?;
            self.git.set_head(&head).await?;
            if !conflicts.is_empty() {
                return Ok(Rebased::Conflict { head, files: conflicts });
            }
            tree = merged;
        }
        let marked = self.objects.marked(&tree, &self.description.conflicts).await?;
        if !marked.is_empty() {
            return Ok(Rebased::Conflict { head, files: marked });
        }
        let changes = self.objects.changes(&head, &tree).await?;
        Ok(Rebased::Done { head, tree, changes })
    }

    /// Returns the difference from the commit on which it is based, for people.
    pub(crate) async fn diff(&self) -> Result<String> {
        self.preview().await.map(|(_, difference)| difference)
    }

    /// Returns the tree that a commit would have before it is moved to another base, and the difference from the
    /// present one.
    pub(crate) async fn preview(&self) -> Result<(String, String)> {
        let base = self.git.head().await?;
        match self.stage(&base).await? {
            Staged::Tree(tree) => {
                let difference = self.objects.difference(&base, &tree).await?;
                Ok((tree, difference))
            }
            Staged::Forbidden(paths) => Err(files::forbidden(&paths)),
        }
    }

    /// Applies a unified diff to the files of `base`. Returns their tree.
    pub(crate) async fn apply(&self, base: &str, patch: &str) -> Result<String> {
        let tree = self.objects.apply(&self.objects.tree(base).await?, patch).await?;
        self.set(&tree).await?;
        Ok(tree)
    }

    async fn stage(&self, base: &str) -> Result<Staged> {
        if self.description.opening {
            return Err(Error::new(GIT, format!("the changeset `{}` was not opened completely", self.id))
                .suggest("discard it, and open another one"));
        }
        self.files.stage(base, self.git.settings().await?).await
    }

    /// Writes the files of a tree, or of a commit's tree.
    async fn set(&self, tree: &str) -> Result<()> {
        self.files.set(&self.objects.tree(tree).await?).await?;
        // For shells; without it they only see other files as changed.
        _ = self.objects.read_tree(tree, &self.git.index()).await;
        Ok(())
    }

    /// Stores the commit that the repository gets next.
    pub(crate) fn will_be(&mut self, commit: &str) -> Result<()> {
        self.description.commit = Some(commit.to_owned());
        self.store()
    }

    fn store(&self) -> Result<()> {
        let text = serde_json::to_vec_pretty(&self.description)?;
        let new = self.file.with_extension("new");
        fs::write(&new, text)?;
        Ok(fs::rename(new, &self.file)?)
    }

    /// Returns the reference that keeps its files.
    pub(crate) fn reference(&self) -> String {
        format!("refs/goondan/{}", self.id)
    }
}
