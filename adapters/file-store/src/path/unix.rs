//! The operations on Unix: relative to the directory that holds the name, which is reached without a link.

use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat};
#[cfg(target_os = "linux")]
use nix::fcntl::{OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::{Access, Found, Reason, Refused, StorePath};

const PRIVATE_FILE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);
const DIRECTORY: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_CLOEXEC);

pub(super) fn hold(path: &StorePath) -> Option<File> {
    open_dir(path).ok().map(File::from)
}

pub(super) fn open(path: &StorePath, access: Access) -> io::Result<File> {
    let flags = match access {
        Access::Read => OFlag::O_RDONLY,
        Access::Write => OFlag::O_WRONLY,
        Access::CreateNew => OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL,
        Access::Create => OFlag::O_RDWR | OFlag::O_CREAT,
        Access::Append => OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_APPEND,
    };
    // Non-blocking, because opening a pipe would wait. It changes nothing for a regular file.
    let flags = flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    open_below(path, flags, PRIVATE_FILE).map(File::from)
}

pub(super) fn find(path: &StorePath) -> io::Result<Found> {
    let follow = if path.depth == 0 { AtFlags::empty() } else { AtFlags::AT_SYMLINK_NOFOLLOW };
    let found = at(path, |dir, name| fstatat(dir, name, follow))?;
    match SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => Ok(Found::File { len: u64::try_from(found.st_size).unwrap_or_default() }),
        SFlag::S_IFDIR => Ok(Found::Directory),
        SFlag::S_IFLNK => Err(path.refused(Reason::SymbolicLink)),
        _ => Err(path.refused(Reason::NotAFile)),
    }
}

pub(super) fn names(path: &StorePath) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in Dir::from_fd(open_dir(path)?)?.iter() {
        let name = entry?;
        let name = name.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).into());
        }
    }
    Ok(names)
}

pub(super) fn create_dir(path: &StorePath) -> io::Result<()> {
    at(path, |dir, name| mkdirat(dir, name, Mode::S_IRWXU))
}

pub(super) fn rename(from: &StorePath, to: &StorePath) -> io::Result<()> {
    at(from, |from_dir, from_name| at(to, |dir, name| renameat(from_dir, from_name, dir, name)))
}

pub(super) fn remove_file(path: &StorePath) -> io::Result<()> {
    at(path, |dir, name| unlinkat(dir, name, UnlinkatFlags::NoRemoveDir))
}

pub(super) fn sync_dir(path: &StorePath) -> io::Result<()> {
    File::from(open_dir(path)?).sync_all()
}

pub(super) fn make_private(path: &StorePath) -> io::Result<()> {
    let dir = File::from(open_dir(path)?);
    if dir.metadata()?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    dir.set_permissions(Permissions::from_mode(0o700))
}

pub(super) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

pub(super) fn has_other_names(found: &Metadata) -> bool {
    found.nlink() > 1
}

fn open_dir(path: &StorePath) -> io::Result<OwnedFd> {
    let follow = if path.depth == 0 { OFlag::empty() } else { OFlag::O_NOFOLLOW };
    open_below(path, DIRECTORY | follow, Mode::empty())
}

/// Opens the file or directory with this path.
fn open_below(path: &StorePath, flags: OFlag, mode: Mode) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    match open_in_one(path, flags, mode) {
        // The walk says why, and does without a call that older systems, and sandboxes, refuse.
        Err(error) if !matches!(error, Errno::ENOENT | Errno::EEXIST) => {}
        opened => return Ok(opened?),
    }
    at(path, |dir, name| openat(dir, name, flags, mode))
}

/// As the walk of [`at`], with one call of the kernel for all directories on the way.
#[cfg(target_os = "linux")]
fn open_in_one(path: &StorePath, flags: OFlag, mode: Mode) -> nix::Result<OwnedFd> {
    // The kernel refuses a mode where no file can be made.
    let mode_of_new = if flags.contains(OFlag::O_CREAT) { mode } else { Mode::empty() };
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
    let how = OpenHow::new().flags(flags).mode(mode_of_new).resolve(resolve);
    if let Some(held) = &path.held {
        let (_, below) = path.split_at(held.depth);
        return openat2(&held.dir, if below.as_os_str().is_empty() { Path::new(".") } else { below }, how);
    }
    let (workspace, below) = path.split_at(0);
    if below.as_os_str().is_empty() {
        return openat(AT_FDCWD, workspace, flags, mode);
    }
    openat2(&openat(AT_FDCWD, workspace, DIRECTORY, Mode::empty())?, below, how)
}

/// Calls `act` with the open directory that holds `path`, and the name in it.
fn at<T, E: Into<io::Error>>(
    path: &StorePath,
    act: impl FnOnce(BorrowedFd<'_>, &Path) -> Result<T, E>,
) -> io::Result<T> {
    let (workspace, mut below) = path.split();
    let Some(mut name) = below.next() else { return act(AT_FDCWD, workspace).map_err(Into::into) };
    let act = |dir: BorrowedFd<'_>, name: &Path| {
        act(dir, name).map_err(|error| refused(path, error.into(), Reason::NotAFile))
    };
    if let (Some(held), Some(name)) = (&path.held, path.file_name())
        && held.depth + 1 == path.depth
    {
        return act(held.dir.as_fd(), Path::new(name));
    }
    #[cfg(target_os = "linux")]
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
        && let Ok(dir) = open_in_one(&parent, DIRECTORY, Mode::empty())
    {
        return act(dir.as_fd(), Path::new(name));
    }
    let mut dir = openat(AT_FDCWD, workspace, DIRECTORY, Mode::empty())?;
    let mut reached = workspace.to_owned();
    for next in below {
        reached.push(name);
        dir = openat(&dir, name, DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty())
            .map_err(|error| refused(&reached, error.into(), Reason::NotADirectory))?;
        name = next;
    }
    act(dir.as_fd(), name)
}

/// Returns the error to report when `path` is not opened because of its kind. Systems differ in the codes for it.
fn refused(path: &Path, error: io::Error, otherwise: Reason) -> io::Error {
    let code = error.raw_os_error().map(Errno::from_raw);
    let reason = match code {
        Some(Errno::ELOOP | Errno::EMLINK | Errno::ENOTDIR) => match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => Reason::SymbolicLink,
            _ => otherwise,
        },
        // A pipe without a reader, or a socket.
        Some(Errno::ENXIO) => Reason::NotAFile,
        _ => return error,
    };
    io::Error::other(Refused { path: path.to_owned(), reason })
}
