//! Records of `events.jsonl`, each on a line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use goondan_core::{AgentEvent, Decision, ExtensionName, MessageEvent, Result, ToolCallId, TurnId, Wait, secret};
use goondan_runtime::store::{EmittedBy, EndedTurn, EventDigest, JoinedEvent, Reached, TurnOutcome};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::lines::{Line, damaged, lines, parse};

/// The version of the format of an instance directory.
pub(super) const FORMAT: u32 = 1;

/// The first record of the file: the other files as they were when it began.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckpointRecord {
    pub(super) format: u32,
    /// The last turn that was committed before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) committed: Option<TurnId>,
    /// The length of the base.
    pub(super) base_bytes: u64,
    /// CRC-32 of the base.
    pub(super) crc: u32,
    /// CRC-32 of the file of each extension that has state.
    pub(super) state: BTreeMap<ExtensionName, u32>,
    /// The newest turns that answered an event, oldest first (ONCE-01).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known_only")]
    pub(super) answered: Vec<EndedTurn>,
}

impl CheckpointRecord {
    /// Stands for a record that cannot be read.
    pub(super) fn unknown() -> Self {
        let (state, answered) = (BTreeMap::new(), Vec::new());
        Self { format: FORMAT, committed: None, base_bytes: 0, crc: 0, state, answered }
    }
}

/// The first record of a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BeginRecord<'a> {
    pub(super) turn: Cow<'a, TurnId>,
    /// The turn that was committed before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<Cow<'a, TurnId>>,
    /// The event that the turn answers, see [`for_record`]. It is read by itself, by [`answered_event`].
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub(super) event: Option<Cow<'a, AgentEvent>>,
    /// The digest of the event before secrets were masked in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<EventDigest>,
}

/// Returns the event in the first record of a turn. If it cannot be read, for example because a later version wrote it,
/// the turn is recovered without it.
pub(super) fn answered_event(begin: &[u8]) -> Option<AgentEvent> {
    #[derive(Deserialize)]
    struct AnsweredEvent {
        event: AgentEvent,
    }
    serde_json::from_slice(begin).ok().map(|AnsweredEvent { event }| event)
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
    /// Whether all its message events append.
    pub(super) pure: bool,
    /// CRC-32 of the records of the turn before this one.
    pub(super) events_crc: u32,
    /// The new state of the extensions that changed theirs.
    pub(super) state: Cow<'a, BTreeMap<ExtensionName, Value>>,
    /// The outcome of the turn; `None` if it only stored state.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_or_none")]
    pub(super) outcome: Option<TurnOutcome>,
    /// The digest of the event that it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<EventDigest>,
    /// Further events that it answered (STEER-01).
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub(super) joined: Cow<'a, [JoinedEvent]>,
    /// Whether conversations that other agents had for this turn alone are deleted after it (D-40).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) forgets: bool,
}

impl FoldRecord<'static> {
    /// Stands for a record that cannot be read.
    pub(super) fn unknown(turn: &TurnId) -> Self {
        let (fold, state, joined) = (Cow::Owned(turn.clone()), Cow::Owned(BTreeMap::new()), Cow::Owned(Vec::new()));
        Self { fold, pure: false, events_crc: 0, state, outcome: None, digest: None, joined, forgets: false }
    }
}

impl FoldRecord<'_> {
    /// Returns how the turn ended, for each event that it answered.
    pub(super) fn ended(&self) -> impl Iterator<Item = EndedTurn> {
        let of =
            |digest, outcome| EndedTurn::new(self.fold.clone().into_owned(), digest, outcome).forgets(self.forgets);
        let own = self.outcome.clone().map(|outcome| of(self.digest, outcome));
        let joined = self.outcome.iter().flat_map(move |outcome| {
            self.joined.iter().map(move |joined| of(Some(joined.digest), outcome.of(joined.event.clone())))
        });
        own.into_iter().chain(joined)
    }
}

/// Written after a new base, before it takes the place of the old one: a base of this length and checksum has all turns
/// up to `folded`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FoldedRecord<'a> {
    pub(super) folded: Cow<'a, TurnId>,
    pub(super) base_bytes: u64,
    /// CRC-32 of the base.
    pub(super) crc: u32,
}

/// Reads an outcome; one that only a later version knows is `None`.
fn known_or_none<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<TurnOutcome>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// Reads turns; those that only a later version knows are left out.
fn known_only<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<EndedTurn>, D::Error> {
    let turns = Vec::<Value>::deserialize(from)?;
    Ok(turns.into_iter().filter_map(|turn| serde_json::from_value(turn).ok()).collect())
}

/// Returns the records of an open turn that an export contains: all but the first one.
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
pub(super) struct ByMember {
    pub(super) by: EmittedBy,
}

#[derive(Clone, Copy)]
pub(super) enum RecordKind {
    Checkpoint,
    /// The checkpoint of versions before the first release.
    OldCheckpoint,
    Begin,
    Event {
        /// Whether a layer emitted it.
        emitted: bool,
    },
    Started,
    Fact(FactKind),
    Fold,
    Folded,
    /// Written by a later version.
    Unknown,
}

/// A fact about an open turn, other than its message events and started calls.
#[derive(Clone, Copy)]
pub(super) enum FactKind {
    Reached,
    State,
    Resume,
    Suspend,
    Decided,
}

impl RecordKind {
    fn is_exported(self) -> bool {
        matches!(self, Self::Event { .. } | Self::Started | Self::Fact(_))
    }
}

/// The `type` of each event that this version knows.
const EVENTS: [&str; 4] = ["append", "replace", "remove", "truncate"];

pub(super) fn kind(line: Line<'_>) -> Option<RecordKind> {
    #[derive(Deserialize)]
    struct Shape {
        r#type: Option<Value>,
        format: Option<IgnoredAny>,
        committed: Option<IgnoredAny>,
        turn: Option<IgnoredAny>,
        started: Option<IgnoredAny>,
        fold: Option<IgnoredAny>,
        folded: Option<IgnoredAny>,
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
        Shape { folded: Some(_), .. } => Some(RecordKind::Folded),
        Shape { format: Some(_), .. } => Some(RecordKind::Checkpoint),
        Shape { committed: Some(_), .. } => Some(RecordKind::OldCheckpoint),
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

/// Reads the record on a line.
pub(super) fn record<T: DeserializeOwned>(line: Line<'_>, path: &Path) -> Result<T> {
    parse(line.text).map_err(|error| damaged(path, line.number, "this is no record of a turn").caused_by(error))
}
