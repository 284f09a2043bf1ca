//! Content of `events.jsonl`: the checkpoint, the turns that were committed since, and the turn that is open.

use std::collections::BTreeMap;
use std::path::Path;

use goondan_core::{AgentEvent, Error, ErrorCode, ExtensionName, MessageEvent, Result, ToolCallId, TurnId};
use goondan_runtime::store::{EndedTurn, EventDigest, Facts, TurnOutcome};
use serde_json::Value;

use super::lines::{Line, damaged, ends_line, is_sum_right, last_line, lines, torn_tail};
use super::records::{
    BeginRecord, ByMember, CheckpointRecord, DecidedRecord, FORMAT, FactKind, FoldRecord, FoldedRecord, ReachedRecord,
    RecordKind, ResumeRecord, StartedRecord, StateRecord, SuspendRecord, answered_event, kind, record,
};

/// The number of turns whose outcome is kept after a checkpoint (ONCE-01).
pub(super) const KEPT: usize = 256;

/// The records in `events.jsonl`.
#[derive(Debug, Default)]
pub(super) struct JournalRecords {
    /// `None` if the file is empty.
    pub(super) checkpoint: Option<CheckpointRecord>,
    /// The turns that were committed since the checkpoint.
    pub(super) turns: Vec<CommittedTurn>,
    /// The bases that the journal goes on from.
    pub(super) bases: Vec<KnownBase>,
    pub(super) open: Option<OpenTurn>,
    /// The offset after the newest record that belongs to no open turn.
    pub(super) open_start: usize,
    /// The numbers of the lines with records of unknown kinds, in committed turns.
    pub(super) unknown_lines: Vec<usize>,
    /// Whether the last line ends with a line end.
    pub(super) ended: bool,
    /// Whether a line was refused.
    is_damaged: bool,
}

#[derive(Debug)]
pub(super) struct CommittedTurn {
    pub(super) events: Vec<MessageEvent>,
    pub(super) fold: FoldRecord<'static>,
}

/// A base with this length and checksum has the first `turns` turns of the journal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KnownBase {
    pub(super) bytes: u64,
    pub(super) crc: u32,
    pub(super) turns: usize,
}

/// A turn without a fold record.
#[derive(Debug)]
pub(super) struct OpenTurn {
    pub(super) turn: TurnId,
    /// The event that it answers.
    pub(super) input: Option<AgentEvent>,
    pub(super) digest: Option<EventDigest>,
    pub(super) events: Vec<MessageEvent>,
    pub(super) started: Vec<ToolCallId>,
    pub(super) facts: Facts,
    /// The numbers of the lines with records of unknown kinds.
    pub(super) unknown_lines: Vec<usize>,
    /// The number of its first line.
    line: usize,
    /// Whether one of its lines was refused.
    is_damaged: bool,
}

impl JournalRecords {
    /// Parses the content of a file whose torn tail was cut.
    ///
    /// # Errors
    /// `E_STORE_VERSION` when another version wrote it, `E_STORE_DAMAGED` with the first line that is not as it was
    /// written.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let mut records = Self { ended: ends_line(bytes), ..Self::default() };
        lines(bytes).try_for_each(|line| records.add(bytes, line, path))?;
        Ok(records)
    }

    /// Parses every line, and keeps the readable part of a turn that is damaged. Also returns the number and the error
    /// of each line that is refused.
    ///
    /// # Errors
    /// `E_STORE_VERSION` when another version wrote it.
    pub(super) fn survey(bytes: &[u8], path: &Path) -> Result<(Self, Vec<(usize, Error)>)> {
        let mut records = Self { ended: ends_line(bytes), ..Self::default() };
        let mut refused = Vec::new();
        for line in lines(bytes) {
            match records.add(bytes, line, path) {
                Ok(()) => {}
                Err(error) if *error.code() == ErrorCode::STORE_VERSION => return Err(error),
                Err(error) => {
                    records.go_on_after(line);
                    refused.push((line.number, error));
                }
            }
        }
        Ok((records, refused))
    }

    /// Makes the lines after a refused one count as those of a turn.
    fn go_on_after(&mut self, line: Line<'_>) {
        self.is_damaged = true;
        if self.checkpoint.is_none() {
            self.checkpoint = Some(CheckpointRecord::unknown());
            return;
        }
        self.open.get_or_insert_with(|| OpenTurn::new("recovered".into(), line.number)).is_damaged = true;
    }

    /// Returns the turn that is open in the part of a file that [`open_turn_start`] found.
    pub(super) fn open_turn(bytes: &[u8], path: &Path) -> Option<OpenTurn> {
        let mut records = Self { checkpoint: Some(CheckpointRecord::unknown()), is_damaged: true, ..Self::default() };
        // A damaged line does not matter to the caller.
        lines(bytes).for_each(|line| drop(records.add(bytes, line, path)));
        records.open
    }

    /// Returns the last turn that was committed.
    pub(super) fn committed(&self) -> Option<&TurnId> {
        let before = self.checkpoint.as_ref().and_then(|checkpoint| checkpoint.committed.as_ref());
        self.turns.last().map(|turn| &*turn.fold.fold).or(before)
    }

    /// Returns the turns that answered an event, oldest first.
    pub(super) fn answered(&self) -> impl DoubleEndedIterator<Item = EndedTurn> {
        let before = self.checkpoint.iter().flat_map(|checkpoint| checkpoint.answered.iter().cloned());
        let gone: Vec<TurnId> = self.outcomes().flat_map(TurnOutcome::taken_back).cloned().collect();
        let all = before.chain(self.turns.iter().flat_map(|turn| turn.fold.ended().collect::<Vec<_>>()));
        all.map(move |mut turn| {
            turn.rewind(&gone);
            turn
        })
    }

    /// Returns the outcomes of these turns as they were committed, oldest first.
    fn outcomes(&self) -> impl Iterator<Item = &TurnOutcome> {
        let before = self.checkpoint.iter().flat_map(|checkpoint| &checkpoint.answered).map(|turn| &turn.outcome);
        before.chain(self.turns.iter().filter_map(|turn| turn.fold.outcome.as_ref()))
    }

    /// Returns the newest of these turns, as many as a checkpoint keeps.
    pub(super) fn newest_answered(&self) -> Vec<EndedTurn> {
        let mut newest: Vec<_> = self.answered().rev().take(KEPT).collect();
        newest.reverse();
        newest
    }

    /// Returns the newest value of each state that was stored since the checkpoint.
    pub(super) fn state(&self) -> BTreeMap<ExtensionName, Value> {
        let changed = self.turns.iter().flat_map(|turn| &*turn.fold.state);
        changed.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn add(&mut self, bytes: &[u8], line: Line<'_>, path: &Path) -> Result<()> {
        let sum = is_sum_right(line.text);
        if sum == Some(false) {
            return Err(damaged(path, line.number, "the checksum of this record is wrong"));
        }
        let refused = |what: &str| Err(damaged(path, line.number, what));
        let is_first = self.checkpoint.is_none();
        match (kind(line), &mut self.open) {
            (Some(RecordKind::Checkpoint), None) if is_first && sum.is_some() => self.start(line, path)?,
            (Some(RecordKind::OldCheckpoint | RecordKind::Begin | RecordKind::Event { .. }), None) if is_first => {
                return Err(other_version(path, "was written by a version of goondan before its first release"));
            }
            (Some(_), None) if is_first => return refused("a journal does not start with this record"),
            (Some(RecordKind::Begin), None) => self.begin(line, path)?,
            (Some(RecordKind::Begin), Some(open)) if open.is_nothing() => self.begin(line, path)?,
            (Some(RecordKind::Begin), Some(open)) => {
                // F-CONV: events of different turns must not be mixed.
                let fold = FoldRecord::unknown(&open.turn);
                self.commit(fold);
                self.is_damaged = true;
                self.begin(line, path)?;
                return refused("this starts a turn before the one above has ended");
            }
            (Some(RecordKind::Folded), _) if sum.is_some() => {
                let FoldedRecord { folded, base_bytes, crc } = record(line, path)?;
                if self.committed() != Some(&folded) {
                    return refused("this describes a base after another turn than the one above");
                }
                self.bases.push(KnownBase { bytes: base_bytes, crc, turns: self.turns.len() });
            }
            (Some(RecordKind::Fold), Some(open)) if sum.is_some() => {
                let fold: FoldRecord<'static> = record(line, path)?;
                if open.turn != *fold.fold && !open.is_damaged {
                    return refused("this ends a turn that does not start in this file");
                }
                let is_whole = crc32fast::hash(&bytes[self.open_start..line.start]) == fold.events_crc;
                let what = (!is_whole && !open.is_damaged).then(|| {
                    format!(
                        "the records of the turn `{}`, from line {} to this one, are not those that were committed",
                        open.turn, open.line
                    )
                });
                self.commit(fold);
                self.open_start = line.start + line.text.len() + "\n".len();
                return what.map_or(Ok(()), |what| refused(&what));
            }
            (Some(RecordKind::Unknown), None) => self.unknown_lines.push(line.number),
            (Some(kind), Some(open)) => open.add(kind, line, path)?,
            (Some(_), None) => return refused("this is outside of a turn"),
            (None, _) => return refused("this is no record of a turn"),
        }
        if self.open.is_none() {
            self.open_start = line.start + line.text.len() + "\n".len();
        }
        Ok(())
    }

    fn start(&mut self, line: Line<'_>, path: &Path) -> Result<()> {
        let checkpoint: CheckpointRecord = record(line, path)?;
        if checkpoint.format != FORMAT {
            return Err(other_version(path, &format!("has format {}, not {FORMAT}", checkpoint.format)));
        }
        self.bases.push(KnownBase { bytes: checkpoint.base_bytes, crc: checkpoint.crc, turns: 0 });
        self.checkpoint = Some(checkpoint);
        Ok(())
    }

    fn begin(&mut self, line: Line<'_>, path: &Path) -> Result<()> {
        let begin: BeginRecord<'_> = record(line, path)?;
        if begin.after.as_deref() != self.committed() && !self.is_damaged {
            return Err(damaged(path, line.number, "this turn follows another one than the one above"));
        }
        let mut open = OpenTurn::new(begin.turn.into_owned(), line.number);
        (open.input, open.digest) = (answered_event(line.text), begin.digest);
        self.open = Some(open);
        Ok(())
    }

    fn commit(&mut self, fold: FoldRecord<'static>) {
        let Some(OpenTurn { events, unknown_lines, .. }) = self.open.take() else { return };
        self.unknown_lines.extend(unknown_lines);
        self.turns.push(CommittedTurn { events, fold });
    }
}

impl OpenTurn {
    fn new(turn: TurnId, line: usize) -> Self {
        Self {
            turn,
            input: None,
            digest: None,
            events: Vec::new(),
            started: Vec::new(),
            facts: Facts::default(),
            unknown_lines: Vec::new(),
            line,
            is_damaged: false,
        }
    }

    /// Whether only a damaged line made it a turn.
    fn is_nothing(&self) -> bool {
        self.is_damaged && self.events.is_empty()
    }

    fn add(&mut self, kind: RecordKind, line: Line<'_>, path: &Path) -> Result<()> {
        let before = self.events.len();
        match kind {
            RecordKind::Event { emitted } => {
                let by = if emitted { Some(record::<ByMember>(line, path)?.by) } else { None };
                let event = record(line, path)?;
                self.facts.event(before, by.as_ref());
                self.events.push(event);
            }
            RecordKind::Started => {
                self.started.push(record::<StartedRecord<'_>>(line, path)?.started.into_owned());
                self.facts.started(before);
            }
            RecordKind::Fact(FactKind::Reached) => {
                self.facts.reached(before, record::<ReachedRecord<'_>>(line, path)?.reached.into_owned());
            }
            RecordKind::Fact(FactKind::State) => {
                self.facts.state(record::<StateRecord<'_>>(line, path)?.state.into_owned());
            }
            RecordKind::Fact(FactKind::Resume) => {
                let keep = record::<ResumeRecord<'_>>(line, path)?.keep;
                self.events.truncate(keep);
                self.facts.resumed(keep);
            }
            RecordKind::Fact(FactKind::Suspend) => {
                let SuspendRecord { waits, state, .. } = record(line, path)?;
                self.started.retain(|call| !waits.iter().any(|wait| wait.withdrawn && wait.call == *call));
                self.facts.suspended(waits.into_owned(), state.into_owned());
            }
            RecordKind::Fact(FactKind::Decided) => {
                self.facts.decided(record::<DecidedRecord<'_>>(line, path)?.decided.into_owned());
            }
            RecordKind::Unknown => self.unknown_lines.push(line.number),
            RecordKind::Checkpoint
            | RecordKind::OldCheckpoint
            | RecordKind::Begin
            | RecordKind::Fold
            | RecordKind::Folded => {
                return Err(damaged(path, line.number, "this does not belong into a turn"));
            }
        }
        Ok(())
    }
}

/// Returns the error for a directory with the format of another version.
// D-34
pub(super) fn other_version(path: &Path, what: &str) -> Error {
    Error::new(ErrorCode::STORE_VERSION, format!("{} {what}", path.display())).suggest(
        "export the instance with the version that wrote it, and import it with this one; or start with another \
         instance key",
    )
}

/// Returns the offset at which the torn part of `events.jsonl` starts, if a crash tore it. Only the last turn can be
/// torn, because each commit syncs everything before it.
pub(super) fn torn_part(bytes: &[u8]) -> Option<usize> {
    // A machine that stops can leave pages of zeros, which were never written, before pages that were. A fold record
    // after them does not count: its sync would have written them too, so no caller was told of the commit. A single
    // zero is no page, unless the file ends with it.
    let is_hole =
        |line: &Line<'_>| line.text.windows(2).any(|bytes| bytes == [0, 0]) || !line.ended && line.text.ends_with(&[0]);
    // Nearly all files have no zero at all.
    let hole = bytes.contains(&0).then(|| lines(bytes).find(is_hole)).flatten();
    if let Some(hole) = hole {
        let is_begin = |line: Line<'_>| matches!(kind(line), Some(RecordKind::Begin));
        let mut behind = lines(&bytes[hole.start + hole.text.len()..]);
        return (!behind.any(is_begin)).then_some(hole.start);
    }
    // A record with a checksum and without its line end was not written completely, and the commit may have been
    // reported as failed.
    let is_half = |last: &Line<'_>| !last.ended && is_sum_right(last.text).is_some();
    last_line(bytes).filter(is_half).map(|line| line.start).or_else(|| torn_tail(bytes))
}

/// Returns the start of the turn that is open, or of the end of the file, without parsing the lines before it.
pub(super) fn open_turn_start(bytes: &[u8]) -> usize {
    let ends_turn = |line: &[u8]| [b"{\"fold\"".as_slice(), b"{\"format\""].iter().any(|start| line.starts_with(start));
    let mut end = bytes.len();
    while end > 0 {
        let start = bytes[..end - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if ends_turn(&bytes[start..end]) {
            return end;
        }
        end = start;
    }
    0
}
