//! Owns the model of a disk: what it may hold after a crash, given what was done to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use goondan_core::store::OpenMode;

use crate::recorder::Op;

/// The files by their path; directories have none.
pub(crate) type Image = BTreeMap<PathBuf, Vec<u8>>;

#[derive(Clone, Debug, Default)]
struct Inode {
    synced: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    SetLen(usize),
}

#[derive(Clone, Debug)]
enum Name {
    Link(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
    Dir(PathBuf),
}

/// A disk with what is on the medium, and what is on the way to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    inodes: Vec<Inode>,
    /// On the medium: files, and directories as `None`.
    names: BTreeMap<PathBuf, Option<usize>>,
    /// Not yet, by the directory that they are in. Each directory keeps its order.
    pending: BTreeMap<PathBuf, Vec<Name>>,
    handles: HashMap<usize, usize>,
}

/// What becomes of the pending changes of one file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Kept,
    Lost,
    /// The newest write came only half.
    Half,
    /// The oldest write is lost and a newer one is not: zeros stand in its place.
    Hole,
}

impl Model {
    /// A disk that holds `image` for good.
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

    /// The same disk after `op`, of which a write is cut to `bytes`.
    pub(crate) fn apply(&mut self, op: &Op, cut: Option<usize>) {
        let dir = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
        match op {
            Op::Open { file, path, how } => {
                let inode = match self.now().get(path).copied().flatten() {
                    Some(inode) => inode,
                    None => {
                        self.inodes.push(Inode::default());
                        let link = Name::Link(path.clone(), self.inodes.len() - 1);
                        self.pending.entry(dir(path)).or_default().push(link);
                        self.inodes.len() - 1
                    }
                };
                if *how == OpenMode::Truncate {
                    self.inodes[inode].pending.push(Change::SetLen(0));
                }
                self.handles.insert(*file, inode);
            }
            Op::Write { file, at, bytes } => {
                let bytes = bytes[..cut.unwrap_or(bytes.len())].to_vec();
                self.inode(*file).pending.push(Change::Write { at: *at as usize, bytes });
            }
            Op::SetLen { file, len } => self.inode(*file).pending.push(Change::SetLen(*len as usize)),
            Op::Sync { file } => {
                let inode = self.inode(*file);
                inode.synced = inode.content(Fate::Kept);
                inode.pending.clear();
            }
            Op::Rename { from, to } => {
                self.pending.entry(dir(from)).or_default().push(Name::Rename(from.clone(), to.clone()));
            }
            Op::Remove { path } => self.pending.entry(dir(path)).or_default().push(Name::Unlink(path.clone())),
            Op::CreateDir { path } => self.pending.entry(dir(path)).or_default().push(Name::Dir(path.clone())),
            Op::SyncDir { path } => {
                for name in self.pending.remove(path).unwrap_or_default() {
                    enter(&mut self.names, &name);
                }
            }
            Op::Asked(_) | Op::Started { .. } | Op::Returned => {}
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
            pending[..kept[dir.as_path()]].iter().for_each(|name| enter(&mut names, name));
        }
        // What lies in a directory that is not there is not there.
        let there: BTreeSet<_> =
            names.iter().filter(|(_, inode)| inode.is_none()).map(|(path, _)| path.clone()).collect();
        names.retain(|path, _| path.ancestors().skip(1).all(|dir| there.contains(dir)));
        names
    }

    /// What the disk holds after the process alone ended.
    pub(crate) fn seen(&self) -> Image {
        let names = self.now();
        let files = names.iter().filter_map(|(path, inode)| Some((path, (*inode)?)));
        files.map(|(path, inode)| (path.clone(), self.inodes[inode].content(Fate::Kept))).collect()
    }

    /// What the disk may hold after the machine stopped: each file and each directory for itself keeps or loses what was
    /// not synced.
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

fn enter(names: &mut BTreeMap<PathBuf, Option<usize>>, name: &Name) {
    match name {
        Name::Link(path, inode) => _ = names.insert(path.clone(), Some(*inode)),
        Name::Dir(path) => _ = names.insert(path.clone(), None),
        Name::Unlink(path) => _ = names.remove(path),
        Name::Rename(from, to) => {
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
            (0..self.pending.len()).filter(|it| matches!(self.pending[*it], Change::Write { .. })).collect();
        for (index, change) in self.pending.iter().enumerate() {
            match change {
                Change::SetLen(len) => content.resize(*len, 0),
                Change::Write { at, bytes } => {
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

/// Puts an image where a store can open it.
pub(crate) fn lay_out(image: &Image, workspace: &Path) {
    for (path, bytes) in image {
        let path = workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
