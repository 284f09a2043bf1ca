//! Places that no tool changes, because programs obey the files there.
// TREE-01

use std::path::Path;

use wildmatch::WildMatch;

use crate::place::Place;

/// The names that git reads, and their short names on NTFS.
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

    /// Whether nothing is protected, because the config says so.
    pub(crate) fn is_off(&self) -> bool {
        self.git.is_empty()
    }

    /// Whether a path below the root of a place is protected.
    pub(crate) fn has(&self, place: &Place, path: &Path) -> bool {
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
