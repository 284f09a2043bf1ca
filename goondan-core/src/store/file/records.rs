//! Records of `events.jsonl`: their kinds, and the order in which they may appear.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lines::{Line, damaged, ends_line, lines, torn_tail};
use crate::conversation::MessageEvent;
use crate::error::{Error, Result};
use crate::name::{ExtensionName, ToolCallId, TurnId};

/// The first record of a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BeginRecord {
    pub(super) turn: TurnId,
    /// The length of `base.jsonl` before the turn. Bytes after it were not committed.
    pub(super) base_bytes: u64,
}

/// Written before a call starts that must not run twice (EFFECT-01).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StartedRecord<'a> {
    pub(super) started: Cow<'a, ToolCallId>,
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
    /// The new state of the extensions that changed theirs.
    pub(super) state: Cow<'a, BTreeMap<ExtensionName, Value>>,
}

/// The records in `events.jsonl`.
#[derive(Debug, Default)]
pub(super) struct TurnRecords {
    /// `None` in files of other implementations.
    pub(super) begin: Option<BeginRecord>,
    pub(super) events: Vec<MessageEvent>,
    pub(super) started: Vec<ToolCallId>,
    pub(super) fold: Option<FoldRecord<'static>>,
    /// The numbers of the lines with begin, started and fold records.
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

    fn add(&mut self, line: Line<'_>, path: &Path) -> Result<()> {
        match kind(line) {
            Some(RecordKind::Event) if self.fold.is_none() => self.events.push(record(line, path)?),
            Some(RecordKind::Begin) if self.begin.is_none() && self.events.is_empty() && self.fold.is_none() => {
                self.begin = Some(record(line, path)?);
                self.control_lines.push(line.number);
            }
            Some(RecordKind::Started) if self.begin.is_some() && self.fold.is_none() => {
                self.started.push(record::<StartedRecord<'_>>(line, path)?.started.into_owned());
                self.control_lines.push(line.number);
            }
            // Opening appends a second fold record when the base that it computes differs from the first one in bytes.
            Some(RecordKind::Fold) => {
                let fold: FoldRecord<'static> = record(line, path)?;
                if self.begin.as_ref().is_none_or(|begin| begin.turn != *fold.fold) {
                    return Err(damaged(path, line.number, "this ends a turn that does not start in this file"));
                }
                self.fold = Some(fold);
                self.control_lines.push(line.number);
            }
            Some(RecordKind::Event | RecordKind::Started | RecordKind::Begin) => {
                // F-CONV: events of different turns must not be mixed.
                return Err(damaged(path, line.number, "this starts a turn before the one above is cleared"));
            }
            Some(RecordKind::Unknown) => self.unknown_lines.push(line.number),
            None => return Err(damaged(path, line.number, "this is no record of a turn")),
        }
        Ok(())
    }
}

/// Returns the offset at which the torn part of `events.jsonl` starts, if a crash tore it.
pub(super) fn torn_part(bytes: &[u8]) -> Option<usize> {
    let is_fold = |line: &Line<'_>| matches!(kind(*line), Some(RecordKind::Fold));
    // A machine that stops can leave pages of zeros, which were never written, before pages that were. A fold record
    // after them does not count: its sync would have written them too, so no caller was told of the commit.
    let hole = lines(bytes).find(|line| line.text.contains(&0));
    // A fold record without its line end was not written completely, and the commit may have been reported as failed.
    let half_commit = lines(bytes).last().filter(|last| !last.ended && is_fold(last));
    hole.or(half_commit).map(|line| line.start).or_else(|| torn_tail(bytes))
}

enum RecordKind {
    Begin,
    Event,
    Started,
    Fold,
    /// Written by a later version.
    Unknown,
}

/// The `type` of each event that this version knows.
const EVENTS: [&str; 4] = ["append", "replace", "remove", "truncate"];

fn kind(line: Line<'_>) -> Option<RecordKind> {
    #[derive(Deserialize)]
    struct Shape {
        r#type: Option<Value>,
        turn: Option<IgnoredAny>,
        started: Option<IgnoredAny>,
        fold: Option<IgnoredAny>,
    }
    match serde_json::from_slice(line.text).ok()? {
        Shape { r#type: Some(Value::String(name)), .. } if !EVENTS.contains(&name.as_str()) => {
            Some(RecordKind::Unknown)
        }
        Shape { r#type: Some(_), .. } => Some(RecordKind::Event),
        Shape { fold: Some(_), .. } => Some(RecordKind::Fold),
        Shape { started: Some(_), .. } => Some(RecordKind::Started),
        Shape { turn: Some(_), .. } => Some(RecordKind::Begin),
        Shape { .. } => Some(RecordKind::Unknown),
    }
}

fn record<T: DeserializeOwned>(line: Line<'_>, path: &Path) -> Result<T> {
    serde_json::from_slice(line.text)
        .map_err(|error| damaged(path, line.number, "this is no record of a turn").caused_by(error))
}
