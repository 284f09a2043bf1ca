//! Records of `events.jsonl`: their kinds, and the order in which they may appear.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use goondan_core::{AgentEvent, Error, ExtensionName, MessageEvent, Result, ToolCallId, TurnId, secret};
use goondan_runtime::store::{Decision, EmittedBy, EndedTurn, EventDigest, Facts, Reached, TurnOutcome, Wait};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::committed::{CommittedRecord, known_or_none};
use super::lines::{Line, damaged, ends_line, is_sum_right, lines, parse, torn_tail};

/// The first record of a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BeginRecord<'a> {
    pub(super) turn: Cow<'a, TurnId>,
    /// The length of `base.jsonl` before the turn. Bytes after it were not committed.
    pub(super) base_bytes: u64,
    /// The event that the turn answers, see [`for_record`]. It is read by itself, as an [`AnsweredEvent`].
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub(super) event: Option<Cow<'a, AgentEvent>>,
    /// The digest of the event before secrets were masked in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<EventDigest>,
}

/// The event in the first record of a turn. If it cannot be read, for example because a later version wrote it, the
/// turn is recovered without it.
#[derive(Deserialize)]
struct AnsweredEvent {
    event: AgentEvent,
}

/// Returns an event as it is recorded. Its text becomes a message of the conversation, where nothing is masked, but
/// the rest of it is stored nowhere else: secrets are masked, and of the authentication only the principal is kept,
/// because its other members may be credentials that no [`Secret`](goondan_core::Secret) holds.
pub(super) fn for_record(event: &AgentEvent) -> Cow<'_, AgentEvent> {
    let has_credentials = event.auth.as_ref().is_some_and(|auth| !auth.other.is_empty());
    if !has_credentials && !secret::any() {
        return Cow::Borrowed(event);
    }
    let mut event = event.clone();
    let mut texts = vec![&mut event.kind, &mut event.source.kind, &mut event.source.name];
    if let Some(auth) = &mut event.auth {
        auth.other.clear();
        texts.extend(auth.principal.iter_mut().flat_map(|principal| [&mut principal.kind, &mut principal.id]));
    }
    texts.extend(event.reply_to.as_mut().map(|reply_to| &mut reply_to.correlation_id));
    texts.into_iter().for_each(secret::mask_text);
    secret::mask_members(&mut event.source.other);
    secret::mask_members(&mut event.metadata);
    Cow::Owned(event)
}

/// Written before a call starts that must not run twice (EFFECT-01).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StartedRecord<'a> {
    pub(super) started: Cow<'a, ToolCallId>,
}

/// A message event that a layer emitted.
#[derive(Debug, Serialize)]
pub(super) struct EmittedRecord<'a> {
    #[serde(flatten)]
    pub(super) event: &'a MessageEvent,
    pub(super) by: &'a EmittedBy,
}

/// Something that was reached, beside the message events.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReachedRecord<'a> {
    pub(super) reached: Cow<'a, Reached>,
}

/// State that belongs to the next fact.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StateRecord<'a> {
    pub(super) state: Cow<'a, BTreeMap<ExtensionName, Value>>,
}

/// Written when the open turn goes on: the message events after the first `keep` do not count any more.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ResumeRecord<'a> {
    pub(super) resume: Cow<'a, TurnId>,
    pub(super) keep: usize,
}

/// The open turn does not run: the calls that wait for a decision, if there are any, and the state that changed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SuspendRecord<'a> {
    pub(super) suspend: Cow<'a, TurnId>,
    #[serde(default, skip_serializing_if = "<[Wait]>::is_empty")]
    pub(super) waits: Cow<'a, [Wait]>,
    pub(super) state: Cow<'a, BTreeMap<ExtensionName, Value>>,
}

/// A decision about a call that waits.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DecidedRecord<'a> {
    pub(super) decided: Cow<'a, Decision>,
}

/// The last record of a turn. When it is synced, the turn is committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FoldRecord<'a> {
    pub(super) fold: Cow<'a, TurnId>,
    /// Whether the new base only appends to the old one.
    pub(super) pure: bool,
    pub(super) base_bytes_after: u64,
    /// CRC-32 of the whole new base.
    pub(super) crc: u32,
    /// CRC-32 of the records of the turn before this one. `None` in files of other implementations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) events_crc: Option<u32>,
    /// The new state of the extensions that changed theirs.
    pub(super) state: Cow<'a, BTreeMap<ExtensionName, Value>>,
    /// How the turn ended; `None` if it only stored state.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_or_none")]
    pub(super) outcome: Option<TurnOutcome>,
    /// The digest of the event that it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<EventDigest>,
}

impl FoldRecord<'_> {
    /// Returns how the turn ended, if it answered an event.
    pub(super) fn ended(&self) -> Option<EndedTurn> {
        Some(EndedTurn::new(self.fold.clone().into_owned(), self.digest, self.outcome.clone()?))
    }
}

/// The records in `events.jsonl`.
#[derive(Debug, Default)]
pub(super) struct TurnRecords {
    /// `None` in files of other implementations.
    pub(super) committed: Option<CommittedRecord>,
    /// `None` in files of other implementations.
    pub(super) begin: Option<BeginRecord<'static>>,
    pub(super) event: Option<AgentEvent>,
    pub(super) events: Vec<MessageEvent>,
    pub(super) started: Vec<ToolCallId>,
    pub(super) facts: Facts,
    pub(super) fold: Option<FoldRecord<'static>>,
    /// The offset at which the records of the turn start: those before it are of the last commit.
    pub(super) turn_start: usize,
    /// The offset of the first fold record.
    fold_start: Option<usize>,
    /// The number of the line with the committed record.
    pub(super) committed_line: Option<usize>,
    /// The numbers of the lines with records that are neither message events nor of a commit.
    pub(super) control_lines: Vec<usize>,
    /// The numbers of the lines with records of unknown kinds.
    pub(super) unknown_lines: Vec<usize>,
    /// Whether the last line ends with a line end.
    pub(super) ended: bool,
}

impl TurnRecords {
    /// Parses the content of a file whose torn tail was cut.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let mut records = Self { ended: ends_line(bytes), ..Self::default() };
        lines(bytes).try_for_each(|line| records.add(line, path))?;
        Ok(records)
    }

    /// Parses every line. Also returns the number and the error of each line that cannot be parsed.
    pub(super) fn survey(bytes: &[u8], path: &Path) -> (Self, Vec<(usize, Error)>) {
        let mut records = Self { ended: ends_line(bytes), ..Self::default() };
        let refused = lines(bytes).filter_map(|line| Some((line.number, records.add(line, path).err()?))).collect();
        (records, refused)
    }

    /// CRC-32 of the records of the turn before its first fold record, in the file that was parsed.
    pub(super) fn events_crc(&self, bytes: &[u8]) -> u32 {
        crc32fast::hash(&bytes[self.turn_start..self.fold_start.unwrap_or(bytes.len())])
    }

    /// Whether everything that a turn is folded from, with a base of `end` bytes, is known to be what it was at the
    /// commit. The checksums themselves are compared elsewhere.
    pub(super) fn proves(&self, fold: &FoldRecord<'_>, end: u64) -> bool {
        fold.events_crc.is_some() && (self.committed.is_some() || end == 0) && self.unknown_lines.is_empty()
    }

    fn add(&mut self, line: Line<'_>, path: &Path) -> Result<()> {
        let sum = is_sum_right(line.text);
        if sum == Some(false) {
            return Err(damaged(path, line.number, "the checksum of this record is wrong"));
        }
        match kind(line) {
            Some(RecordKind::Committed) if sum.is_some() && self.is_empty() => {
                self.committed = Some(record(line, path)?);
                self.committed_line = Some(line.number);
                self.turn_start = line.start + line.text.len() + "\n".len();
            }
            Some(RecordKind::Committed) => {
                return Err(damaged(path, line.number, "this is the record of a commit, and is not the first one"));
            }
            Some(RecordKind::Event { emitted }) if self.fold.is_none() => {
                let by = if emitted { Some(record::<ByMember>(line, path)?.by) } else { None };
                self.facts.event(self.events.len(), by.as_ref());
                self.events.push(record(line, path)?);
            }
            Some(RecordKind::Begin) if self.begin.is_none() && self.events.is_empty() && self.fold.is_none() => {
                self.begin = Some(record(line, path)?);
                self.event = serde_json::from_slice(line.text).ok().map(|AnsweredEvent { event }| event);
                self.control_lines.push(line.number);
            }
            Some(RecordKind::Started) if self.begin.is_some() && self.fold.is_none() => {
                self.started.push(record::<StartedRecord<'_>>(line, path)?.started.into_owned());
                self.facts.started(self.events.len());
                self.control_lines.push(line.number);
            }
            Some(RecordKind::Fact(kind)) if self.begin.is_some() && self.fold.is_none() => {
                match kind {
                    FactKind::Reached => {
                        let what = record::<ReachedRecord<'_>>(line, path)?.reached.into_owned();
                        self.facts.reached(self.events.len(), what);
                    }
                    FactKind::State => self.facts.state(record::<StateRecord<'_>>(line, path)?.state.into_owned()),
                    FactKind::Resume => {
                        let keep = record::<ResumeRecord<'_>>(line, path)?.keep;
                        self.events.truncate(keep);
                        self.facts.resumed(keep);
                    }
                    FactKind::Suspend => {
                        let SuspendRecord { waits, state, .. } = record(line, path)?;
                        self.facts.suspended(waits.into_owned(), state.into_owned());
                    }
                    FactKind::Decided => {
                        self.facts.decided(record::<DecidedRecord<'_>>(line, path)?.decided.into_owned());
                    }
                }
                self.control_lines.push(line.number);
            }
            // Opening appends a second fold record when the base that it computes differs from the first one in bytes.
            Some(RecordKind::Fold) => {
                let fold: FoldRecord<'static> = record(line, path)?;
                if self.begin.as_ref().is_none_or(|begin| begin.turn != fold.fold) {
                    return Err(damaged(path, line.number, "this ends a turn that does not start in this file"));
                }
                self.fold = Some(fold);
                self.fold_start.get_or_insert(line.start);
                self.control_lines.push(line.number);
            }
            Some(RecordKind::Unknown) => self.unknown_lines.push(line.number),
            Some(_) => {
                // F-CONV: events of different turns must not be mixed.
                return Err(damaged(path, line.number, "this starts a turn before the one above is cleared"));
            }
            None => return Err(damaged(path, line.number, "this is no record of a turn")),
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.committed.is_none() && self.begin.is_none() && self.events.is_empty()
    }
}

/// Returns the offset at which the torn part of `events.jsonl` starts, if a crash tore it.
pub(super) fn torn_part(bytes: &[u8]) -> Option<usize> {
    let commits = |line: &Line<'_>| matches!(kind(*line), Some(RecordKind::Fold | RecordKind::Committed));
    // A machine that stops can leave pages of zeros, which were never written, before pages that were. A fold record
    // after them does not count: its sync would have written them too, so no caller was told of the commit. A single
    // zero is no page, unless the file ends with it.
    let hole = lines(bytes)
        .find(|line| line.text.windows(2).any(|bytes| bytes == [0, 0]) || !line.ended && line.text.ends_with(&[0]));
    // A fold record without its line end was not written completely, and the commit may have been reported as failed.
    let half_commit = lines(bytes).last().filter(|last| !last.ended && commits(last));
    hole.or(half_commit).map(|line| line.start).or_else(|| torn_tail(bytes))
}

/// Returns the records of a turn that an export contains: all but those of its begin and its end.
pub(super) fn exported(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    lines(bytes).filter(|line| kind(*line).is_some_and(RecordKind::is_exported))
}

/// Whether `text` is a record that an export contains; an error says why it is none.
pub(super) fn is_exported(text: &[u8]) -> serde_json::Result<bool> {
    fn check<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<bool> {
        serde_json::from_slice::<T>(text).map(|_| true)
    }
    match exported(text).next().and_then(kind) {
        Some(RecordKind::Event { emitted: false }) => check::<MessageEvent>(text),
        Some(RecordKind::Event { emitted: true }) => check::<ByMember>(text).and(check::<MessageEvent>(text)),
        Some(RecordKind::Fact(FactKind::Reached)) => check::<ReachedRecord<'_>>(text),
        Some(RecordKind::Fact(FactKind::State)) => check::<StateRecord<'_>>(text),
        Some(RecordKind::Fact(FactKind::Resume)) => check::<ResumeRecord<'_>>(text),
        Some(RecordKind::Fact(FactKind::Suspend)) => check::<SuspendRecord<'_>>(text),
        Some(RecordKind::Fact(FactKind::Decided)) => check::<DecidedRecord<'_>>(text),
        Some(_) => check::<StartedRecord<'_>>(text),
        None => Ok(false),
    }
}

/// Who emitted a message event.
#[derive(Deserialize)]
struct ByMember {
    by: EmittedBy,
}

#[derive(Clone, Copy)]
enum RecordKind {
    Committed,
    Begin,
    Event {
        /// Whether a layer emitted it.
        emitted: bool,
    },
    Started,
    Fact(FactKind),
    Fold,
    /// Written by a later version.
    Unknown,
}

/// What is known of an open turn beside its message events and started calls.
#[derive(Clone, Copy)]
enum FactKind {
    Reached,
    State,
    Resume,
    Suspend,
    Decided,
}

impl RecordKind {
    fn is_exported(self) -> bool {
        !matches!(self, Self::Committed | Self::Begin | Self::Fold | Self::Unknown)
    }
}

/// The `type` of each event that this version knows.
const EVENTS: [&str; 4] = ["append", "replace", "remove", "truncate"];

fn kind(line: Line<'_>) -> Option<RecordKind> {
    #[derive(Deserialize)]
    struct Shape {
        r#type: Option<Value>,
        committed: Option<IgnoredAny>,
        turn: Option<IgnoredAny>,
        started: Option<IgnoredAny>,
        fold: Option<IgnoredAny>,
        by: Option<IgnoredAny>,
        reached: Option<IgnoredAny>,
        resume: Option<IgnoredAny>,
        suspend: Option<IgnoredAny>,
        decided: Option<IgnoredAny>,
        state: Option<IgnoredAny>,
    }
    match serde_json::from_slice(line.text).ok()? {
        Shape { r#type: Some(Value::String(name)), .. } if !EVENTS.contains(&name.as_str()) => {
            Some(RecordKind::Unknown)
        }
        Shape { r#type: Some(_), by, .. } => Some(RecordKind::Event { emitted: by.is_some() }),
        Shape { fold: Some(_), .. } => Some(RecordKind::Fold),
        Shape { committed: Some(_), .. } => Some(RecordKind::Committed),
        Shape { started: Some(_), .. } => Some(RecordKind::Started),
        Shape { reached: Some(_), .. } => Some(RecordKind::Fact(FactKind::Reached)),
        Shape { resume: Some(_), .. } => Some(RecordKind::Fact(FactKind::Resume)),
        Shape { suspend: Some(_), .. } => Some(RecordKind::Fact(FactKind::Suspend)),
        Shape { decided: Some(_), .. } => Some(RecordKind::Fact(FactKind::Decided)),
        Shape { turn: Some(_), .. } => Some(RecordKind::Begin),
        Shape { state: Some(_), .. } => Some(RecordKind::Fact(FactKind::State)),
        Shape { .. } => Some(RecordKind::Unknown),
    }
}

fn record<T: DeserializeOwned>(line: Line<'_>, path: &Path) -> Result<T> {
    parse(line.text).map_err(|error| damaged(path, line.number, "this is no record of a turn").caused_by(error))
}
