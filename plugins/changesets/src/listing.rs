//! The files of a tree as a directory had them when it was last looked at, so that only files that have changed since
//! are read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cap_std::fs::{Metadata, MetadataExt};
use goondan::Result;

use crate::objects::Blob;

/// A tree, and the metadata of its files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listing {
    pub(crate) tree: String,
    /// By path.
    pub(crate) files: BTreeMap<Vec<u8>, File>,
}

/// A file of the tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct File {
    pub(crate) blob: Blob,
    /// The stamp that it had with this content, if that is certain.
    pub(crate) stamp: Option<Stamp>,
}

/// The metadata that changes with the content of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stamp {
    size: u64,
    inode: u64,
    changed: Moment,
    modified: Moment,
}

/// Seconds and nanoseconds by the clock of the file system.
pub(crate) type Moment = (i64, i64);

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.size(),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Whether each later change gives the file another stamp: not in the tick of the clock in which it was changed.
    fn is_certain(&self, now: Moment) -> bool {
        self.changed < now && self.modified < now
    }
}

impl Listing {
    /// Returns the listing of a tree, without stamps of files.
    pub(crate) fn new(tree: String, files: Vec<(Vec<u8>, Blob)>) -> Self {
        let files = files.into_iter().map(|(path, blob)| (path, File { blob, stamp: None }));
        Self { tree, files: files.collect() }
    }

    /// Returns the listing that [`Listing::store`] has stored, if there is something.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        parse(&fs::read(path).ok()?)
    }

    /// Stores it, without the stamps that are not certain at `now`, when none of the files had been looked at.
    pub(crate) fn store(&self, path: &Path, now: Moment) -> Result<()> {
        let mut text = self.tree.clone().into_bytes();
        text.push(0);
        for (name, File { blob, stamp }) in &self.files {
            let stamp = stamp.filter(|stamp| stamp.is_certain(now)).map(|stamp| {
                let Stamp { size, inode, changed, modified } = stamp;
                format!("{size} {inode} {} {} {} {}", changed.0, changed.1, modified.0, modified.1)
            });
            let stamp = stamp.unwrap_or_default();
            text.extend_from_slice(format!("{} {} {stamp}\t", blob.mode, blob.id).as_bytes());
            text.extend_from_slice(name);
            text.push(0);
        }
        let new = path.with_extension("new");
        fs::write(&new, text)?;
        Ok(fs::rename(new, path)?)
    }

    /// Returns whether a file of the tree is below the directory `path`.
    pub(crate) fn has_below(&self, path: &[u8]) -> bool {
        let prefix = [path, b"/"].concat();
        self.files.range(prefix.clone()..).next().is_some_and(|(file, _)| file.starts_with(&prefix))
    }
}

/// Returns the moment it is by the clock of the file system with `directory`.
pub(crate) fn now(directory: &Path) -> Result<Moment> {
    use std::os::unix::fs::MetadataExt as _;
    let clock = directory.join("clock");
    fs::write(&clock, "now")?;
    let metadata = fs::metadata(clock)?;
    Ok((metadata.mtime(), metadata.mtime_nsec()))
}

fn parse(text: &[u8]) -> Option<Listing> {
    let mut parts = text.split(|byte| *byte == 0);
    let tree = String::from_utf8(parts.next()?.to_owned()).ok()?;
    let entries = parts.filter(|part| !part.is_empty()).map(parse_file);
    Some(Listing { tree, files: entries.collect::<Option<_>>()? })
}

fn parse_file(entry: &[u8]) -> Option<(Vec<u8>, File)> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let mut fields = std::str::from_utf8(&entry[..tab]).ok()?.split(' ').filter(|field| !field.is_empty());
    let blob = Blob { mode: fields.next()?.to_owned(), id: fields.next()?.to_owned() };
    let numbers: Vec<i64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
    let stamp = match numbers[..] {
        [] => None,
        [size, inode, changed, of_changed, modified, of_modified] => Some(Stamp {
            size: u64::try_from(size).ok()?,
            inode: inode.cast_unsigned(),
            changed: (changed, of_changed),
            modified: (modified, of_modified),
        }),
        _ => return None,
    };
    Some((entry[tab + 1..].to_owned(), File { blob, stamp }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_loaded_without_stamps_that_are_not_certain() {
        let blob = || Blob { mode: "100644".to_owned(), id: "1f".to_owned() };
        let stamp = |modified| Stamp { size: 7, inode: 8, changed: (10, 20), modified };
        let file = |stamp| File { blob: blob(), stamp };
        let files = |second| {
            let files = [(&b"a\tb\n"[..], Some(stamp((9, 5)))), (b"c", second), (b"d/e", None)];
            files.map(|(path, stamp)| (path.to_owned(), file(stamp))).into()
        };
        let listing = Listing { tree: "2e".to_owned(), files: files(Some(stamp((11, 0)))) };
        let directory = std::env::temp_dir().join(format!("listing-{}", std::process::id()));
        listing.store(&directory, (11, 0)).unwrap();
        let loaded = Listing::load(&directory).unwrap();
        fs::remove_file(directory).unwrap();
        assert_eq!(loaded, Listing { tree: "2e".to_owned(), files: files(None) });
        assert_eq!([b"d", b"a"].map(|path| loaded.has_below(path)), [true, false]);
        assert_eq!(parse(b"2e\x00100644"), None);
    }
}
