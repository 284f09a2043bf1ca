//! Owns the journal of an open instance: the order of writes that makes a turn there or not there.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{Commit, Durability, InstanceId, Interrupted, Journal, Opened};
use super::Fsync;
use super::atomic::blocking;
use super::base::Base;
use super::events::Events;
use super::fold::Folding;
use super::lines;
use super::lock::Lock;
use super::log::{Begin, Started};
use super::metadata::{Metadata, Status};
use super::place::Place;
use super::recovery::{Recovered, recover};
use super::runtime_events::RuntimeLog;
use super::state;
use crate::BoxFuture;
use crate::conversation::MessageEvent;
use crate::error::{Error, ErrorCode, Result};
use crate::event::RuntimeEvent;
use crate::name::{ToolCallId, TurnId};

/// Opens the instance whose directory is `place`.
pub(super) fn open(place: Place, instance: &InstanceId, fsync: Fsync) -> Result<Opened> {
    place.refuse_links()?;
    place.files().create_dirs(&place.messages())?;
    let lock = Lock::take(&place.lock(), instance)?;
    let metadata = Metadata::read(&place, instance)?;
    let Recovered { messages, base, interrupted, events, ends_line } = recover(&place)?;
    let state: BTreeMap<_, Value> = state::read(&place.extensions())?;
    let known = metadata.is_some();
    let metadata = match metadata {
        Some(metadata) => metadata,
        None => found(&place, instance)?,
    };
    let workdir = place.workdir();
    let runtime_log = RuntimeLog::new(place.runtime_events());
    let mut journal = FileJournal {
        place,
        events,
        // What the next record is glued to must not be another one.
        buffer: if ends_line { Vec::new() } else { vec![b'\n'] },
        base,
        running: interrupted.as_ref().map(|Interrupted { turn, events, .. }| Running::new(turn, events.len())),
        health: Health::Good,
        fsync,
        metadata,
        runtime_log,
        _lock: lock,
    };
    let status = if journal.running.is_some() { Status::Processing } else { Status::Idle };
    if known || journal.running.is_some() {
        journal.metadata.note(&journal.place, status);
    }
    Ok(Opened { base: messages, interrupted, state, workdir, journal: Box::new(journal) })
}

/// Makes the metadata of a new directory. Until it is there, nobody knows whether an earlier process came so far as to
/// bring the names of the directories to the disk, without which a commit would not outlive the machine.
fn found(place: &Place, instance: &InstanceId) -> Result<Metadata> {
    let metadata = Metadata::new(instance);
    metadata.write(place)?;
    place.files().sync_dir(&place.messages())?;
    place.dir().ancestors().take(3).try_for_each(|dir| place.files().sync_dir(dir))?;
    Ok(metadata)
}

struct FileJournal {
    place: Place,
    events: Events,
    /// Records that are not in the file yet.
    buffer: Vec<u8>,
    /// The base as it is without the running turn.
    base: Base,
    running: Option<Running>,
    health: Health,
    fsync: Fsync,
    metadata: Metadata,
    runtime_log: RuntimeLog,
    /// Declared last, to be given back last.
    _lock: Lock,
}

#[derive(Debug)]
struct Running {
    turn: TurnId,
    recorded: usize,
}

impl Running {
    fn new(turn: &TurnId, recorded: usize) -> Self {
        Self { turn: turn.clone(), recorded }
    }
}

enum Health {
    Good,
    /// The last turn is committed, but the files after the record of it are not done.
    Unfinished,
    /// What is on the disk is unknown: only reading it again can tell.
    Unknown(String),
}

impl FileJournal {
    fn check(&self) -> Result<()> {
        match &self.health {
            Health::Good | Health::Unfinished => Ok(()),
            Health::Unknown(why) => Err(Error::new(
                ErrorCode::STORE_IO,
                format!("the instance cannot go on after an earlier failure: {why}"),
            )
            .suggest("close the instance and open it again")),
        }
    }

    fn running(&mut self) -> Result<&mut Running> {
        self.check()?;
        self.running.as_mut().ok_or_else(|| misuse("no turn is running: begin one first".to_owned()))
    }

    /// Does what is left of a committed turn, which must be done before anything else is written.
    fn finish_last_turn(&mut self) -> Result<()> {
        if matches!(self.health, Health::Unfinished) {
            let recovered = recover(&self.place)?;
            if recovered.interrupted.is_some() {
                return Err(self.lose(misuse("the record of the last commit is gone".to_owned())));
            }
            (self.events, self.base, self.health) = (recovered.events, recovered.base, Health::Good);
        }
        Ok(())
    }

    fn begin_now(&mut self, turn: &TurnId) -> Result<()> {
        self.check()?;
        if let Some(Running { turn, .. }) = &self.running {
            // F-CONV: events of different turns must not be mixed.
            return Err(misuse(format!("the turn `{turn}` is not committed: commit it before another begins")));
        }
        self.finish_last_turn()?;
        let begin = Begin { turn: turn.clone(), base_bytes: self.base.mark.bytes };
        lines::push(&mut self.buffer, &begin, &self.place.events())?;
        self.running = Some(Running::new(turn, 0));
        self.metadata.note(&self.place, Status::Processing);
        Ok(())
    }

    fn flush_now(&mut self, durability: Durability) -> Result<()> {
        self.check()?;
        if !self.buffer.is_empty() {
            self.events.append(&self.buffer)?;
            self.buffer.clear();
        }
        match durability {
            Durability::Flushed if self.fsync != Fsync::Always => Ok(()),
            Durability::Flushed | Durability::Synced => self.events.sync().map_err(|error| self.lose(error)),
        }
    }

    fn commit_now(&mut self, commit: &Commit<'_>) -> Result<()> {
        let Running { turn, recorded } = self.running()?;
        if turn != commit.turn {
            return Err(misuse(format!("the turn `{turn}` is running, not `{}`", commit.turn)));
        }
        if *recorded < commit.conversation.events().len() {
            // An event that is not recorded would be there or not, depending on whether the fold is done again.
            return Err(misuse(format!("the conversation has events of the turn `{turn}` that were not recorded")));
        }
        self.flush_now(Durability::Flushed)?;
        let folding = Folding::of(&self.place, &self.base, commit.turn, commit.conversation, commit.state)?;
        let before = self.events.len();
        let mut record = Vec::new();
        lines::push(&mut record, &folding.record, &self.place.events())?;
        self.events.append(&record)?;
        if let Err(error) = self.events.sync() {
            // The pages may or may not be on the disk, and a second sync would not tell (the kernel forgets). Without the
            // record the turn counts as interrupted, unless the machine stops right now.
            _ = self.events.cut(before);
            return Err(self.lose(error));
        }
        // From here on the turn is committed, and no failure may say otherwise.
        self.running = None;
        match folding.finish(&self.place, &mut self.events) {
            Ok(()) => folding.settle(&mut self.base),
            Err(error) => {
                tracing::warn!(
                    turn = %commit.turn, error = %error.report(),
                    "a turn is committed, but not all of its files are written; this is done before the next turn begins"
                );
                self.health = Health::Unfinished;
            }
        }
        self.metadata.note(&self.place, Status::Idle);
        Ok(())
    }

    fn lose(&mut self, error: Error) -> Error {
        self.health = Health::Unknown(error.to_string());
        error.suggest("close the instance and open it again: what reached the disk shows then")
    }
}

impl Journal for FileJournal {
    fn begin(&mut self, turn: &TurnId) -> Result<()> {
        blocking(|| self.begin_now(turn))
    }

    fn record(&mut self, event: &MessageEvent) -> Result<()> {
        self.running()?;
        lines::push(&mut self.buffer, event, &self.place.events())?;
        self.running()?.recorded += 1;
        Ok(())
    }

    fn start_call(&mut self, call: &ToolCallId) -> Result<()> {
        self.running()?;
        lines::push(&mut self.buffer, &Started { started: Cow::Borrowed(call) }, &self.place.events())
    }

    fn flush(&mut self, durability: Durability) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { blocking(|| self.flush_now(durability)) })
    }

    fn commit<'a>(&'a mut self, turn: Commit<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { blocking(|| self.commit_now(&turn)) })
    }

    fn keeps_runtime_events(&self) -> bool {
        true
    }

    fn note(&mut self, events: &[RuntimeEvent]) -> Result<()> {
        events.iter().for_each(|event| self.runtime_log.note(event));
        blocking(|| self.runtime_log.flush())
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        // A turn that is dropped is an interrupted one; the more of it is there, the more can be recovered.
        if matches!(self.health, Health::Unknown(_)) {
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
