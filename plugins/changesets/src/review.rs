//! Open changesets as a person sees them, who commits or discards them: the work of `goondan changeset`.

use std::path::{Path, PathBuf};

use goondan::Result;

use crate::changeset::{Changeset, Changesets, Description, descriptions};
use crate::commit::Committed;

/// An open changeset of any conversation.
#[derive(Debug)]
pub struct Review {
    id: String,
    directory: PathBuf,
    description: Description,
}

impl Review {
    /// Returns the changesets that are described in `directory`: the directory of an extension below the state root.
    ///
    /// # Errors
    /// The directory exists and cannot be read.
    pub fn all(directory: &Path) -> Result<Vec<Self>> {
        let of = |(id, description)| Self { id, directory: directory.to_owned(), description };
        Ok(descriptions(directory)?.into_iter().map(of).collect())
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the conversation that opened it: its agent and its key.
    pub fn conversation(&self) -> &str {
        &self.description.owner
    }

    /// Returns why it was opened, if it is known.
    pub fn reason(&self) -> Option<&str> {
        self.description.reason.as_deref()
    }

    /// Returns the path of the work tree.
    pub fn work_tree(&self) -> PathBuf {
        self.directory.join(&self.id)
    }

    /// Returns its changes, as a unified diff of all files, also of those that are no text. They may have control
    /// characters.
    ///
    /// # Errors
    /// git fails, or `E_CHANGESET_FILES` when it has files that no changeset may have.
    pub async fn diff(&self) -> Result<String> {
        let (changesets, changeset) = self.open().await?;
        let _lock = changesets.lock().await?;
        changeset.diff().await
    }

    /// Commits it to its repository by the rules of the conversation that opened it. The message is the reason, unless
    /// it is given.
    ///
    /// # Errors
    /// git cannot list its changes.
    pub async fn commit(&self, message: Option<String>) -> Result<Committed> {
        let (changesets, changeset) = self.open().await?;
        changesets.commit(changeset, message, None).await
    }

    /// Deletes it with all its changes.
    ///
    /// # Errors
    /// The work tree cannot be deleted.
    pub async fn discard(&self) -> Result<()> {
        let (changesets, changeset) = self.open().await?;
        changesets.discard(&changeset).await
    }

    async fn open(&self) -> Result<(Changesets, Changeset)> {
        let changesets = Changesets::at(&self.directory, &self.description).await?;
        let changeset = changesets.get(&self.id)?;
        Ok((changesets, changeset))
    }
}
