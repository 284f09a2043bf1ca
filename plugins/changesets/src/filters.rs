//! Filters: programs through which git passes files on their way into a checkout and back. A changeset goes around
//! them, so it must not touch files that have one.
// TREE-01

use std::collections::{BTreeMap, BTreeSet};

use goondan::Result;

use crate::blobs;
use crate::git::Git;
use crate::objects::{Change, Kind, Objects};

/// The beginning of a file that stands for a large one. The filter of the person fetches that one, and makes the same
/// file of it again.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
const LFS: &str = "lfs";

/// The filters that are configured.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    /// Those that the person has configured, and not the repository.
    own: BTreeSet<String>,
    others: BTreeSet<String>,
    /// The settings that make git use those of the person alone.
    settings: Vec<(String, String)>,
}

/// Files of a change that filters are for, or that choose filters.
#[derive(Debug, PartialEq)]
pub(crate) struct Filtered {
    pub(crate) files: Vec<String>,
    pub(crate) message: String,
}

impl Filters {
    pub(crate) async fn of(git: &Git) -> Result<Self> {
        Ok(Self::new(git.configured().await?.iter()))
    }

    fn new<'a>(configured: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> Self {
        let (mut persons, mut repositorys) = (BTreeMap::new(), BTreeMap::new());
        for (scope, name, value) in configured.filter(|(_, name, _)| name.starts_with("filter.")) {
            let settings = if ["system", "global"].contains(&scope) { &mut persons } else { &mut repositorys };
            settings.insert(name, value);
        }
        let settings = repositorys.keys().map(|name| {
            let off = if name.ends_with(".required") { "false" } else { "" };
            ((*name).to_owned(), (*persons.get(name).unwrap_or(&off)).to_owned())
        });
        let settings = settings.collect();
        let (own, others) = (names(&persons), names(&repositorys));
        Self { others: others.difference(&own).cloned().collect(), own, settings }
    }

    pub(crate) fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// Returns why git would have to pass files of a change through filters, if it would.
    pub(crate) async fn refuse(&self, git: &Git, objects: &Objects, changes: &[Change]) -> Result<Option<Filtered>> {
        if self.own.is_empty() && self.others.is_empty() {
            return Ok(None);
        }
        let chosen: Vec<_> = changes.iter().map(|change| &change.path).filter(|path| chooses(path)).cloned().collect();
        if !chosen.is_empty() {
            let filters: Vec<_> = self.own.union(&self.others).map(|name| format!("`{name}`")).collect();
            let filters = filters.join(", ");
            let message = format!("these files choose filters, and git has filters that it would run: {filters}");
            return Ok(Some(Filtered { files: chosen, message }));
        }
        let changed: Vec<_> = changes.iter().filter(|change| change.kind != Kind::Deleted).collect();
        let paths: Vec<_> = changed.iter().map(|change| change.path.as_str()).collect();
        let (mut files, mut large) = (Vec::new(), Vec::new());
        for (path, filter) in git.filters_of(&paths).await? {
            let is_own = self.own.contains(&filter);
            match changed.iter().find(|change| change.path == path) {
                Some(change) if is_own && filter == LFS => large.push((path, change.blob.id.clone())),
                _ if is_own || self.others.contains(&filter) => files.push(path),
                _ => {}
            }
        }
        files.extend(no_pointers(objects, large).await?);
        let message = "these files have a filter, through which a changeset does not pass them".to_owned();
        Ok((!files.is_empty()).then_some(Filtered { files, message }))
    }
}

/// Returns the names of the filters that run something.
fn names(settings: &BTreeMap<&str, &str>) -> BTreeSet<String> {
    let commands = settings.iter().filter(|(_, value)| !value.is_empty()).filter_map(|(name, _)| {
        let (filter, setting) = name.strip_prefix("filter.")?.rsplit_once('.')?;
        ["clean", "smudge", "process"].contains(&setting).then(|| filter.to_owned())
    });
    commands.collect()
}

/// Whether a file chooses filters for others, on any file system.
fn chooses(path: &str) -> bool {
    let name = work_trees::components(path.as_ref()).pop().unwrap_or_default();
    name == ".gitattributes" || name.starts_with("gitatt~")
}

/// Returns those of the files, paths with the ids of their contents, that do not stand for large ones.
async fn no_pointers(objects: &Objects, files: Vec<(String, String)>) -> Result<Vec<String>> {
    let objects = objects.clone();
    tokio::task::spawn_blocking(move || {
        let (paths, ids): (Vec<_>, Vec<_>) = files.iter().map(|(path, id)| (path, id.as_str())).unzip();
        let mut others = Vec::new();
        blobs::read(&objects, &ids, |at, content| {
            // Longer ones are none.
            if content.len() >= 1024 || !content.starts_with(POINTER) {
                others.push(paths[at].clone());
            }
            Ok(())
        })?;
        Ok(others)
    })
    .await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_of_the_repository_is_replaced_by_that_of_the_person() {
        let filters = Filters::new(
            [
                ("global", "filter.lfs.clean", "git-lfs clean"),
                ("global", "filter.off.clean", ""),
                ("system", "core.editor", "vi"),
                ("local", "filter.lfs.clean", "evil"),
                ("local", "filter.a.b=c.smudge", "evil"),
                ("worktree", "filter.a.b=c.required", "true"),
            ]
            .into_iter(),
        );
        assert_eq!(filters.own, [LFS.to_owned()].into());
        assert_eq!(filters.others, ["a.b=c".to_owned()].into());
        let settings =
            [("filter.a.b=c.required", "false"), ("filter.a.b=c.smudge", ""), ("filter.lfs.clean", "git-lfs clean")];
        assert_eq!(filters.settings, settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn attributes_are_recognized() {
        for path in [".gitattributes", "a/.GitAttributes", "a/.gitattributes ", "GITATT~1"] {
            assert!(chooses(path), "{path}");
        }
        assert!(!chooses("gitattributes") && !chooses(".gitattributes/x"));
    }
}
