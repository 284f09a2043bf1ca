//! A disk that records its operations. It passes them on to the real disk, from which the store reads.

use std::fs::Metadata;
use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use goondan_core::Effect;
use goondan_file_store::{Disk, DiskFile, OpenMode, RealDisk, StorePath};

/// One operation on the disk, or one event of the run.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// `file` identifies the opened file in later operations.
    Open {
        file: usize,
        path: PathBuf,
    },
    Write {
        file: usize,
        at: u64,
        bytes: Vec<u8>,
    },
    SetLen {
        file: usize,
        len: u64,
    },
    Sync {
        file: usize,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    CreateDir {
        path: PathBuf,
    },
    SyncDir {
        path: PathBuf,
    },
    /// The model was called. The content of the newest message in the request.
    ModelCalled(String),
    /// The handler of a tool call was called.
    ToolStarted {
        call: String,
        effect: Effect,
    },
    /// A turn returned to its caller.
    Returned,
}

/// The recorded operations, in order. Paths are relative to the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub(crate) root: PathBuf,
    pub(crate) ops: Arc<Mutex<Vec<Op>>>,
}

impl Recorder {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), ops: Arc::default() }
    }

    pub(crate) fn note(&self, op: Op) {
        self.ops.lock().unwrap().push(op);
    }

    pub(crate) fn take(&self) -> Vec<Op> {
        std::mem::take(&mut self.ops.lock().unwrap())
    }

    fn path(&self, path: &Path) -> PathBuf {
        // Directories above the workspace are in no image.
        path.strip_prefix(&self.root).map_or_else(|_| PathBuf::from("/above"), Path::to_owned)
    }
}

#[derive(Debug)]
struct RecordedFile {
    number: usize,
    file: Box<dyn DiskFile>,
    recorder: Recorder,
}

impl Disk for Recorder {
    fn open(&self, path: &StorePath, mode: OpenMode) -> Result<Box<dyn DiskFile>> {
        let file = RealDisk.open(path, mode)?;
        let mut ops = self.ops.lock().unwrap();
        let number = ops.len();
        ops.push(Op::Open { file: number, path: self.path(path) });
        Ok(Box::new(RecordedFile { number, file, recorder: self.clone() }))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        RealDisk.rename(from, to)?;
        self.note(Op::Rename { from: self.path(from), to: self.path(to) });
        Ok(())
    }

    fn remove(&self, path: &StorePath) -> Result<()> {
        RealDisk.remove(path)?;
        self.note(Op::Remove { path: self.path(path) });
        Ok(())
    }

    fn create_dir(&self, path: &StorePath) -> Result<()> {
        RealDisk.create_dir(path)?;
        self.note(Op::CreateDir { path: self.path(path) });
        Ok(())
    }

    fn sync_dir(&self, path: &StorePath) -> Result<()> {
        RealDisk.sync_dir(path)?;
        self.note(Op::SyncDir { path: self.path(path) });
        Ok(())
    }
}

impl DiskFile for RecordedFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_at(at, bytes)?;
        self.recorder.note(Op::Write { file: self.number, at, bytes: bytes.to_vec() });
        Ok(())
    }

    fn metadata(&self) -> Result<Metadata> {
        self.file.metadata()
    }

    fn set_len(&mut self, len: u64) -> Result<()> {
        self.file.set_len(len)?;
        self.recorder.note(Op::SetLen { file: self.number, len });
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()?;
        self.recorder.note(Op::Sync { file: self.number });
        Ok(())
    }
}
