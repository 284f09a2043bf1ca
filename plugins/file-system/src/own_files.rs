//! The files that the agent is made of. They decide which code the program runs.
// TREE-01

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan::extension::BundleFiles;

/// Device and inode, by which a file is known under all of its names.
pub(crate) type FileId = (u64, u64);

/// The files of a bundle, where links lead to them now.
#[derive(Debug, Default)]
pub(crate) struct OwnFiles {
    bundle: Arc<BundleFiles>,
    files: Vec<OwnFile>,
}

#[derive(Debug)]
struct OwnFile {
    /// The components of its path, without links.
    names: Vec<String>,
    /// `None` if it does not exist.
    id: Option<FileId>,
}

impl OwnFiles {
    /// Returns those that are not around `root`, an absolute path without links: the working directory of the
    /// conversation is below the directory in which it is stored.
    pub(crate) fn new(bundle: Arc<BundleFiles>, root: &Path) -> Self {
        let file = |path: &Path| OwnFile {
            names: names(&without_links(path)),
            id: fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino())),
        };
        let root = names(root);
        let files = bundle.paths().map(file).filter(|file| !root.starts_with(&file.names)).collect();
        Self { files, bundle }
    }

    /// Whether one of them is at `path`, an absolute path without links, or has this id.
    pub(crate) fn has(&self, path: &Path, id: Option<FileId>) -> bool {
        let names = names(path);
        self.files.iter().any(|file| names.starts_with(&file.names) || id.is_some() && file.id == id)
    }

    /// Whether one of them exists at `path` or below it, an absolute path without links.
    pub(crate) fn are_below(&self, path: &Path) -> bool {
        let names = names(path);
        self.files.iter().any(|file| file.id.is_some() && file.names.starts_with(&names))
    }

    /// Whether the bundle would have other documents if the file at one of these paths had this content.
    pub(crate) fn would_change(&self, paths: &[PathBuf], content: &[u8]) -> bool {
        paths.iter().any(|path| self.bundle.would_change(path, content))
    }

    /// Whether that is possible for some content.
    pub(crate) fn may_change(&self, paths: &[PathBuf]) -> bool {
        paths.iter().any(|path| self.bundle.may_change(path))
    }
}

/// Returns the components of a path, without an empty one for a slash at its end.
fn names(path: &Path) -> Vec<String> {
    work_trees::components(path.as_os_str()).into_iter().filter(|name| !name.is_empty()).collect()
}

/// Returns a path without links. A file that is not there yet has none.
fn without_links(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    });
    found.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_file_is_known_by_the_names_that_any_file_system_has_for_it() {
        let own = OwnFiles::new(Arc::new(BundleFiles::new(["/no/such/Bundle/a.yaml".into()])), Path::new("/"));
        for path in ["/no/such/Bundle/a.yaml", "/NO/such/bundle/A.yaml", "/no/such/Bundle/a.yaml. /deep"] {
            assert!(own.has(Path::new(path), None), "{path} {own:?}");
        }
        let inside = OwnFiles::new(Arc::clone(&own.bundle), Path::new("/no/such/bundle/a.yaml/deep"));
        assert!(!inside.has(Path::new("/no/such/Bundle/a.yaml"), None));
        for path in ["/no/such/Bundle", "/no/such/Bundle/a.yml", "/other/no/such/Bundle/a.yaml"] {
            assert!(!own.has(Path::new(path), None), "{path}");
        }
        assert!(!own.are_below(Path::new("/no/such")), "nothing is there");
        let real = tempfile::NamedTempFile::new().unwrap();
        let own = OwnFiles::new(Arc::new(BundleFiles::new([real.path().to_owned()])), Path::new("/"));
        assert!(own.has(real.path(), None) && own.are_below(real.path().parent().unwrap()));
    }
}
