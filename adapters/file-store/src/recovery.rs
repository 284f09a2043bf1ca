//! Crash recovery: from the files that an earlier process left to an instance that can continue (CRASH-01).

use std::collections::BTreeMap;
use std::sync::Arc;

use goondan_core::{ExtensionName, Message, Result, TurnId};
use goondan_runtime::store::{EndedTurn, Facts, Interrupted};
use serde_json::Value;

use super::Fsync;
use super::answered::Answered;
use super::base_file::BaseFile;
use super::checkpoint;
use super::events::EventsFile;
use super::grammar::{JournalRecords, OpenTurn};
use super::layout::InstanceDir;
use super::lines;
use super::records::FoldRecord;
use super::standing::{FoundTail, Standing, new_journal, read_state, replay};

/// An instance whose files are consistent.
pub(super) struct Recovered {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) state: BTreeMap<ExtensionName, Value>,
    pub(super) interrupted: Option<Interrupted>,
    /// The newest turn that answered an event.
    pub(super) newest: Option<EndedTurn>,
    pub(super) files: JournalFiles,
    /// Whether the last line of the events ends with a line end.
    pub(super) ends_line: bool,
}

/// The files that hold an instance.
pub(super) struct JournalFiles {
    pub(super) events: EventsFile,
    pub(super) base: BaseFile,
    /// The last committed turn.
    pub(super) committed: Option<TurnId>,
    pub(super) answered: Answered,
    /// Whether all state is in its files.
    pub(super) is_state_filed: bool,
}

impl JournalFiles {
    pub(super) fn commit(&mut self, fold: &FoldRecord<'_>) {
        self.events.end_turn();
        self.committed = Some(fold.fold.clone().into_owned());
        self.is_state_filed &= fold.state.is_empty();
        fold.ended().for_each(|turn| self.answered.add(&turn));
    }
}

/// Reads the files, and takes out of them the lines that a crash tore. It is idempotent, so a crash during recovery
/// is recovered from in the same way.
///
/// # Errors
/// Those of [`Standing::read`], and `E_EXT_STATE` for state that was changed.
pub(super) fn recover(dir: &InstanceDir, fsync: Fsync) -> Result<Recovered> {
    let mut standing = Standing::read(dir)?;
    let stored = read_state(dir, &standing.records)?;
    let created = [dir.ops().ensure_file(&dir.events())?, dir.ops().ensure_file(&dir.base())?];
    if created.contains(&true) {
        dir.ops().sync_dir(&dir.messages())?;
    }
    clean_journal(dir, &mut standing)?;
    let mut events = EventsFile::open(dir, &standing.bytes, standing.records.open_start)?;
    if standing.records.checkpoint.is_none() {
        let checkpoint = checkpoint::after(&standing.records, &standing.loaded.index.fingerprint);
        events.append(&new_journal(dir, &checkpoint)?)?;
        events.end_turn();
    }
    if standing.tail.found == FoundTail::Foreign {
        if fsync != Fsync::Never {
            return Err(standing.foreign_tail(dir));
        }
        // The machine may have stopped, and kept more of this file than of the other.
        dir.ops().cut(&dir.base(), standing.base.bytes)?;
    }
    let files = JournalFiles {
        events,
        base: BaseFile::recover(dir, &standing),
        committed: standing.records.committed().cloned(),
        answered: Answered::of(&standing.records),
        is_state_filed: checkpoint::is_state_filed(&standing.records, &stored),
    };
    let ends_line = standing.records.ended;
    let newest = standing.records.answered().next_back();
    let messages = match standing.only_appends() {
        true => standing.take_messages(),
        false => standing.conversation().messages().cloned().collect(),
    };
    let interrupted = standing.records.open.take().map(|open| interrupted(&messages, open));
    Ok(Recovered { messages, state: stored.values, interrupted, newest, files, ends_line })
}

/// Cuts a line that a crash tore off the events, and takes out records of the open turn that this version does not
/// know. Both are kept aside. Unknown records of committed turns stay until the next checkpoint.
fn clean_journal(dir: &InstanceDir, standing: &mut Standing) -> Result<()> {
    let path = dir.events();
    if standing.is_torn {
        dir.ops().cut(&path, standing.bytes.len() as u64)?;
        standing.is_torn = false;
    }
    let unknown = standing.records.open.iter().flat_map(|open| &open.unknown_lines).copied().collect::<Vec<_>>();
    if !unknown.is_empty() || !standing.records.unknown_lines.is_empty() {
        tracing::warn!(
            file = %path.display(), lines = ?(&standing.records.unknown_lines, &unknown),
            "records of a kind that this version does not know are left out"
        );
    }
    if !unknown.is_empty() {
        standing.bytes = lines::move_lines_aside(dir, &path, &standing.bytes, &unknown)?;
        standing.records = JournalRecords::parse(&standing.bytes, &path)?;
    }
    Ok(())
}

/// Returns the turn that an earlier process left open, after `messages`.
fn interrupted(messages: &[Arc<Message>], open: OpenTurn) -> Interrupted {
    let OpenTurn { turn, input, digest, events: recorded, started, facts, .. } = open;
    let mut found = Interrupted::new(turn);
    if let Some(input) = input {
        found = found.input(input);
    }
    (found.digest, found.started, found.facts) = (digest, started, facts);
    let count = recorded.len();
    found.events = replay(messages.iter().cloned(), recorded).events().to_vec();
    if found.events.len() != count {
        // The notes beside them count them.
        found.facts = Facts::default();
        found.facts.newest = found.events.len();
    }
    found
}
