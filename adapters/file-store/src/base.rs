//! `base.jsonl`: reading it message by message, and writing the next one without holding it in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

use crc32fast::Hasher;
use goondan_core::{Conversation, Error, Message, Result};

use super::atomic::{self, io_error};
use super::disk::DiskFile;
use super::layout::InstanceDir;
use super::lines::{self, damaged, ends_line, is_torn};
use super::path::{Access, StorePath};

/// Size of one read or write. It fits into the cache nearest to a core, so that the bytes of a chunk are still there
/// when they are checksummed and written.
const CHUNK: usize = 1 << 16;

/// Length and checksum of a base. They allow appending to it without reading it, so that a turn costs only what it
/// adds.
#[derive(Clone, Debug)]
pub(super) struct Fingerprint {
    pub(super) bytes: u64,
    hasher: Hasher,
    pub(super) ends_line: bool,
}

impl Fingerprint {
    /// The fingerprint of an empty base.
    pub(super) fn new() -> Self {
        Self { bytes: 0, hasher: Hasher::new(), ends_line: true }
    }

    pub(super) fn add(&mut self, more: &[u8]) {
        if !more.is_empty() {
            self.hasher.update(more);
            self.bytes += more.len() as u64;
            self.ends_line = ends_line(more);
        }
    }

    pub(super) fn crc(&self) -> u32 {
        self.hasher.clone().finalize()
    }

    /// Returns the fingerprint of the first `end` bytes of a file.
    pub(super) fn of(path: &StorePath, end: u64) -> Result<Self> {
        let read = || -> io::Result<Self> {
            let (mut file, mut chunk, mut fingerprint) =
                (path.open(Access::Read)?.take(end), vec![0; CHUNK], Self::new());
            loop {
                match file.read(&mut chunk)? {
                    0 => return Ok(fingerprint),
                    count => fingerprint.add(&chunk[..count]),
                }
            }
        };
        read().map_err(|error| io_error("read", path, error))
    }
}

/// The offsets of the lines of a base. They allow rewriting it by copying unchanged lines.
#[derive(Debug)]
pub(super) struct BaseIndex {
    pub(super) fingerprint: Fingerprint,
    /// The offset at which the line of each message ends; it starts where the previous one ends.
    pub(super) ends: Vec<u64>,
}

/// A base that was read.
pub(super) struct LoadedBase {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) index: BaseIndex,
    /// The offset of the last line, if a crash tore it. The other fields cover only the bytes before it.
    pub(super) tear: Option<u64>,
}

impl LoadedBase {
    /// A base without lines.
    pub(super) fn empty() -> Self {
        Self {
            messages: Vec::new(),
            index: BaseIndex { fingerprint: Fingerprint::new(), ends: Vec::new() },
            tear: None,
        }
    }
}

/// Reads the file at `path`, whose last line may be torn; or, with `end`, its first `end` bytes, which must not be
/// torn.
pub(super) fn load(path: &StorePath, end: Option<u64>) -> Result<LoadedBase> {
    scan(path, end, &mut |_, error| Err(error))
}

/// Like [`load`], but calls `refuse` for each line that is not a message, and skips the line if that returns `Ok`.
pub(super) fn scan(
    path: &StorePath,
    end: Option<u64>,
    refuse: &mut dyn FnMut(usize, Error) -> Result<()>,
) -> Result<LoadedBase> {
    let failed = |error| io_error("read", path, error);
    let file = atomic::open(path)?;
    let mut file = BufReader::with_capacity(CHUNK, file.take(end.unwrap_or(u64::MAX)));
    let mut loaded = LoadedBase::empty();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        let blank = line.trim_ascii().is_empty();
        if end.is_none() && !blank && !ends_line(&line) && is_torn(&line) {
            loaded.tear = Some(loaded.index.fingerprint.bytes);
            break;
        }
        loaded.index.fingerprint.add(&line);
        if blank {
            continue;
        }
        match lines::parse(&line) {
            Ok(message) => {
                loaded.messages.push(Arc::new(message));
                loaded.index.ends.push(loaded.index.fingerprint.bytes);
            }
            Err(error) => refuse(number, damaged(path, number, "this is no message").caused_by(error))?,
        }
    }
    Ok(loaded)
}

/// Appends `lines` to the base, whose valid length is `at` bytes, and syncs it.
pub(super) fn append(dir: &InstanceDir, at: u64, lines: &[u8]) -> Result<()> {
    let path = dir.base();
    let failed = |error| io_error("write", &path, error);
    let mut file = dir.ops().open(&path)?;
    // What follows is from another program and must not be overwritten: what a failed write of this one left is cut
    // off before. In a file that is too short, writing at `at` would leave a hole.
    if file.size().map_err(failed)? != at {
        return Err(failed(io::Error::other("another program has changed its length")));
    }
    file.write_at(at, lines).and_then(|()| file.sync()).map_err(failed)
}

/// Writes the messages of `conversation` to the temporary file beside the base, and syncs it. Lines of unchanged
/// messages are copied from the old base.
pub(super) fn write_temporary(dir: &InstanceDir, old: &BaseIndex, conversation: &Conversation) -> Result<BaseIndex> {
    let path = dir.base();
    let mut writer = BaseWriter::new(dir.ops().create_temporary(&path)?);
    let written = writer.write(&path, old, conversation).and_then(|()| writer.finish());
    match written {
        Ok(()) => Ok(writer.index),
        Err(error) => Err(dir.ops().discard_temporary(&path, error)),
    }
}

/// Returns the fingerprint of the base that [`write_temporary`] would write.
pub(super) fn compute(dir: &InstanceDir, old: &BaseIndex, conversation: &Conversation) -> Result<Fingerprint> {
    let (path, mut writer) = (dir.base(), BaseWriter::new(Box::new(Nowhere)));
    writer.write(&path, old, conversation).map_err(|error| io_error("read", &path, error))?;
    Ok(writer.index.fingerprint)
}

/// A file that is not there.
#[derive(Debug)]
struct Nowhere;

impl DiskFile for Nowhere {
    fn write_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(0)
    }
}

/// Writes a new base to a file through a buffer of one chunk, and builds its index.
struct BaseWriter {
    file: Box<dyn DiskFile>,
    buffer: Vec<u8>,
    index: BaseIndex,
}

impl BaseWriter {
    fn new(file: Box<dyn DiskFile>) -> Self {
        let index = BaseIndex { fingerprint: Fingerprint::new(), ends: Vec::new() };
        Self { file, buffer: Vec::with_capacity(CHUNK), index }
    }

    fn write(&mut self, path: &StorePath, old: &BaseIndex, conversation: &Conversation) -> io::Result<()> {
        // Copy nothing if the index does not match: when messages of the base share an id, the conversation has fewer
        // of them than the file, and when another program wrote to the file, its lines are unknown.
        let indexed = conversation.base_len() == old.ends.len() && path.len()? == old.fingerprint.bytes;
        let mut source = indexed.then(|| path.open(Access::Read)).transpose()?;
        // Consecutive messages of the old base that are unchanged and not copied yet.
        let mut unchanged: Range<usize> = 0..0;
        for (index, message) in conversation.messages_of_base() {
            match (index, &mut source) {
                (Some(index), Some(_)) if index == unchanged.end && !unchanged.is_empty() => unchanged.end += 1,
                (Some(index), Some(source)) => {
                    self.copy(source, old, std::mem::replace(&mut unchanged, index..index + 1))?;
                }
                (_, source) => {
                    if let Some(source) = source {
                        self.copy(source, old, std::mem::take(&mut unchanged))?;
                    }
                    serde_json::to_writer(&mut *self, &**message)?;
                    self.end_line()?;
                }
            }
        }
        source.map_or(Ok(()), |mut source| self.copy(&mut source, old, unchanged))
    }

    /// Copies the lines of consecutive messages of the old base.
    fn copy(&mut self, source: &mut File, old: &BaseIndex, messages: Range<usize>) -> io::Result<()> {
        if messages.is_empty() {
            return Ok(());
        }
        let start = messages.start.checked_sub(1).map_or(0, |before| old.ends[before]);
        let ends = &old.ends[messages];
        let length = ends.last().map_or(0, |end| end - start);
        let at = self.index.fingerprint.bytes;
        source.seek(SeekFrom::Start(start))?;
        self.copy_bytes(source, length)?;
        self.index.ends.extend(ends.iter().map(|end| end - start + at));
        if !self.index.fingerprint.ends_line {
            // The last line of a file of another implementation may lack its line end.
            self.index.ends.pop();
            self.end_line()?;
        }
        Ok(())
    }

    fn copy_bytes(&mut self, source: &mut File, mut length: u64) -> io::Result<()> {
        while length > 0 {
            if self.buffer.len() == CHUNK {
                self.flush()?;
            }
            let before = self.buffer.len();
            let count = (CHUNK - before).min(usize::try_from(length).unwrap_or(CHUNK));
            self.buffer.resize(before + count, 0);
            source.read_exact(&mut self.buffer[before..]).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => io::Error::other("the base became shorter while it was read"),
                _ => error,
            })?;
            self.index.fingerprint.add(&self.buffer[before..]);
            length -= count as u64;
        }
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.write_all(b"\n")?;
        self.index.ends.push(self.index.fingerprint.bytes);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync()
    }
}

impl Write for BaseWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > CHUNK {
            self.flush()?;
        }
        self.index.fingerprint.add(bytes);
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let at = self.index.fingerprint.bytes - self.buffer.len() as u64;
        if !self.buffer.is_empty() {
            self.file.write_at(at, &self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}
