//! Places that no tool changes, because programs obey what is there.
// TREE-01

use std::path::{Component, Path, PathBuf};

use goondan::{Error, Result};
use wildmatch::WildMatch;

use crate::place::Place;

/// A protected path is not changed.
const PROTECTED: &str = "E_FILE_PROTECTED";
/// What git reads, and what NTFS calls it too.
const GIT: [&str; 3] = [".git*", "git~?", "git???~?"];
/// The files with which shells start.
const SHELLS: [&str; 23] = [
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".envrc",
    ".inputrc",
    ".kshrc",
    ".login",
    ".logout",
    ".mkshrc",
    ".pam_environment",
    ".profile",
    ".tcshrc",
    ".xprofile",
    ".xsession",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    ".config/fish",
];

/// Protected paths.
#[derive(Debug)]
pub(crate) struct Protected {
    /// Everywhere.
    git: Vec<Pattern>,
    /// In places that are no work trees.
    others: Vec<Pattern>,
}

/// A pattern for each component of a path that begins at a root, or of one name at any depth.
#[derive(Debug)]
struct Pattern {
    parts: Vec<WildMatch>,
    is_anywhere: bool,
}

impl Protected {
    /// Returns the usual ones and those of `more`; none if it is empty.
    pub(crate) fn new(more: Option<Vec<String>>) -> Self {
        if more.as_ref().is_some_and(Vec::is_empty) {
            return Self { git: Vec::new(), others: Vec::new() };
        }
        let shells = SHELLS.map(|name| Pattern { is_anywhere: true, ..Pattern::new(name) });
        let more = more.unwrap_or_default();
        let others = shells.into_iter().chain(more.iter().map(|pattern| Pattern::new(pattern)));
        Self { git: GIT.map(Pattern::new).into(), others: others.collect() }
    }

    /// # Errors
    /// `E_FILE_PROTECTED` when the place is protected, or what its links lead to. The last one is left out if
    /// `is_link`, which says that the link itself is meant.
    pub(crate) fn check(&self, place: &Place, is_link: bool) -> Result<()> {
        for path in [&place.path, &real(place, is_link)] {
            if self.has(place, path) {
                return Err(refused(place, path));
            }
        }
        Ok(())
    }

    /// # Errors
    /// `E_FILE_PROTECTED` when something below a directory is protected. In a work tree, what is deleted is reviewed.
    pub(crate) fn check_below(&self, place: &Place) -> Result<()> {
        let mut pending = vec![place.path.clone()];
        while let Some(directory) = pending.pop().filter(|_| !place.is_in_work_tree) {
            // Deleting it tells what is wrong, if something is.
            let Ok(entries) = place.dir.read_dir(&directory) else { continue };
            for entry in entries.filter_map(|entry| entry.ok()) {
                let path = directory.join(entry.file_name());
                if self.has(place, &path) {
                    return Err(refused(place, &path));
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(path);
                }
            }
        }
        Ok(())
    }

    fn has(&self, place: &Place, path: &Path) -> bool {
        let names = work_trees::components(path.as_os_str());
        let others = if place.is_in_work_tree { &[][..] } else { &self.others };
        let is_protected = self.git.iter().chain(others).any(|pattern| pattern.matches(&names));
        // A commit of it would be refused anyway.
        is_protected || place.is_in_work_tree && work_trees::is_in_git(path.as_os_str().as_encoded_bytes())
    }
}

impl Pattern {
    fn new(pattern: &str) -> Self {
        let pattern = pattern.to_lowercase();
        let parts = pattern.split('/').filter(|part| !part.is_empty()).map(WildMatch::new).collect();
        Self { parts, is_anywhere: !pattern.contains('/') }
    }

    /// Whether the path is one of these, or below one.
    fn matches(&self, names: &[String]) -> bool {
        let mut starts = names.windows(self.parts.len().max(1)).take(if self.is_anywhere { usize::MAX } else { 1 });
        starts.any(|names| self.parts.iter().zip(names).all(|(part, name)| part.matches(name)))
    }
}

/// Returns the path without links. What is not there yet has none.
fn real(place: &Place, is_link: bool) -> PathBuf {
    let above = place.path.ancestors().skip(is_link.into()).filter(|above| !above.as_os_str().is_empty());
    let found = above.map(|above| (above, place.dir.canonicalize(above))).find_map(|(above, real)| {
        let rest = place.path.strip_prefix(above).ok()?;
        Some(real.ok()?.join(rest))
    });
    let real = found.unwrap_or_else(|| place.path.clone());
    real.components().filter(|part| *part != Component::CurDir).collect()
}

fn refused(place: &Place, path: &Path) -> Error {
    let path = place.absolute(path);
    Error::new(PROTECTED, format!("{} is protected: programs obey what is there", path.display()))
        .suggest("let a person change it, or take it out of what `protect` in the config of the extension protects")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_protected_at_any_depth_and_a_path_at_its_own() {
        let matches = |pattern: &str, path: &str| Pattern::new(pattern).matches(&work_trees::components(path.as_ref()));
        for (pattern, path) in
            [(".git*", "a/.GitHub/b"), ("Keys/*.pem", "keys/a.pem"), ("/keys", "keys/a"), ("k?y", "a/key")]
        {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in
            [(".git*", "a/git"), ("keys/*.pem", "a/keys/a.pem"), ("/keys", "a/keys"), ("keys/a", "keys")]
        {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }
}
