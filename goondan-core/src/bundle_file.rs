//! Files of bundles, opened to be read.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// A file of a bundle, or of another directory with files that are not trusted, which was opened to be read.
///
/// It is a regular file: opening a pipe would wait, and `/dev/zero` has no end.
///
/// ```
/// use goondan::extension::BundleFile;
///
/// # let directory = tempfile::tempdir()?;
/// # let root = directory.path();
/// std::fs::write(root.join("rules.txt"), "Be brief.")?;
/// let rules = BundleFile::open_within(root, &root.join("rules.txt"))?;
/// assert_eq!(rules.read_whole(1_000)?, b"Be brief.");
///
/// std::os::unix::fs::symlink("/etc/hostname", root.join("link"))?;
/// let outside = BundleFile::open_within(root, &root.join("link")).unwrap_err();
/// assert_eq!(outside.to_string(), "a link leads out of the root");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// SIZE-01
#[derive(Debug)]
pub struct BundleFile {
    file: File,
    /// Its length when it was opened.
    length: u64,
}

impl BundleFile {
    /// Opens a file, wherever links on the way lead.
    ///
    /// # Errors
    /// When it cannot be opened, or is no regular file.
    pub fn open(path: &Path) -> Result<Self, BundleFileError> {
        // Before it is opened, which for a pipe would wait.
        check_regular(&fs::metadata(path)?)?;
        let file = File::open(path)?;
        // Another one could have been put there meanwhile.
        let opened = file.metadata()?;
        check_regular(&opened)?;
        Ok(Self { file, length: opened.len() })
    }

    /// Opens a file that is below `root`, also if there are links on the way.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when it is not below `root`.
    pub fn open_within(root: &Path, path: &Path) -> Result<Self, BundleFileError> {
        let (path, root) = (path.canonicalize()?, root.canonicalize()?);
        if !path.starts_with(&root) {
            return Err(BundleFileError::Outside);
        }
        let file = Self::open(&path)?;
        // A directory on the way could have become a link since it was checked.
        if file.is_below(&root, &path)? { Ok(file) } else { Err(BundleFileError::Outside) }
    }

    /// Returns whether this file, which was opened at `path`, is below `root`. Neither has links.
    fn is_below(&self, root: &Path, path: &Path) -> io::Result<bool> {
        // Linux knows where an open file is now, whatever happens to the directories on the way meanwhile.
        #[cfg(target_os = "linux")]
        if let Ok(place) = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.file))) {
            return Ok(place.starts_with(root));
        }
        // Elsewhere, a program that changes a directory between two of these system calls is not noticed.
        Ok(path.starts_with(root)
            && path.canonicalize()? == path
            && is_same(&self.file.metadata()?, &fs::symlink_metadata(path)?))
    }

    /// Reads all of the file.
    ///
    /// # Errors
    /// When it cannot be read, or has more than `limit` bytes. Of those, no more than the limit is read.
    pub fn read_whole(self, limit: u64) -> Result<Vec<u8>, BundleFileError> {
        if self.length > limit {
            return Err(BundleFileError::TooLarge(limit));
        }
        // It may grow while it is read, and some file systems do not know sizes.
        let bytes = self.read_beginning(limit.saturating_add(1))?;
        if bytes.len() as u64 > limit { Err(BundleFileError::TooLarge(limit)) } else { Ok(bytes) }
    }

    /// Reads the beginning of the file: at most `limit` bytes.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_beginning(self, limit: u64) -> Result<Vec<u8>, BundleFileError> {
        // With room for one byte more, its end is found without another buffer.
        let room = self.length.saturating_add(1).min(limit);
        let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
        self.file.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the open file.
    pub fn into_file(self) -> File {
        self.file
    }
}

#[cfg(unix)]
fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

fn check_regular(metadata: &fs::Metadata) -> Result<(), BundleFileError> {
    if metadata.is_file() { Ok(()) } else { Err(BundleFileError::NotRegular) }
}

/// Why a file of a bundle cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum BundleFileError {
    /// The system says so.
    Io(io::Error),
    /// It is a directory, a pipe or a device.
    NotRegular,
    /// It is not below the root.
    Outside,
    /// It has more bytes than this.
    TooLarge(u64),
}

impl fmt::Display for BundleFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotRegular => f.write_str("it is no regular file"),
            Self::Outside => f.write_str("a link leads out of the root"),
            Self::TooLarge(limit) => write!(f, "it is larger than {limit} bytes"),
        }
    }
}

impl std::error::Error for BundleFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::NotRegular | Self::Outside | Self::TooLarge(_) => None,
        }
    }
}

impl From<io::Error> for BundleFileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Changes a directory on the way into a link and back, as fast as it can.
    #[test]
    fn what_was_checked_is_what_is_read() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (root, skill) = (inside.path(), inside.path().join("skill"));
        fs::create_dir(&skill).unwrap();
        fs::write(skill.join("file"), "inside").unwrap();
        fs::write(outside.path().join("file"), "outside").unwrap();
        symlink(outside.path(), root.join("link")).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let [link, aside] = ["link", "aside"].map(|name| root.join(name));
                while !is_over.load(Ordering::Relaxed) {
                    fs::rename(&skill, &aside).and_then(|()| fs::rename(&link, &skill)).unwrap();
                    fs::rename(&skill, &link).and_then(|()| fs::rename(&aside, &skill)).unwrap();
                }
            });
            let read = |_| BundleFile::open_within(root, &skill.join("file")).ok()?.read_whole(100).ok();
            let read: Vec<_> = (0..50_000).filter_map(read).collect();
            is_over.store(true, Ordering::Relaxed);
            assert!(read.iter().all(|bytes| bytes == b"inside"), "{} were read", read.len());
            assert!(!read.is_empty());
        });
    }
}
