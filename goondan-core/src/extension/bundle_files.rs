//! The files that a bundle is made of.
// TREE-01

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

/// The files that the bundle of an agent is made of: its documents, the files that its models read, its libraries,
/// those that its commands run, and the directory in which conversations are stored.
/// [`InitContext::bundle_files`](super::InitContext::bundle_files) returns them.
///
/// An extension that writes files for a model does not write these: they decide which code the program runs.
///
/// ```
/// use std::path::Path;
///
/// use goondan::extension::BundleFiles;
///
/// let bundle = BundleFiles::new(["/bundle/goondan.yaml".into()]).read_from("/bundle");
/// assert_eq!(bundle.paths().collect::<Vec<_>>(), [Path::new("/bundle/goondan.yaml")]);
/// // With another document, it would be another bundle.
/// assert!(bundle.would_change(Path::new("/bundle/more.yaml"), b"kind: Extension"));
/// assert!(!bundle.would_change(Path::new("/bundle/more.yaml"), b"colour: green"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BundleFiles {
    #[serde(serialize_with = "as_texts")]
    files: Vec<PathBuf>,
    directory: Option<PathBuf>,
}

/// JSON has no form for other paths, and no tool call can name them.
fn as_texts<S: Serializer>(files: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(files.iter().filter_map(|file| file.to_str()))
}

impl BundleFiles {
    /// The files that make a directory a bundle.
    #[doc(hidden)]
    pub const MAIN_NAMES: [&str; 2] = ["goondan.yaml", "goondan.yml"];
    /// The file that marks a directory as a cache, such as the target directory of cargo. No bundle has files there.
    #[doc(hidden)]
    pub const CACHE_TAG: &str = "CACHEDIR.TAG";

    /// Creates a list of absolute paths. Not all need to exist.
    pub fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { files: files.into_iter().collect(), directory: None }
    }

    /// Sets the directory from which all documents are read, also new ones: an absolute path without links. Without it,
    /// the bundle is one document.
    #[must_use]
    pub fn read_from(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Adds a file or a directory, as an absolute path.
    #[doc(hidden)]
    pub fn add(&mut self, path: impl Into<PathBuf>) {
        self.files.push(path.into());
    }

    /// Iterates over the files, as absolute paths. Some may not exist yet, such as a recording. A directory stands for
    /// all that is in it.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    /// Returns whether the bundle would have other documents the next time that it is read, if there were a file with
    /// this content at `path`, an absolute path without links.
    pub fn would_change(&self, path: &Path, content: &[u8]) -> bool {
        self.is_inside(path) && (self.hides(path) || is_yaml(path) && Self::declares(content))
    }

    /// Returns whether [`would_change`](Self::would_change) is true for some content.
    pub fn may_change(&self, path: &Path) -> bool {
        self.is_inside(path) && (self.hides(path) || is_yaml(path))
    }

    fn is_inside(&self, path: &Path) -> bool {
        self.directory.as_ref().is_some_and(|directory| path.starts_with(directory))
    }

    /// Returns whether files of the bundle would be in another bundle or in a cache if there were a file at `path`, and
    /// the directories above it.
    fn hides(&self, path: &Path) -> bool {
        path.ancestors().any(|path| {
            let mut marks = Self::MAIN_NAMES.into_iter().chain([Self::CACHE_TAG]);
            let is_mark = path.file_name().is_some_and(|name| marks.any(|mark| name.eq_ignore_ascii_case(mark)));
            is_mark && path.parent().is_some_and(|around| self.paths().any(|file| file.starts_with(around)))
        })
    }

    /// Returns whether the author of a file probably meant to declare resources. It looks at bytes, because the file
    /// may not even be text.
    #[doc(hidden)]
    pub fn declares(content: &[u8]) -> bool {
        let needle = b"goondan.ai/";
        let kind = |line: &[u8]| {
            let start = line.iter().position(|byte| !b"{\"' \xef\xbb\xbf".contains(byte)).unwrap_or(line.len());
            // An indented `kind` is a field of something else.
            line[start..].starts_with(b"kind") && !line.starts_with(b" ")
        };
        content.windows(needle.len()).any(|window| window == needle) || content.split(|byte| *byte == b'\n').any(kind)
    }
}

/// Whether a document could have this path, on any file system.
fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["yaml", "yml"].iter().any(|yaml| ending.eq_ignore_ascii_case(yaml)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yaml_below_the_directory_changes_the_bundle() {
        let bundle = BundleFiles::new(["/b/agents/one.yml".into()]).read_from("/b");
        for (path, content) in [
            ("/b/x.yaml", "a: 1\nkind: Agent"),
            ("/b/deep/x.yml", "{\"kind\": \"Agent\"}"),
            ("/b/x.yaml", "apiVersion: goondan.ai/v1"),
            ("/b/agents/goondan.yaml", ""),
            ("/b/agents/goondan.yaml/x.txt", ""),
            ("/b/CACHEDIR.TAG", ""),
        ] {
            assert!(bundle.would_change(Path::new(path), content.as_bytes()), "{path}");
            assert!(!BundleFiles::new([]).would_change(Path::new(path), content.as_bytes()), "{path}");
        }
        for (path, content) in [
            ("/b/x.txt", "kind: Agent"),
            ("/c/x.yaml", "kind: Agent"),
            ("/b/x.yaml", "a:\n  kind: Agent"),
            ("/b/other/goondan.yaml", ""),
            ("/b/other/CACHEDIR.TAG", ""),
        ] {
            assert!(!bundle.would_change(Path::new(path), content.as_bytes()), "{path}");
        }
    }
}
