//! Owns `base.jsonl`: reading it message by message, and writing the next one without holding it in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crc32fast::Hasher;
use serde::de::IgnoredAny;

use super::atomic::{self, io_error};
use super::disk::DiskFile;
use super::lines::{damaged, ends_line};
use super::place::Place;
use crate::conversation::{Conversation, Message};
use crate::error::{Error, Result};

/// How much is read or written at once: what the caches nearest to a core hold, so that what was read is still there when its
/// checksum is made and when it is written.
const PIECE: usize = 1 << 16;

/// What one must know of a base to add to it without reading it, so that a turn costs what it adds.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) bytes: u64,
    hasher: Hasher,
    pub(super) ends_line: bool,
}

impl Mark {
    fn new() -> Self {
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

    /// The mark of the first `end` bytes of a file.
    pub(super) fn of(path: &Path, end: u64) -> Result<Self> {
        let read = || -> io::Result<Self> {
            let (mut file, mut piece, mut mark) = (File::open(path)?.take(end), vec![0; PIECE], Self::new());
            loop {
                match file.read(&mut piece)? {
                    0 => return Ok(mark),
                    count => mark.add(&piece[..count]),
                }
            }
        };
        read().map_err(|error| io_error("read", path, error))
    }
}

/// What one must know of a base to rewrite it without writing anew what stays.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) mark: Mark,
    /// Where the line of each message ends; it starts where the one before ends.
    pub(super) ends: Vec<u64>,
}

/// A base, and what it says.
pub(super) struct Loaded {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) base: Base,
    /// Where the last line starts, if a crash tore it; the rest of `self` is about what stands before it.
    pub(super) tear: Option<u64>,
}

/// Reads all of the file at `path`, whose last line may be torn, or the first `end` bytes of it, which must be whole.
pub(super) fn load(path: &Path, end: Option<u64>) -> Result<Loaded> {
    scan(path, end, &mut |_, error| Err(error))
}

/// Like [`load`], and asks `refuse` about lines that are no messages.
pub(super) fn scan(
    path: &Path,
    end: Option<u64>,
    refuse: &mut dyn FnMut(usize, Error) -> Result<()>,
) -> Result<Loaded> {
    let failed = |error| io_error("read", path, error);
    let file = File::open(path).map_err(failed)?;
    let mut file = BufReader::with_capacity(PIECE, file.take(end.unwrap_or(u64::MAX)));
    let mut loaded = Loaded { messages: Vec::new(), base: Base { mark: Mark::new(), ends: Vec::new() }, tear: None };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        let blank = line.trim_ascii().is_empty();
        if end.is_none() && !blank && is_torn(&line) {
            loaded.tear = Some(loaded.base.mark.bytes);
            break;
        }
        loaded.base.mark.add(&line);
        if blank {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(message) => {
                loaded.messages.push(Arc::new(message));
                loaded.base.ends.push(loaded.base.mark.bytes);
            }
            Err(error) => refuse(number, damaged(path, number, "this is no message").caused_by(error))?,
        }
    }
    Ok(loaded)
}

/// A line that lacks only its end is whole: other writers end their files so.
fn is_torn(line: &[u8]) -> bool {
    !ends_line(line) && serde_json::from_slice::<IgnoredAny>(line).is_err()
}

/// Adds `lines` to the base, of which `at` bytes count, and syncs it.
pub(super) fn append(place: &Place, at: u64, lines: &[u8]) -> Result<()> {
    let path = place.base();
    let failed = |error| io_error("write", &path, error);
    let mut file = place.files().open(&path)?;
    // An attempt before this one may have written some of the lines. Anything else is not ours to write over, and beyond
    // the end of a shorter file writing would leave a hole.
    if !(at..=at + lines.len() as u64).contains(&atomic::len(&path)?) {
        return Err(failed(io::Error::other("another program has changed its length")));
    }
    file.write_at(at, lines).and_then(|()| file.sync()).map_err(failed)
}

/// Writes the base that `conversation` is now beside the old one, and syncs it. Lines that stay are copied as they are.
pub(super) fn write_beside(place: &Place, old: &Base, conversation: &Conversation) -> Result<Base> {
    let path = place.base();
    let mut next = Rewrite::new(place.files().beside(&path)?);
    let written = next.write(&path, old, conversation).and_then(|()| next.finish());
    match written {
        Ok(()) => Ok(next.base),
        Err(error) => Err(place.files().give_up_beside(&path, error)),
    }
}

/// A base on its way to a file.
struct Rewrite {
    file: Box<dyn DiskFile>,
    buffer: Vec<u8>,
    base: Base,
}

impl Rewrite {
    fn new(file: Box<dyn DiskFile>) -> Self {
        let base = Base { mark: Mark::new(), ends: Vec::new() };
        Self { file, buffer: Vec::with_capacity(PIECE), base }
    }

    fn write(&mut self, path: &Path, old: &Base, conversation: &Conversation) -> io::Result<()> {
        // Where messages of the base share an id the conversation has fewer of them than the file, and when another
        // program wrote to the file, its lines are not those that are known: then nothing is copied.
        let known = conversation.base_len() == old.ends.len() && std::fs::metadata(path)?.len() == old.mark.bytes;
        let mut source = known.then(|| File::open(path)).transpose()?;
        // The lines of these messages of the base stay, and have not been copied yet.
        let mut staying: Range<usize> = 0..0;
        for (place, message) in conversation.messages_of_base() {
            match (place, &mut source) {
                (Some(place), Some(_)) if place == staying.end && !staying.is_empty() => staying.end += 1,
                (Some(place), Some(source)) => {
                    self.copy(source, old, std::mem::replace(&mut staying, place..place + 1))?;
                }
                (_, source) => {
                    if let Some(source) = source {
                        self.copy(source, old, std::mem::take(&mut staying))?;
                    }
                    serde_json::to_writer(&mut *self, &**message)?;
                    self.end_line()?;
                }
            }
        }
        source.map_or(Ok(()), |mut source| self.copy(&mut source, old, staying))
    }

    /// Copies the lines of some messages of the base that follow one another.
    fn copy(&mut self, source: &mut File, old: &Base, messages: Range<usize>) -> io::Result<()> {
        if messages.is_empty() {
            return Ok(());
        }
        let start = messages.start.checked_sub(1).map_or(0, |before| old.ends[before]);
        let ends = &old.ends[messages];
        let length = ends.last().map_or(0, |end| end - start);
        let at = self.base.mark.bytes;
        source.seek(SeekFrom::Start(start))?;
        self.take_in(source, length)?;
        self.base.ends.extend(ends.iter().map(|end| end - start + at));
        if !self.base.mark.ends_line {
            // The last line of a file of another implementation.
            self.base.ends.pop();
            self.end_line()?;
        }
        Ok(())
    }

    fn take_in(&mut self, source: &mut File, mut length: u64) -> io::Result<()> {
        while length > 0 {
            if self.buffer.len() == PIECE {
                self.flush()?;
            }
            let before = self.buffer.len();
            let piece = (PIECE - before).min(usize::try_from(length).unwrap_or(PIECE));
            self.buffer.resize(before + piece, 0);
            source.read_exact(&mut self.buffer[before..]).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => io::Error::other("the base became shorter while it was read"),
                _ => error,
            })?;
            self.base.mark.add(&self.buffer[before..]);
            length -= piece as u64;
        }
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.write_all(b"\n")?;
        self.base.ends.push(self.base.mark.bytes);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync()
    }
}

impl Write for Rewrite {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > PIECE {
            self.flush()?;
        }
        self.base.mark.add(bytes);
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let at = self.base.mark.bytes - self.buffer.len() as u64;
        if !self.buffer.is_empty() {
            self.file.write_at(at, &self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}
