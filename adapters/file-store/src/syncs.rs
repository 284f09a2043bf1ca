//! The work of a thread while the disk syncs.

use std::cell::Cell;
use std::fs::Metadata;
use std::io::Result;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use super::disk::{Disk, DiskFile, OpenMode};
use super::path::StorePath;

/// Where the runtime's other tasks run while the disk syncs: on the thread that runs the turn, or elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Syncs {
    /// They wait. A runtime with two threads syncs two conversations at once.
    #[default]
    OnThread,
    /// Another thread takes them over, by [`tokio::task::block_in_place`], so that the syncs of up to 256 conversations
    /// overlap and the disk makes them together. For programs that run many conversations at once.
    ///
    /// It needs a runtime with several threads, whose tasks run the turns. On any other thread the store syncs as with
    /// [`Syncs::OnThread`]. In a `LocalSet` of such a runtime the first sync of the thread also prints the message of a
    /// panic, which is caught; so a program that is compiled with `panic = "abort"` must not use it there.
    InPlace,
}

/// The syncs that hand tasks over at once, each on a thread: half of those that a runtime makes at most, if it is built
/// with the default. More syncs are made where they are, while these are in flight.
const MOST: usize = 256;

/// The number of syncs of this process that have handed tasks over.
static HANDED_OVER: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether the runtime refuses to hand over the tasks of this thread.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// One of [`MOST`].
struct Permit;

impl Permit {
    fn take() -> Option<Self> {
        let more = |taken| (taken < MOST).then_some(taken + 1);
        HANDED_OVER.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        HANDED_OVER.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs `sync`, meanwhile another thread runs the other tasks of this one, if there are any.
fn in_place(mut sync: impl FnMut() -> Result<()>) -> Result<()> {
    let several = || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if REFUSED.get() || !several() {
        return sync();
    }
    let Some(_permit) = Permit::take() else { return sync() };
    let mut began = false;
    let work = || {
        began = true;
        sync()
    };
    match catch_unwind(AssertUnwindSafe(|| block_in_place(work))) {
        Ok(result) => result,
        Err(panic) if began => resume_unwind(panic),
        // A `LocalSet` of a runtime with several threads, which is not told apart before.
        Err(_) => {
            REFUSED.set(true);
            sync()
        }
    }
}

/// Wraps a disk for [`Syncs::InPlace`].
#[derive(Debug)]
pub(super) struct InPlaceDisk(pub(super) Arc<dyn Disk>);

#[derive(Debug)]
struct InPlaceFile(Box<dyn DiskFile>);

impl Disk for InPlaceDisk {
    fn open(&self, path: &StorePath, mode: OpenMode) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(InPlaceFile(self.0.open(path, mode)?)))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &StorePath) -> Result<()> {
        self.0.remove(path)
    }

    fn create_dir(&self, path: &StorePath) -> Result<()> {
        self.0.create_dir(path)
    }

    fn sync_dir(&self, path: &StorePath) -> Result<()> {
        in_place(|| self.0.sync_dir(path))
    }
}

impl DiskFile for InPlaceFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_at(at, bytes)
    }

    fn metadata(&self) -> Result<Metadata> {
        self.0.metadata()
    }

    fn set_len(&mut self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    fn sync(&mut self) -> Result<()> {
        in_place(|| self.0.sync())
    }
}
