//! The files of a directory as a tree of git, and back: byte for byte, without git looking at them.
// TREE-01

use std::collections::HashSet;
use std::fs::{self, File as Lock};
use std::path::{Path, PathBuf};

use goondan::{Error, Result};

use crate::blobs;
use crate::ignored::Rules;
use crate::listing::{self, File, Listing, Moment};
use crate::objects::{Blob, Objects, SUBMODULE};
use crate::place::Place;
use crate::walk::{self, Differences};

/// Files that no changeset may have.
pub(crate) const FILES: &str = "E_CHANGESET_FILES";

/// A directory whose files are those of a tree, or have been.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    root: PathBuf,
    /// Where is kept what is known of them.
    scratch: PathBuf,
    objects: Objects,
}

/// The settings of the person, which git would obey too.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Files with the rules for all directories. Later ones win.
    pub(crate) ignored: Vec<PathBuf>,
    /// Whether the file system knows which files are programs.
    pub(crate) modes: bool,
}

/// The files of a directory as they are.
pub(crate) enum Staged {
    Tree(String),
    /// Paths that no tree may have.
    Forbidden(Vec<String>),
}

impl Files {
    pub(crate) fn new(root: PathBuf, scratch: PathBuf, objects: Objects) -> Self {
        Self { root, scratch, objects }
    }

    /// Makes the directory one with the files of `tree`. Other files stay.
    pub(crate) async fn set(&self, tree: &str) -> Result<()> {
        let target = Listing::new(tree.to_owned(), self.objects.list(tree).await?);
        self.work(move |work| work.set(target)).await
    }

    /// As [`Files::set`], and deletes files that are neither in `tree` nor ignored there.
    pub(crate) async fn set_exactly(&self, tree: &str, settings: Settings) -> Result<()> {
        let target = Listing::new(tree.to_owned(), self.objects.list(tree).await?);
        self.work(move |work| {
            work.set(target)?;
            work.clean(&settings)
        })
        .await
    }

    /// Returns the tree of all files that are not ignored. Files of `base` are never ignored.
    pub(crate) async fn stage(&self, base: &str, settings: Settings) -> Result<Staged> {
        let tree = self.objects.tree(base).await?;
        let tracked = Listing::new(tree.clone(), self.objects.list(&tree).await?);
        let mut known = self.known().unwrap_or_else(|| tracked.clone());
        // Nothing refers to a tree that was staged long ago, and git deletes it some day.
        if known.tree != tree && !self.objects.has(&known.tree).await? {
            known = tracked.clone();
        }
        let stage = move |work: &Work| work.stage(known, &tracked, &settings);
        let (mut listing, differences, changes, now) = self.work(stage).await?;
        if !differences.forbidden.is_empty() {
            let shown = differences.forbidden.iter().map(|path| String::from_utf8_lossy(path).into_owned());
            return Ok(Staged::Forbidden(shown.collect()));
        }
        if !changes.is_empty() {
            listing.tree = self.objects.change(&listing.tree, &changes).await?;
        }
        listing.store(&self.listing(), now)?;
        Ok(Staged::Tree(listing.tree))
    }

    fn listing(&self) -> PathBuf {
        self.scratch.join("files")
    }

    fn known(&self) -> Option<Listing> {
        Listing::load(&self.listing())
    }

    /// Does some work on a thread that may block, while no other does any.
    async fn work<T: Send + 'static>(&self, work: impl FnOnce(&Work) -> Result<T> + Send + 'static) -> Result<T> {
        let files = self.clone();
        tokio::task::spawn_blocking(move || {
            // The work of a call that was cancelled goes on.
            let lock = Lock::create(files.scratch.join("lock"))?;
            lock.lock()?;
            let now = listing::now(&files.scratch)?;
            work(&Work { files, now })
        })
        .await?
    }
}

/// Work on a directory that began at some moment.
struct Work {
    files: Files,
    now: Moment,
}

/// Files that are not as the tree has them; `None` for those that are gone.
type Changes = Vec<(Vec<u8>, Option<Blob>)>;

impl Work {
    fn place(&self) -> Result<Place> {
        Ok(Place::open(&self.files.root, &self.files.scratch)?)
    }

    fn set(&self, mut target: Listing) -> Result<()> {
        let known = self.files.known().unwrap_or_default();
        let mut place = self.place()?;
        check_paths(target.files.keys())?;
        let is_new = known.files.is_empty();
        for path in known.files.keys().filter(|path| !target.files.contains_key(*path)) {
            place.remove(path)?;
        }
        // A file that looks as it did when it had the right content has it still.
        let differences = walk::differences(&place.root, &known, &known, &Rules::default(), true)?;
        let mut others: HashSet<_> = differences.changed.into_iter().map(|found| found.path).collect();
        others.extend(differences.gone);
        let mut missing = Vec::new();
        for (path, file) in &mut target.files {
            match known.files.get(path) {
                Some(known) if known.blob == file.blob && !others.contains(path) => file.stamp = known.stamp,
                _ => missing.push((path.clone(), file.blob.clone())),
            }
        }
        let (submodules, files): (Vec<_>, Vec<_>) = missing.into_iter().partition(|(_, blob)| blob.mode == SUBMODULE);
        for (path, _) in submodules {
            place.put(&path, SUBMODULE, &[])?;
        }
        let ids: Vec<_> = files.iter().map(|(_, blob)| blob.id.as_str()).collect();
        blobs::read(&self.files.objects, &ids, |at, content| {
            let (path, blob) = &files[at];
            let stamp = place.put(path, &blob.mode, &content)?;
            target.files.entry(path.clone()).and_modify(|file| file.stamp = stamp);
            Ok(())
        })?;
        // No other process knows a new directory before it is complete.
        let now = if is_new { listing::now(&self.files.scratch)? } else { self.now };
        target.store(&self.files.listing(), now)
    }

    /// Deletes files that are neither in the tree nor ignored by it.
    fn clean(&self, settings: &Settings) -> Result<()> {
        let known = self.files.known().unwrap_or_default();
        let mut place = self.place()?;
        let rules = Rules::new(&settings.ignored);
        let differences = walk::differences(&place.root, &known, &known, &rules, settings.modes)?;
        let new = differences.new.into_iter().map(|found| found.path);
        for path in new.chain(differences.forbidden) {
            place.remove(&path)?;
        }
        Ok(())
    }

    fn stage(
        &self,
        mut listing: Listing,
        tracked: &Listing,
        settings: &Settings,
    ) -> Result<(Listing, Differences, Changes, Moment)> {
        let place = self.place()?;
        let rules = Rules::new(&settings.ignored);
        let differences = walk::differences(&place.root, &listing, tracked, &rules, settings.modes)?;
        let mut changes = Vec::new();
        if differences.forbidden.is_empty() {
            let found: Vec<_> = differences.changed.iter().chain(&differences.new).collect();
            if !found.is_empty() {
                let mut writer = blobs::Writer::new(&self.files.objects)?;
                for found in found {
                    let Some(content) = place.read(found)? else { continue };
                    let blob = Blob { mode: found.mode.to_owned(), id: writer.store(&content)? };
                    let file = File { blob: blob.clone(), stamp: Some(found.stamp) };
                    if listing.files.insert(found.path.clone(), file).is_none_or(|old| old.blob != blob) {
                        changes.push((found.path.clone(), Some(blob)));
                    }
                }
                writer.end()?;
            }
            for path in &differences.gone {
                listing.files.remove(path);
                changes.push((path.clone(), None));
            }
        }
        Ok((listing, differences, changes, self.now))
    }
}

/// # Errors
/// `E_CHANGESET_FILES` when a tree has a path that no changeset may have.
fn check_paths<'a>(mut paths: impl Iterator<Item = &'a Vec<u8>>) -> Result<()> {
    match paths.find(|path| work_trees::is_in_git(path)) {
        None => Ok(()),
        Some(path) => Err(forbidden(&[String::from_utf8_lossy(path).into_owned()])),
    }
}

/// Returns the error for paths that no changeset may have.
pub(crate) fn forbidden(paths: &[String]) -> Error {
    Error::new(FILES, format!("no changeset may have {}, which git keeps for itself", paths.join(", ")))
        .suggest("delete what is there, or let `.gitignore` name the directory above it")
}

/// Deletes a directory with everything in it, if there is one.
pub(crate) fn delete(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
