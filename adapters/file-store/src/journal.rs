//! Journal of an open instance: writes in the order that makes each turn atomic.

use std::borrow::Cow;

use std::collections::BTreeMap;

use goondan_core::{
    BoxFuture, Decision, Error, ErrorCode, EventId, ExtensionName, MessageEvent, Result, RuntimeEvent, ToolCallId,
    TurnId,
};
use goondan_runtime::store::{
    Commit, Durability, EmittedBy, EndedTurn, InstanceId, Interrupted, Journal, Opened, Reached, Suspend, TurnStart,
};
use serde::Serialize;
use serde_json::Value;

use super::Fsync;
use super::checkpoint;
use super::grammar::JournalRecords;
use super::layout::InstanceDir;
use super::lock::Lock;
use super::metadata::{Metadata, Status};
use super::path::StorePath;
use super::records::{
    BeginRecord, DecidedRecord, EmittedRecord, FoldRecord, ReachedRecord, ResumeRecord, StartedRecord, StateRecord,
    SuspendRecord, for_record,
};
use super::recovery::{JournalFiles, Recovered, recover};
use super::runtime_events::RuntimeEventsFile;
use super::standing::{Standing, read_journal};
use super::{lines, state};

/// Opens the instance in `dir`: locks it, recovers it, and returns its content and journal.
pub(super) fn open(dir: InstanceDir, instance: &InstanceId, fsync: Fsync, limit: Option<u64>) -> Result<Opened> {
    let (dir, mut lock) = Lock::take(instance, || dir.ops().create_dirs(dir.path()).map(|()| dir.clone()))?;
    lock.sign()?;
    // Only while it is opened: an open conversation has no more file handles than it needs.
    let held = dir.hold();
    held.check_names()?;
    if let Err(error) = held.path().make_private() {
        tracing::warn!(dir = %dir.path().display(), %error, "the directory cannot be taken away from other users");
    }
    held.ops().create_dirs(&held.messages())?;
    let metadata = Metadata::read(&held, instance)?;
    let Recovered { messages, state, interrupted, newest, ends_line, files } = recover(&held, fsync)?;
    let metadata = match metadata {
        Some(metadata) => metadata,
        None => create_metadata(&dir, instance)?,
    };
    let workdir = dir.workdir();
    let runtime_events = RuntimeEventsFile::new(&dir);
    let mut journal = FileJournal {
        limit,
        not_before: 0,
        dir,
        files,
        // The next record must not be appended to an existing line.
        buffer: if ends_line { Vec::new() } else { vec![b'\n'] },
        running: interrupted.as_ref().map(|Interrupted { turn, events, .. }| RunningTurn::new(turn, events.len())),
        health: Health::Good,
        fsync,
        metadata,
        runtime_events,
        lock,
    };
    let status = if journal.running.is_some() { Status::Processing } else { Status::Idle };
    if journal.metadata.status() != status {
        journal.metadata.set_status(&held, status);
    }
    let mut opened = Opened::new(workdir, Box::new(journal));
    (opened.base, opened.interrupted, opened.state) = (messages, interrupted, state);
    opened.newest = newest;
    Ok(opened)
}

/// Creates the metadata of a new directory, and syncs the entries of the directories on its path. While the metadata
/// is missing, an earlier process may have ended before it synced them, and without them a commit would not survive a
/// crash of the machine.
fn create_metadata(dir: &InstanceDir, instance: &InstanceId) -> Result<Metadata> {
    let metadata = Metadata::new(instance);
    metadata.write(dir)?;
    dir.ops().sync_dir(&dir.messages())?;
    let above = std::iter::successors(Some(dir.path().clone()), StorePath::parent);
    above.take(3).try_for_each(|path| dir.ops().sync_dir(&path))?;
    Ok(metadata)
}

struct FileJournal {
    dir: InstanceDir,
    files: JournalFiles,
    /// Records that are not written to the events yet.
    buffer: Vec<u8>,
    /// Instead of the length that depends on the base.
    limit: Option<u64>,
    /// The length of the events at which a checkpoint is tried again that has failed.
    not_before: u64,
    running: Option<RunningTurn>,
    health: Health,
    fsync: Fsync,
    metadata: Metadata,
    runtime_events: RuntimeEventsFile,
    /// Declared last, so that it is dropped last.
    lock: Lock,
}

#[derive(Debug)]
struct RunningTurn {
    turn: TurnId,
    /// The number of its events that are recorded.
    recorded: usize,
}

impl RunningTurn {
    fn new(turn: &TurnId, recorded: usize) -> Self {
        Self { turn: turn.clone(), recorded }
    }
}

/// The state of the files, as the journal expects them or not.
enum Health {
    Good,
    /// The last turn is committed, but the work on the other files has failed.
    Unfinished,
    /// The content of the disk is unknown after a failure, which is described here. The instance must be opened again.
    Poisoned(String),
}

impl FileJournal {
    fn check(&self) -> Result<()> {
        match &self.health {
            Health::Good | Health::Unfinished => Ok(()),
            Health::Poisoned(why) => Err(Error::new(
                ErrorCode::STORE_IO,
                format!("the instance cannot go on after an earlier failure: {why}"),
            )
            .suggest("close the instance and open it again")),
        }
    }

    fn running(&mut self) -> Result<&mut RunningTurn> {
        self.check()?;
        self.running.as_mut().ok_or_else(|| misuse("no turn is running: begin one first".to_owned()))
    }

    /// Adds a record of the open turn.
    fn push(&mut self, record: &impl Serialize) -> Result<()> {
        self.running()?;
        lines::push(&mut self.buffer, record, self.files.events.path())
    }

    /// Reads the files again after a failure behind a commit. Nothing else may be written before.
    fn read_again(&mut self) -> Result<()> {
        if matches!(self.health, Health::Unfinished) {
            // The journal may be a new one whose name is not on the disk.
            self.dir.ops().sync_dir(&self.dir.messages())?;
            let recovered = recover(&self.dir, self.fsync)?;
            if recovered.interrupted.is_some() {
                return Err(self.poison(misuse("the record of the last commit is gone".to_owned())));
            }
            (self.files, self.health) = (recovered.files, Health::Good);
            // A sync of it may have failed: it is written again before it is relied on.
            self.files.base.is_complete = false;
        }
        Ok(())
    }

    fn begin_now(&mut self, TurnStart { turn, event, digest, .. }: TurnStart<'_>) -> Result<()> {
        self.check()?;
        if let Some(RunningTurn { turn, .. }) = &self.running {
            // F-CONV: events of different turns must not be mixed.
            return Err(misuse(format!("the turn `{turn}` is not committed: commit it before another begins")));
        }
        self.lock.check()?;
        self.read_again()?;
        let (turn, event) = (Cow::Borrowed(turn), event.map(for_record));
        let begin = BeginRecord { turn, after: self.files.committed.as_ref().map(Cow::Borrowed), event, digest };
        lines::push_with_sum(&mut self.buffer, &begin, self.files.events.path())?;
        self.running = Some(RunningTurn::new(&begin.turn, 0));
        self.metadata.set_status(&self.dir, Status::Processing);
        Ok(())
    }

    fn flush_now(&mut self, durability: Durability) -> Result<()> {
        self.check()?;
        // Here, because each commit begins with it. Without the lock, the files may be those of another process.
        self.lock.check()?;
        if !self.buffer.is_empty() {
            self.files.events.append(&self.buffer)?;
            self.buffer.clear();
        }
        match durability {
            Durability::Flushed if self.fsync != Fsync::Always => Ok(()),
            Durability::Flushed | Durability::Synced => self.files.events.sync().map_err(|error| self.poison(error)),
        }
    }

    fn commit_now(&mut self, commit: &Commit<'_>) -> Result<()> {
        let RunningTurn { turn, recorded } = self.running()?;
        if turn != commit.turn {
            return Err(misuse(format!("the turn `{turn}` is running, not `{}`", commit.turn)));
        }
        if *recorded < commit.conversation.events().len() {
            // Whether an unrecorded event is stored would depend on whether recovery folds the turn again.
            return Err(misuse(format!("the conversation has events of the turn `{turn}` that were not recorded")));
        }
        self.check()?;
        // Without the lock, the files may be those of another process.
        self.lock.check()?;
        let recorded = self.buffer.len();
        let fold = FoldRecord {
            fold: Cow::Borrowed(commit.turn),
            pure: commit.conversation.only_appends(),
            events_crc: self.files.events.turn_crc(&self.buffer),
            state: Cow::Borrowed(commit.state),
            outcome: commit.outcome.cloned(),
            digest: commit.digest,
            joined: Cow::Borrowed(commit.joined),
            forgets: commit.forgets,
        };
        lines::push_with_sum(&mut self.buffer, &fold, self.files.events.path())?;
        let before = self.files.events.len() + recorded as u64;
        if let Err(error) = self.files.events.append(&self.buffer) {
            self.buffer.truncate(recorded);
            return Err(error);
        }
        self.buffer.clear();
        if let Err(error) = self.files.events.sync() {
            // The pages may or may not be on the disk, and a second sync would not report it: the kernel forgets the
            // failure. Without the record the turn counts as interrupted, unless the machine stops right now.
            _ = self.files.events.cut(before);
            return Err(self.poison(error));
        }
        // The turn is committed now, so a later failure must not be returned.
        self.running = None;
        self.files.commit(&fold);
        if let Err(error) = self.after_commit(commit, fold.pure) {
            tracing::warn!(
                turn = %commit.turn, error = %error.report(),
                "a turn is committed, but not all of its files are written; this is done later"
            );
            self.health = Health::Unfinished;
        }
        self.metadata.set_status(&self.dir, Status::Idle);
        Ok(())
    }

    /// Shows a committed turn in the base, and makes a checkpoint if the journal is full.
    fn after_commit(&mut self, commit: &Commit<'_>, is_pure: bool) -> Result<()> {
        let files = &mut self.files;
        files.base.is_complete &= is_pure;
        if files.base.is_complete {
            files.base.append(&self.dir, commit.conversation.events())?;
        }
        let limit = || checkpoint::limit(files.base.fingerprint().bytes, files.base.is_complete);
        if files.events.len() < self.limit.unwrap_or_else(limit).max(self.not_before) {
            return Ok(());
        }
        // If it fails, the next attempt is not made at once.
        self.not_before = 2 * self.files.events.len();
        self.checkpoint()?;
        self.not_before = 0;
        Ok(())
    }

    /// Puts the records of the journal into the other files, and starts a new one.
    fn checkpoint(&mut self) -> Result<()> {
        let (dir, files) = (&self.dir, &mut self.files);
        let (bytes, records) = if files.base.is_complete {
            files.base.sync(dir)?;
            let (bytes, _) = read_journal(dir)?;
            let records = JournalRecords::parse(&bytes, &dir.events())?;
            (bytes, records)
        } else {
            let standing = Standing::read(dir)?;
            files.base.complete(dir, &standing, &mut files.events)?;
            dir.ops().sync_dir(&dir.messages())?;
            (standing.bytes, standing.records)
        };
        files.events = checkpoint::start_journal(dir, &bytes, &records, files.base.fingerprint())?;
        files.is_state_filed = true;
        dir.ops().sync_dir(&dir.messages())
    }

    /// Makes the files complete that people read, of an instance that is closed. The journal has all of it.
    fn complete_files(&mut self) -> Result<()> {
        if matches!(self.health, Health::Good) && self.files.base.is_complete && self.files.is_state_filed {
            return Ok(());
        }
        self.lock.check()?;
        self.read_again()?;
        let (dir, files) = (&self.dir, &mut self.files);
        let standing = Standing::read(dir)?;
        if !files.base.is_complete {
            files.base.complete(dir, &standing, &mut files.events)?;
        }
        if files.is_state_filed { Ok(()) } else { state::write(dir, &standing.records.state()) }
    }

    fn poison(&mut self, error: Error) -> Error {
        self.health = Health::Poisoned(error.to_string());
        error.suggest("close the instance and open it again: what reached the disk shows then")
    }
}

impl Journal for FileJournal {
    fn begin(&mut self, turn: TurnStart<'_>) -> Result<()> {
        self.begin_now(turn)
    }

    fn record(&mut self, event: &MessageEvent, by: Option<&EmittedBy>) -> Result<()> {
        match by {
            Some(by) => self.push(&EmittedRecord { event, by })?,
            None => self.push(event)?,
        }
        self.running()?.recorded += 1;
        Ok(())
    }

    fn start_call(&mut self, call: &ToolCallId) -> Result<()> {
        self.push(&StartedRecord { started: Cow::Borrowed(call) })
    }

    fn reached(&mut self, what: &Reached) -> Result<()> {
        self.push(&ReachedRecord { reached: Cow::Borrowed(what) })
    }

    fn record_state(&mut self, state: &BTreeMap<ExtensionName, Value>) -> Result<()> {
        self.push(&StateRecord { state: Cow::Borrowed(state) })
    }

    fn resume(&mut self, keep: usize) -> Result<()> {
        let turn = self.running()?.turn.clone();
        self.push(&ResumeRecord { resume: Cow::Owned(turn), keep })?;
        self.running()?.recorded = keep;
        Ok(())
    }

    fn suspend<'a>(&'a mut self, turn: Suspend<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Suspend { turn, waits, state, .. } = turn;
            let (waits, state) = (Cow::Borrowed(waits), Cow::Borrowed(state));
            let record = SuspendRecord { suspend: Cow::Borrowed(turn), waits, state };
            self.push(&record)?;
            self.flush_now(Durability::Synced)
        })
    }

    fn decide(&mut self, decisions: &[Decision]) -> Result<()> {
        let mut records = decisions.iter().map(|decision| DecidedRecord { decided: Cow::Borrowed(decision) });
        records.try_for_each(|record| self.push(&record))
    }

    fn outcome<'a>(&'a self, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        Box::pin(async move {
            if !self.files.answered.may_have(event) {
                return Ok(None);
            }
            let (bytes, _) = read_journal(&self.dir)?;
            let records = JournalRecords::parse(&bytes, &self.dir.events())?;
            Ok(records.answered().rfind(|turn| turn.outcome.event() == Some(event)))
        })
    }

    fn flush(&mut self, durability: Durability) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.flush_now(durability) })
    }

    fn commit<'a>(&'a mut self, turn: Commit<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.commit_now(&turn) })
    }

    fn close(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        // A journal that is dropped then has nothing left to write.
        Box::pin(async move {
            if matches!(self.health, Health::Poisoned(_)) {
                return Ok(());
            }
            self.flush_now(Durability::Flushed)?;
            if let Err(error) = self.complete_files() {
                tracing::warn!(
                    error = %error.report(),
                    "`base.jsonl` or a state file is not as the last turn left it; all is in the journal"
                );
            }
            Ok(())
        })
    }

    fn keeps_runtime_events(&self) -> bool {
        true
    }

    fn note(&mut self, events: &[RuntimeEvent]) -> Result<()> {
        self.lock.check()?;
        events.iter().for_each(|event| self.runtime_events.note(event));
        self.runtime_events.flush()
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        // A turn that is dropped is interrupted. The more of it is written, the more can be recovered.
        if matches!(self.health, Health::Poisoned(_)) || self.buffer.is_empty() {
            return;
        }
        if let Err(error) = self.flush_now(Durability::Flushed) {
            tracing::warn!(error = %error.report(), "events of an interrupted turn could not be written");
        }
    }
}

fn misuse(what: String) -> Error {
    Error::new(ErrorCode::STORE_IO, what)
}
