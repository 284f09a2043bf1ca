//! Files that git ignores.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The rules for a directory: those of the person, and those in the directories down to it, the closest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules(Vec<std::rc::Rc<Gitignore>>);

impl Rules {
    /// Returns the rules in `files`. Later ones win.
    pub(crate) fn new(files: &[PathBuf]) -> Self {
        let rules = files.iter().filter_map(|file| std::fs::read(file).ok());
        Self(rules.map(|text| std::rc::Rc::new(parse(Path::new(""), &text))).collect())
    }

    /// Returns the rules for the files in `directory`, whose own are in the file `.gitignore`. As in git, a link there
    /// is not followed.
    pub(crate) fn enter(&self, root: &Dir, directory: &Path) -> Self {
        let mut rules = self.clone();
        let file = directory.join(".gitignore");
        let mut text = Vec::new();
        if root.symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file())
            && let Ok(mut file) = root.open(&file)
            && file.read_to_end(&mut text).is_ok()
        {
            rules.0.push(std::rc::Rc::new(parse(directory, &text)));
        }
        rules
    }

    pub(crate) fn ignore(&self, path: &[u8], is_dir: bool) -> bool {
        // A path of one component would not be told from a bare name.
        let path = Path::new("/").join(OsStr::from_bytes(path));
        let decided = self.0.iter().rev().map(|rules| rules.matched(&path, is_dir)).find(|found| !found.is_none());
        matches!(decided, Some(Match::Ignore(_)))
    }
}

fn parse(directory: &Path, text: &[u8]) -> Gitignore {
    let mut rules = GitignoreBuilder::new(Path::new("/").join(directory));
    for line in String::from_utf8_lossy(text).trim_start_matches('\u{feff}').lines() {
        // A pattern that is none matches nothing.
        _ = rules.add_line(None, line);
    }
    rules.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_rule_decides() {
        let outer = std::rc::Rc::new(parse(Path::new(""), b"*.log\n/top\nbuild/\n!keep.log\n"));
        let inner = std::rc::Rc::new(parse(Path::new("a/b"), b"!x.log\n/own\nc/d\n"));
        let rules = Rules(vec![outer, inner]);
        let cases: [(&str, bool, bool); 11] = [
            ("y.log", false, true),
            ("keep.log", false, false),
            ("a/y.log", false, true),
            ("a/b/x.log", false, false),
            ("top", false, true),
            ("a/b/top", false, false),
            ("a/b/build", true, true),
            ("a/b/build", false, false),
            ("a/b/own", false, true),
            ("a/b/c/d", false, true),
            ("a/b/e/own", false, false),
        ];
        for (path, is_dir, ignored) in cases {
            assert_eq!(rules.ignore(path.as_bytes(), is_dir), ignored, "{path}");
        }
    }
}
