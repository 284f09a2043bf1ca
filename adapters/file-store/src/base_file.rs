//! `base.jsonl` of an open instance: the turns that only append are appended to it, for readers, without a sync. Its
//! content counts for an opening only as far as the journal knows it.

use goondan_core::{Error, ErrorCode, MessageEvent, Result};

use super::atomic::io_error;
use super::base::{self, BaseIndex, Fingerprint};
use super::disk::DiskFile;
use super::events::EventsFile;
use super::layout::InstanceDir;
use super::lines;
use super::records::FoldedRecord;
use super::standing::{FoundTail, Standing};

/// The file, while its instance is open.
#[derive(Debug)]
pub(super) struct BaseFile {
    /// The content of the file after the last write.
    fingerprint: Fingerprint,
    /// Whether it has all committed turns.
    pub(super) is_complete: bool,
    /// `None` until it is written to.
    file: Option<Box<dyn DiskFile>>,
}

impl BaseFile {
    /// Brings the file that was read up to the journal if that takes only appending.
    pub(super) fn recover(dir: &InstanceDir, standing: &Standing) -> Self {
        let is_complete = standing.only_appends();
        let mut file = Self { fingerprint: standing.loaded.index.fingerprint.clone(), is_complete, file: None };
        let tail = &standing.tail;
        if is_complete && tail.found != FoundTail::Whole {
            if let Err(error) = file.write_tail(dir, &tail.expected) {
                file.is_complete = false;
                tracing::warn!(error = %error.report(), "the base is behind the journal");
            }
        } else {
            file.fingerprint.add(&tail.expected);
        }
        file
    }

    pub(super) fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Appends the lines of a committed turn that has only appended, unsynced.
    pub(super) fn append<'a>(
        &mut self,
        dir: &InstanceDir,
        events: impl IntoIterator<Item = &'a MessageEvent>,
    ) -> Result<()> {
        let lines = base::appended(&dir.base(), &self.fingerprint, events)?;
        if lines.is_empty() {
            return Ok(());
        }
        let at = self.fingerprint.bytes;
        let (path, file) = (dir.base(), self.open(dir)?);
        let failed = |error| io_error("write", &path, error);
        // The rest is from another program and must not be overwritten. In a file that is too short, writing at
        // `at` would leave a hole.
        if file.metadata().map_err(failed)?.len() != at {
            return Err(failed(std::io::Error::other("another program has changed its length")));
        }
        file.write_at(at, &lines).map_err(failed)?;
        self.fingerprint.add(&lines);
        Ok(())
    }

    /// Syncs the appended lines, and reads the file once more, because the journal that has it too is about to go.
    ///
    /// # Errors
    /// `E_STORE_DAMAGED` when another program has changed the file.
    // BITS-01
    pub(super) fn sync(&mut self, dir: &InstanceDir) -> Result<()> {
        let path = dir.base();
        self.open(dir)?.sync().map_err(|error| io_error("sync", &path, error))?;
        let found = base::fingerprint(&path)?;
        if (found.bytes, found.crc()) == (self.fingerprint.bytes, self.fingerprint.crc()) {
            return Ok(());
        }
        Err(Error::new(ErrorCode::STORE_DAMAGED, format!("{}: another program has changed it", path.display()))
            .suggest("open the instance again: it says what differs from the journal"))
    }

    /// Writes all turns that the base lacks, synced. A base that must be rewritten is announced in `events`, so that an
    /// opening knows the old one and the new one, and replaced atomically.
    pub(super) fn complete(&mut self, dir: &InstanceDir, standing: &Standing, events: &mut EventsFile) -> Result<()> {
        self.file = None;
        self.fingerprint = standing.loaded.index.fingerprint.clone();
        if standing.only_appends() {
            self.write_tail(dir, &standing.tail.expected)?;
            self.sync(dir)?;
        } else if let Some(turn) = standing.records.committed() {
            let conversation = standing.conversation();
            let BaseIndex { fingerprint, .. } = base::write_temporary(dir, &standing.loaded.index, &conversation)?;
            let (base_bytes, crc) = (fingerprint.bytes, fingerprint.crc());
            let mut line = Vec::new();
            let record = FoldedRecord { folded: std::borrow::Cow::Borrowed(turn), base_bytes, crc };
            lines::push_with_sum(&mut line, &record, events.path())?;
            let announced = events.append(&line).and_then(|()| events.sync());
            announced.map_err(|error| discard(dir, error))?;
            dir.ops().install_temporary(&dir.base())?;
            self.fingerprint = fingerprint;
        }
        self.is_complete = true;
        Ok(())
    }

    /// Writes `lines` behind the part that the fingerprint covers, over the rest.
    fn write_tail(&mut self, dir: &InstanceDir, lines: &[u8]) -> Result<()> {
        let (at, path) = (self.fingerprint.bytes, dir.base());
        let file = self.open(dir)?;
        let written = file.set_len(at).and_then(|()| file.write_at(at, lines));
        written.map_err(|error| io_error("write", &path, error))?;
        self.fingerprint.add(lines);
        Ok(())
    }

    /// Returns the file, which is opened again if its path leads to another one.
    fn open(&mut self, dir: &InstanceDir) -> Result<&mut Box<dyn DiskFile>> {
        let path = dir.base();
        let is_there = |file: &dyn DiskFile| file.metadata().and_then(|file| path.leads_to(&file));
        let file = match self.file.take().filter(|file| is_there(&**file).unwrap_or(false)) {
            Some(file) => file,
            None => dir.ops().open(&path)?,
        };
        Ok(self.file.insert(file))
    }
}

fn discard(dir: &InstanceDir, error: Error) -> Error {
    _ = dir.ops().discard_temporary(&dir.base(), std::io::Error::other("unused"));
    error
}
