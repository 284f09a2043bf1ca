//! Model of a disk: what it may hold after a crash, given the operations before it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use super::recorder::Op;

/// The files of a disk by path. Directories are not listed.
pub(crate) type Image = BTreeMap<PathBuf, Vec<u8>>;

#[derive(Clone, Debug, Default)]
struct Inode {
    synced: Vec<u8>,
    pending: Vec<InodeChange>,
}

#[derive(Clone, Debug)]
enum InodeChange {
    Write { at: usize, bytes: Vec<u8> },
    SetLen(usize),
}

/// A change of a directory entry.
#[derive(Clone, Debug)]
enum EntryChange {
    Link(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
    Dir(PathBuf),
}

/// A disk: what is on the medium, and what is not synced yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiskModel {
    inodes: Vec<Inode>,
    /// The entries on the medium: files with their inode, directories with `None`.
    names: BTreeMap<PathBuf, Option<usize>>,
    /// The unsynced entry changes of each directory, in order.
    pending: BTreeMap<PathBuf, Vec<EntryChange>>,
    handles: HashMap<usize, usize>,
}

/// What a crash of the machine does to the pending changes of one file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Kept,
    Lost,
    /// Only half of the newest write is kept.
    Half,
    /// The oldest write is lost and newer ones are kept, which leaves zeros.
    Hole,
}

impl DiskModel {
    /// Returns a disk on which `image` is synced.
    pub(crate) fn of(image: &Image) -> Self {
        let mut model = Self::default();
        for (path, bytes) in image {
            for dir in path.ancestors().skip(1) {
                model.names.insert(dir.to_owned(), None);
            }
            model.names.insert(path.clone(), Some(model.inodes.len()));
            model.inodes.push(Inode { synced: bytes.clone(), pending: Vec::new() });
        }
        model.names.insert(PathBuf::new(), None);
        model
    }

    /// Applies `op`. If it is a write and `cut` is given, only the first `cut` bytes are written.
    pub(crate) fn apply(&mut self, op: &Op, cut: Option<usize>) {
        let dir = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
        match op {
            Op::Open { file, path } => {
                let inode = match self.now().get(path).copied().flatten() {
                    Some(inode) => inode,
                    None => {
                        self.inodes.push(Inode::default());
                        let link = EntryChange::Link(path.clone(), self.inodes.len() - 1);
                        self.pending.entry(dir(path)).or_default().push(link);
                        self.inodes.len() - 1
                    }
                };
                self.handles.insert(*file, inode);
            }
            Op::Write { file, at, bytes } => {
                let bytes = bytes[..cut.unwrap_or(bytes.len())].to_vec();
                self.inode(*file).pending.push(InodeChange::Write { at: *at as usize, bytes });
            }
            Op::SetLen { file, len } => self.inode(*file).pending.push(InodeChange::SetLen(*len as usize)),
            Op::Sync { file } => {
                let inode = self.inode(*file);
                inode.synced = inode.content(Fate::Kept);
                inode.pending.clear();
            }
            Op::Rename { from, to } => {
                self.pending.entry(dir(from)).or_default().push(EntryChange::Rename(from.clone(), to.clone()));
            }
            Op::Remove { path } => self.pending.entry(dir(path)).or_default().push(EntryChange::Unlink(path.clone())),
            Op::CreateDir { path } => self.pending.entry(dir(path)).or_default().push(EntryChange::Dir(path.clone())),
            Op::SyncDir { path } => {
                for name in self.pending.remove(path).unwrap_or_default() {
                    apply_entry(&mut self.names, &name);
                }
            }
            Op::ModelCalled(_) | Op::ToolStarted { .. } | Op::Returned => {}
        }
    }

    fn inode(&mut self, file: usize) -> &mut Inode {
        let inode = self.handles[&file];
        &mut self.inodes[inode]
    }

    fn now(&self) -> BTreeMap<PathBuf, Option<usize>> {
        self.with_names(&self.pending.iter().map(|(dir, pending)| (dir.as_path(), pending.len())).collect())
    }

    fn with_names(&self, kept: &BTreeMap<&Path, usize>) -> BTreeMap<PathBuf, Option<usize>> {
        let mut names = self.names.clone();
        for (dir, pending) in &self.pending {
            pending[..kept[dir.as_path()]].iter().for_each(|name| apply_entry(&mut names, name));
        }
        // Drop the entries of directories that do not exist.
        let dirs: BTreeSet<_> =
            names.iter().filter(|(_, inode)| inode.is_none()).map(|(path, _)| path.clone()).collect();
        names.retain(|path, _| path.ancestors().skip(1).all(|dir| dirs.contains(dir)));
        names
    }

    /// Returns what the disk holds after a crash of the process.
    pub(crate) fn seen(&self) -> Image {
        let names = self.now();
        let files = names.iter().filter_map(|(path, inode)| Some((path, (*inode)?)));
        files.map(|(path, inode)| (path.clone(), self.inodes[inode].content(Fate::Kept))).collect()
    }

    /// Returns what the disk may hold after a crash of the machine: each file and each directory independently keeps
    /// or loses unsynced changes.
    pub(crate) fn survivors(&self) -> Vec<Image> {
        let mut of_names: Vec<BTreeMap<&Path, usize>> = vec![BTreeMap::new()];
        for (dir, pending) in &self.pending {
            let counts = BTreeSet::from([0, pending.len().saturating_sub(1), pending.len()]);
            of_names = product(of_names, &counts, |kept, count| {
                kept.insert(dir, *count);
            });
        }
        let mut images = Vec::new();
        for kept in of_names {
            let names = self.with_names(&kept);
            let mut some = vec![Image::new()];
            for (path, inode) in &names {
                if let Some(inode) = inode {
                    let contents = self.inodes[*inode].contents();
                    some = product(some, &contents, |image, content| {
                        image.insert(path.clone(), content.clone());
                    });
                }
            }
            images.extend(some);
        }
        images
    }
}

/// Returns each element of `all` combined with each of `choices`.
fn product<T: Clone, C>(all: Vec<T>, choices: impl IntoIterator<Item = C> + Clone, add: impl Fn(&mut T, C)) -> Vec<T> {
    let one = |base: &T, choice: C| {
        let mut base = base.clone();
        add(&mut base, choice);
        base
    };
    all.iter()
        .flat_map(|base| choices.clone().into_iter().map(|choice| one(base, choice)).collect::<Vec<_>>())
        .collect()
}

fn apply_entry(names: &mut BTreeMap<PathBuf, Option<usize>>, change: &EntryChange) {
    match change {
        EntryChange::Link(path, inode) => _ = names.insert(path.clone(), Some(*inode)),
        EntryChange::Dir(path) => _ = names.insert(path.clone(), None),
        EntryChange::Unlink(path) => _ = names.remove(path),
        EntryChange::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
    }
}

impl Inode {
    fn contents(&self) -> BTreeSet<Vec<u8>> {
        [Fate::Kept, Fate::Lost, Fate::Half, Fate::Hole].map(|fate| self.content(fate)).into_iter().collect()
    }

    fn content(&self, fate: Fate) -> Vec<u8> {
        let mut content = self.synced.clone();
        if fate == Fate::Lost {
            return content;
        }
        let writes: Vec<_> =
            (0..self.pending.len()).filter(|it| matches!(self.pending[*it], InodeChange::Write { .. })).collect();
        for (index, change) in self.pending.iter().enumerate() {
            match change {
                InodeChange::SetLen(len) => content.resize(*len, 0),
                InodeChange::Write { at, bytes } => {
                    let half = fate == Fate::Half && writes.last() == Some(&index);
                    let bytes = &bytes[..if half { bytes.len() / 2 } else { bytes.len() }];
                    content.resize(content.len().max(at + bytes.len()), 0);
                    let hole = fate == Fate::Hole && writes.len() > 1 && writes.first() == Some(&index);
                    match hole {
                        true => content[*at..at + bytes.len()].fill(0),
                        false => content[*at..at + bytes.len()].copy_from_slice(bytes),
                    }
                }
            }
        }
        content
    }
}

/// Writes the files of an image to a workspace directory.
pub(crate) fn write_image(image: &Image, workspace: &Path) {
    for (path, bytes) in image {
        let path = workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
