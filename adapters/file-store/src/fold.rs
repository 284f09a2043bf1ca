//! Folding a committed turn into the files of an instance: the new base, the new state, and the checksums of both in
//! place of the events.

use std::borrow::Cow;

use goondan_core::{Conversation, MessageEvent, Result};
use goondan_runtime::store::Commit;

use super::base::{self, BaseIndex, Fingerprint};
use super::committed::CommittedRecord;
use super::ended::EndedTurns;
use super::events::EventsFile;
use super::layout::InstanceDir;
use super::records::FoldRecord;
use super::{lines, state};

/// The file changes of one committed turn. Prepared before the commit and finished after it; an opening that finds a
/// committed turn unfinished prepares and finishes them again.
#[derive(Debug)]
pub(super) struct Folding<'a> {
    pub(super) record: FoldRecord<'a>,
    change: BaseChange,
    /// The fingerprint of the new base.
    pub(super) after: Fingerprint,
}

#[derive(Debug)]
enum BaseChange {
    /// The base is already the new one.
    Nothing,
    Append {
        at: u64,
        lines: Vec<u8>,
        ends: Vec<u64>,
    },
    /// The new base is in the temporary file beside the old one.
    Replace {
        ends: Vec<u64>,
    },
}

impl<'a> Folding<'a> {
    /// Prepares folding the events of `commit`, whose records are in `events`, into the base `before`. A base that must
    /// be rewritten is written to a temporary file here, before the commit, because a full disk can refuse it.
    pub(super) fn prepare(
        dir: &InstanceDir,
        before: &BaseIndex,
        events: &EventsFile,
        commit: &Commit<'a>,
    ) -> Result<Self> {
        let (change, after) = change(dir, before, commit.conversation)?;
        let record = FoldRecord {
            fold: Cow::Borrowed(commit.turn),
            pure: commit.conversation.only_appends(),
            base_bytes_after: after.bytes,
            crc: after.crc(),
            events_crc: Some(events.turn_crc()),
            state: Cow::Borrowed(commit.state),
            outcome: commit.outcome.cloned(),
            digest: commit.digest,
        };
        Ok(Self { record, change, after })
    }

    /// Prepares folding the events of a committed turn again. The record describes the base that is computed now.
    pub(super) fn again(
        dir: &InstanceDir,
        before: &BaseIndex,
        fold: &FoldRecord<'a>,
        conversation: &Conversation,
    ) -> Result<Self> {
        let (change, after) = change(dir, before, conversation)?;
        let record = FoldRecord { base_bytes_after: after.bytes, crc: after.crc(), ..fold.clone() };
        Ok(Self { record, change, after })
    }

    /// Returns the remaining changes of a turn whose base is already the new one.
    pub(super) fn after_base(record: FoldRecord<'a>, base: Fingerprint) -> Self {
        Self { record, change: BaseChange::Nothing, after: base }
    }

    /// Does the steps after the commit, and returns the checksums of the files, those of the commit before being
    /// `last`; the turn is added to `ended` if it answered an event. After a failure or crash it can be repeated, but
    /// only from its start.
    pub(super) fn finish(
        &self,
        dir: &InstanceDir,
        events: &mut EventsFile,
        last: &CommittedRecord,
        ended: &mut EndedTurns,
    ) -> Result<CommittedRecord> {
        match &self.change {
            BaseChange::Nothing => {}
            BaseChange::Append { at, lines, .. } => base::append(dir, *at, lines)?,
            BaseChange::Replace { .. } => {
                dir.ops().install_temporary(&dir.base())?;
                dir.ops().sync_dir(&dir.messages())?;
            }
        }
        state::write(dir, &self.record.state)?;
        let FoldRecord { fold: turn, state, .. } = &self.record;
        let committed = last.after(turn, &self.after, state);
        let mut line = Vec::new();
        lines::push_with_sum(&mut line, &committed, &dir.events())?;
        if let Some(turn) = self.record.ended() {
            ended.add(dir, turn)?;
        }
        // Last, when everything in the events and the record is on the disk elsewhere. This needs no sync: an opening
        // that still finds them also finds the base that the record describes, and empties them again.
        events.start_anew(&line)?;
        Ok(committed)
    }

    /// Updates the index `base` to the new base.
    pub(super) fn update_index(self, base: &mut BaseIndex) {
        base.fingerprint = self.after;
        match self.change {
            BaseChange::Nothing => {}
            BaseChange::Append { ends, .. } => base.ends.extend(ends),
            BaseChange::Replace { ends } => base.ends = ends,
        }
    }

    /// Returns the bytes that the new base appends to the old one; empty if it replaces it.
    pub(super) fn appended(&self) -> &[u8] {
        match &self.change {
            BaseChange::Append { lines, .. } => lines,
            BaseChange::Nothing | BaseChange::Replace { .. } => &[],
        }
    }
}

fn change(dir: &InstanceDir, before: &BaseIndex, conversation: &Conversation) -> Result<(BaseChange, Fingerprint)> {
    if conversation.only_appends() {
        return append(dir, &before.fingerprint, conversation);
    }
    let BaseIndex { fingerprint, ends } = base::write_temporary(dir, before, conversation)?;
    Ok((BaseChange::Replace { ends }, fingerprint))
}

/// Returns the fingerprint of the base after the events of `conversation`, and writes nothing.
pub(super) fn fingerprint_after(
    dir: &InstanceDir,
    before: &BaseIndex,
    conversation: &Conversation,
) -> Result<Fingerprint> {
    if conversation.only_appends() {
        return append(dir, &before.fingerprint, conversation).map(|(_, after)| after);
    }
    base::compute(dir, before, conversation)
}

fn append(dir: &InstanceDir, before: &Fingerprint, conversation: &Conversation) -> Result<(BaseChange, Fingerprint)> {
    let (mut new, mut ends) = (Vec::new(), Vec::new());
    let mut appended = conversation.events().iter().filter_map(MessageEvent::appended).peekable();
    // A file of another implementation may lack its last line end.
    if appended.peek().is_some() && !before.ends_line {
        new.push(b'\n');
    }
    let path = dir.base();
    for message in appended {
        lines::push(&mut new, message, &path)?;
        ends.push(before.bytes + new.len() as u64);
    }
    let mut after = before.clone();
    after.add(&new);
    let change =
        if new.is_empty() { BaseChange::Nothing } else { BaseChange::Append { at: before.bytes, lines: new, ends } };
    Ok((change, after))
}
