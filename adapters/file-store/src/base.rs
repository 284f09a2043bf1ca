//! `base.jsonl`: reading it message by message, and writing the next one without holding it in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

use crc32fast::Hasher;
use goondan_core::{Conversation, Error, Message, MessageEvent, Result};

use super::atomic::io_error;
use super::disk::DiskFile;
use super::grammar::KnownBase;
use super::layout::InstanceDir;
use super::lines::{self, damaged, ends_line};
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
}

impl LoadedBase {
    /// A base without lines.
    pub(super) fn empty() -> Self {
        Self { messages: Vec::new(), index: BaseIndex { fingerprint: Fingerprint::new(), ends: Vec::new() } }
    }
}

/// Reads the base as far as one of the bases `known` goes that the file begins with: the newest one that `fits`, or if
/// none does, the newest one. Returns `None` in place of that one if the file begins with none of them.
///
/// A file may begin with several: a base without the last messages is the beginning of the one that has them.
pub(super) fn load(
    path: &StorePath,
    known: &[KnownBase],
    fits: &mut dyn FnMut(KnownBase, &Fingerprint) -> Result<bool>,
) -> Result<(LoadedBase, Option<KnownBase>)> {
    let end = known.iter().map(|base| base.bytes).max().unwrap_or_default();
    let mut found: Vec<Found> = Vec::new();
    let mut lines = 0;
    let mut compare = |loaded: &LoadedBase| {
        let fingerprint = &loaded.index.fingerprint;
        let begins = known.iter().filter(|base| base.bytes == fingerprint.bytes && base.crc == fingerprint.crc());
        let messages = loaded.messages.len();
        found.extend(begins.map(|base| Found { base: *base, lines, messages, fingerprint: fingerprint.clone() }));
        lines += 1;
    };
    let mut refused = None;
    let mut loaded = scan(path, end, &mut compare, &mut |line, error| {
        refused.get_or_insert((line, error));
        Ok(())
    })?;
    if found.is_empty() {
        return match refused {
            // The last line that was read may only be cut.
            Some(_) => scan(path, u64::MAX, &mut |_| {}, &mut |_, error| Err(error)).map(|loaded| (loaded, None)),
            None => Ok((loaded, None)),
        };
    }
    // The rest of the file behind the base may be torn.
    found.retain(|found| refused.as_ref().is_none_or(|(line, _)| *line > found.lines));
    found.sort_by_key(|found| std::cmp::Reverse((found.base.turns, found.lines)));
    let mut fitting = 0;
    if found.len() > 1 {
        for (at, candidate) in found.iter().enumerate() {
            if fits(candidate.base, &candidate.fingerprint)? {
                fitting = at;
                break;
            }
        }
    }
    match (found.into_iter().nth(fitting), refused) {
        (Some(Found { base, messages, fingerprint, .. }), _) => {
            loaded.messages.truncate(messages);
            loaded.index.ends.truncate(messages);
            loaded.index.fingerprint = fingerprint;
            Ok((loaded, Some(base)))
        }
        (None, Some((_, error))) => Err(error),
        (None, None) => Ok((loaded, None)),
    }
}

/// A known base that a file begins with.
struct Found {
    base: KnownBase,
    lines: usize,
    messages: usize,
    fingerprint: Fingerprint,
}

/// Reads the first `end` bytes of the base. Calls `after` at its start and after each line, and `refuse` for each line
/// that is not a message, which is skipped if that returns `Ok`. A file that does not exist has no lines.
pub(super) fn scan(
    path: &StorePath,
    end: u64,
    after: &mut dyn FnMut(&LoadedBase),
    refuse: &mut dyn FnMut(usize, Error) -> Result<()>,
) -> Result<LoadedBase> {
    let failed = |error| io_error("read", path, error);
    let mut loaded = LoadedBase::empty();
    after(&loaded);
    if end == 0 {
        return Ok(loaded);
    }
    let file = match path.open(Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(loaded),
        file => file.map_err(failed)?,
    };
    let mut file = BufReader::with_capacity(CHUNK, file.take(end));
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        loaded.index.fingerprint.add(&line);
        if !line.trim_ascii().is_empty() {
            match lines::parse(&line) {
                Ok(message) => {
                    loaded.messages.push(Arc::new(message));
                    loaded.index.ends.push(loaded.index.fingerprint.bytes);
                }
                Err(error) => refuse(number, damaged(path, number, "this is no message").caused_by(error))?,
            }
        }
        after(&loaded);
    }
    Ok(loaded)
}

/// Returns the fingerprint of the file at `path`, without parsing it.
pub(super) fn fingerprint(path: &StorePath) -> Result<Fingerprint> {
    let read = || -> io::Result<Fingerprint> {
        let (mut file, mut fingerprint, mut chunk) = (path.open(Access::Read)?, Fingerprint::new(), vec![0; CHUNK]);
        loop {
            match file.read(&mut chunk) {
                Ok(0) => return Ok(fingerprint),
                Ok(length) => fingerprint.add(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    read().map_err(|error| io_error("read", path, error))
}

/// Returns the bytes of the base after the first `start`, at most `len` of them and one more.
pub(super) fn tail(path: &StorePath, start: u64, len: usize) -> Result<Vec<u8>> {
    let read = || -> io::Result<Vec<u8>> {
        let (mut file, mut tail) = (path.open(Access::Read)?, Vec::with_capacity(len + 2));
        file.seek(SeekFrom::Start(start))?;
        file.take(len as u64 + 1).read_to_end(&mut tail)?;
        Ok(tail)
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(|error| io_error("read", path, error)),
    }
}

/// Returns the lines that `events` append to a base with the fingerprint `before`.
pub(super) fn appended<'a>(
    path: &StorePath,
    before: &Fingerprint,
    events: impl IntoIterator<Item = &'a MessageEvent>,
) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for message in events.into_iter().filter_map(MessageEvent::appended) {
        // A base that was accepted as it is may lack its last line end.
        if lines.is_empty() && !before.ends_line {
            lines.push(b'\n');
        }
        lines::push(&mut lines, message, path)?;
    }
    Ok(lines)
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
