//! Repair of an instance that does not open: finds the damage, and moves it aside without deleting anything.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use goondan_core::{Error, ErrorCode, Result};
use goondan_runtime::store::InstanceId;
use serde::Serialize;

use super::base::{self, BaseIndex, Fingerprint, LoadedBase};
use super::grammar::JournalRecords;
use super::layout::InstanceDir;
use super::path::StorePath;
use super::records::{BeginRecord, exported};
use super::recovery::recover;
use super::standing::{BaseTail, FoundTail, changed_state, load_base, new_journal, read_journal, replay, what_differs};
use super::state::{self, StoredState};
use super::store::FileStore;
use super::{atomic, checkpoint, lines};

/// Damage in a file of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredFault {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1, if the damage is in a single line.
    pub line: Option<usize>,
    /// The fault.
    pub what: String,
    /// The repair that [`FileStore::repair`] makes.
    pub remedy: String,
}

/// The damage that was found, and the files after a repair.
struct RepairPlan {
    faults: Vec<StoredFault>,
    /// The numbers of the lines to move aside.
    lines: BTreeMap<StorePath, Vec<usize>>,
    files: Vec<StorePath>,
    /// The content of the events, and its readable part.
    bytes: Vec<u8>,
    records: JournalRecords,
    /// The readable part of the base, and the least number of turns of the journal that it has.
    base: LoadedBase,
    turns: usize,
    state: StoredState,
}

impl FileStore {
    /// Returns the damage in the files of an instance, and changes nothing. Damage that every opening repairs by
    /// itself, such as a torn last line, does not count as damage.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_LOCKED` when it is open, `E_STORE_IO` when its
    /// files cannot be read.
    pub fn inspect(&self, instance: &InstanceId) -> Result<Vec<StoredFault>> {
        let dir = self.existing(instance)?;
        // Taking the lock would make a lock file, and no process has an instance open that has none.
        if !dir.lock().exists() {
            return Ok(plan(&dir)?.faults);
        }
        let (dir, _lock) = self.lock(instance)?;
        Ok(plan(&dir)?.faults)
    }

    /// Repairs the damage that [`FileStore::inspect`] reports, so that the instance opens. Damaged lines and files
    /// are kept as `<file>.corrupt-<n>`; nothing is deleted. A file that is not as the last commit left it is accepted
    /// as it is. Returns the repaired damage.
    ///
    /// # Errors
    /// Those of [`FileStore::inspect`], and those of opening the instance when it still cannot be opened.
    pub fn repair(&self, instance: &InstanceId) -> Result<Vec<StoredFault>> {
        let (dir, _lock) = self.lock(instance)?;
        let plan = plan(&dir)?;
        if !plan.faults.is_empty() {
            plan.carry_out(&dir)?;
        }
        dir.ops().create_dirs(&dir.messages())?;
        recover(&dir, self.fsync)?;
        Ok(plan.faults)
    }
}

fn plan(dir: &InstanceDir) -> Result<RepairPlan> {
    let mut plan = RepairPlan {
        faults: Vec::new(),
        lines: BTreeMap::new(),
        files: Vec::new(),
        bytes: Vec::new(),
        records: JournalRecords::default(),
        base: LoadedBase::empty(),
        turns: 0,
        state: StoredState::default(),
    };
    plan.survey_journal(dir)?;
    plan.survey_base(dir)?;
    plan.survey_state(dir)?;
    plan.survey_absent(dir);
    Ok(plan)
}

impl RepairPlan {
    fn fault(&mut self, file: StorePath, line: Option<usize>, what: impl Into<String>, remedy: impl Into<String>) {
        self.faults.push(StoredFault { file: file.to_path_buf(), line, what: what.into(), remedy: remedy.into() });
    }

    /// Moves the lines aside that cannot be read.
    fn lines(&mut self, file: &StorePath, refused: &[(usize, Error)], remedy: &str) {
        for (line, error) in refused {
            let what = match error.source() {
                Some(cause) => format!("{}: {cause}", message_without_position(error)),
                None => message_without_position(error),
            };
            self.fault(file.clone(), Some(*line), what, remedy);
            self.lines.entry(file.clone()).or_default().push(*line);
        }
    }

    fn survey_journal(&mut self, dir: &InstanceDir) -> Result<()> {
        let path = dir.events();
        match read_journal(dir) {
            Err(error) if error.code() == &ErrorCode::STORE_DAMAGED => {
                let remedy = "move the file aside, keep the other files as they are, and give up the turns in it";
                self.fault(path.clone(), None, error.message(), remedy);
                self.files.push(path);
            }
            read => {
                self.bytes = read?.0;
                let (records, refused) = JournalRecords::survey(&self.bytes, &path)?;
                let of_turns = records.turns.iter().map(|turn| turn.events.len()).sum::<usize>();
                let remedy = match of_turns + records.open.as_ref().map_or(0, |open| open.events.len()) {
                    0 => "move the line aside, and store new checksums of the other files as they are".to_owned(),
                    events => format!("move the line aside, and keep the other {events} events of the journal"),
                };
                self.records = records;
                self.lines(&path, &refused, &remedy);
            }
        }
        Ok(())
    }

    fn survey_base(&mut self, dir: &InstanceDir) -> Result<()> {
        let path = dir.base();
        let newest = self.records.bases.last().map_or(0, |base| base.turns);
        if let Ok((base, Some(known))) = load_base(dir, &self.records)
            && BaseTail::read(dir, &self.records, known, &base.index.fingerprint)?.found != FoundTail::Foreign
        {
            (self.base, self.turns) = (base, known.turns);
            return Ok(());
        }
        let mut refused = Vec::new();
        self.base = base::scan(&path, u64::MAX, &mut |_| {}, &mut |line, error| {
            refused.push((line, error));
            Ok(())
        })?;
        self.turns = newest;
        let kept = self.base.messages.len();
        self.lines(&path, &refused, &format!("move the line aside, and keep the other {kept} messages"));
        // A damaged journal is the difference then, and is told already.
        if self.records.checkpoint.is_some() && self.faults.is_empty() {
            let applied = match self.conversation().events().len() {
                0 => String::new(),
                events => format!(", apply {events} events of the journal"),
            };
            let what = format!("{}; {}", what_differs(dir, &self.records)?, where_differs(dir, &self.records)?);
            let remedy = format!("keep it as it is, with its {kept} messages{applied}, and store a new checksum");
            self.fault(path, None, what, remedy);
        }
        Ok(())
    }

    fn survey_state(&mut self, dir: &InstanceDir) -> Result<()> {
        let newest = self.records.state();
        let mut unreadable = Vec::new();
        self.state = state::scan(dir, &mut |path, name, error| {
            unreadable.push((path.clone(), name.clone(), error));
            Ok(())
        })?;
        let mut changed: Vec<_> =
            changed_state(&self.records, &self.state).map(|(name, what)| (name.clone(), what)).collect();
        for (path, name, error) in unreadable {
            changed.retain(|(changed, _)| *changed != name);
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            let remedy = match newest.contains_key(&name) {
                true => "move the file aside: the journal has a newer state",
                false => "move the file aside: the extension starts without state",
            };
            self.fault(path.clone(), None, format!("the state of `{name}` cannot be read{cause}"), remedy);
            self.state.crcs.remove(&name);
            self.files.push(path);
        }
        for (name, what) in changed {
            let remedy = match (newest.contains_key(&name), self.state.crcs.contains_key(&name)) {
                (true, _) => "write it again: the journal has the newest state",
                (false, true) => "keep it as it is, and store a new checksum",
                (false, false) => "go on without it: the extension starts without state",
            };
            self.fault(state::path(dir, &name), None, what, remedy);
        }
        Ok(())
    }

    /// A journal that is empty, although other files are not.
    fn survey_absent(&mut self, dir: &InstanceDir) {
        let is_moved = self.files.contains(&dir.events());
        let (messages, states) = (self.base.messages.len(), self.state.crcs.len());
        if self.records.checkpoint.is_none() && !is_moved && messages + states > 0 {
            let remedy = format!("keep the {messages} messages of the base and {states} states as they are");
            self.fault(dir.events(), None, "is empty, although other files are not", remedy);
        }
    }

    /// Returns the readable part of the base, with the events of the turns that it may lack: an event that it has
    /// already changes nothing.
    fn conversation(&self) -> goondan_core::Conversation {
        let turns = self.records.turns.iter().skip(self.turns);
        replay(self.base.messages.iter().cloned(), turns.flat_map(|turn| turn.events.iter().cloned()))
    }

    /// Keeps the damaged files aside, then makes a checkpoint of the rest. A crash in between leaves files that can be
    /// repaired.
    fn carry_out(&self, dir: &InstanceDir) -> Result<()> {
        for path in &self.files {
            dir.ops().move_aside(path)?;
        }
        for (path, numbers) in &self.lines {
            let (moved, _) = lines::split(&atomic::read(path)?, numbers);
            dir.ops().keep_aside(path, &*moved)?;
        }
        let newest = self.records.state();
        if !newest.is_empty() {
            state::write(dir, &newest)?;
            state::sync(dir)?;
        }
        let base = self.accept_base(dir)?;
        let mut new = checkpoint::after(&self.records, &base);
        let newest = newest.iter().map(|(name, value)| (name.clone(), crc32fast::hash(&state::encode(value))));
        new.state = self.state.crcs.clone().into_iter().chain(newest).collect();
        let path = dir.events();
        let mut journal = new_journal(dir, &new)?;
        if let Some(open) = &self.records.open {
            let (turn, after) = (Cow::Borrowed(&open.turn), new.committed.as_ref().map(Cow::Borrowed));
            let event = open.input.as_ref().map(Cow::Borrowed);
            lines::push_with_sum(&mut journal, &BeginRecord { turn, after, event, digest: open.digest }, &path)?;
            let refused = self.lines.get(&path);
            let records = exported(&self.bytes).filter(|line| line.start >= self.records.open_start);
            for line in records.filter(|line| refused.is_none_or(|refused| !refused.contains(&line.number))) {
                journal.extend_from_slice(line.text);
                journal.push(b'\n');
            }
        }
        dir.ops().ensure_file(&path)?;
        dir.ops().replace(&path, &journal)?;
        dir.ops().sync_dir(&dir.messages())
    }

    /// Makes the base of the readable part of the conversation, and returns its fingerprint. It is not touched if it is
    /// that already.
    fn accept_base(&self, dir: &InstanceDir) -> Result<Fingerprint> {
        let (path, conversation) = (dir.base(), self.conversation());
        dir.ops().ensure_file(&path)?;
        let is_whole = self.base.index.fingerprint.bytes == atomic::len(&path)? && !self.lines.contains_key(&path);
        if conversation.events().is_empty() && is_whole {
            let mut file = dir.ops().open(&path)?;
            file.sync().map_err(|error| atomic::io_error("sync", &path, error))?;
            return Ok(self.base.index.fingerprint.clone());
        }
        // Written from the messages: lines that were left out are not in the index.
        let no_index = BaseIndex { fingerprint: Fingerprint::new(), ends: Vec::new() };
        let BaseIndex { fingerprint, .. } = base::write_temporary(dir, &no_index, &conversation)?;
        dir.ops().install_temporary(&path)?;
        dir.ops().sync_dir(&dir.messages())?;
        Ok(fingerprint)
    }
}

/// Returns which lines of a base differ from the records of the journal, as far as that can be told.
fn where_differs(dir: &InstanceDir, records: &JournalRecords) -> Result<String> {
    match load_base(dir, records) {
        Ok((before, Some(_))) => {
            let messages = before.messages.len();
            Ok(format!("what follows the first {messages} messages is not what the turns in the journal appended"))
        }
        _ => Ok("each line is a message, so it cannot be told which were changed or are missing".to_owned()),
    }
}

/// Returns the message of an error about a line without file and line, which a `StoredFault` has as fields.
fn message_without_position(error: &Error) -> String {
    let message = error.message();
    message.rsplit_once(": ").map_or(&*message, |(_, what)| what).to_owned()
}
