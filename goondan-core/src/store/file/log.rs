//! Owns the records of `events.jsonl`: what may stand there, in which order.

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
pub(super) struct Begin {
    pub(super) turn: TurnId,
    /// How long `base.jsonl` is before the turn: what is beyond was not committed.
    pub(super) base_bytes: u64,
}

/// Says that a call starts now that must not run twice (EFFECT-01).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Started<'a> {
    pub(super) started: Cow<'a, ToolCallId>,
}

/// The last record of a turn. When it is synced, the turn is committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fold<'a> {
    pub(super) fold: Cow<'a, TurnId>,
    /// Whether the new base is the old one and more.
    pub(super) pure: bool,
    pub(super) base_bytes_after: u64,
    /// CRC-32 of the whole new base.
    pub(super) crc: u32,
    /// The state of the extensions that changed theirs.
    pub(super) state: Cow<'a, BTreeMap<ExtensionName, Value>>,
}

/// What stands in `events.jsonl`.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Files of other implementations have none.
    pub(super) begin: Option<Begin>,
    pub(super) events: Vec<MessageEvent>,
    pub(super) started: Vec<ToolCallId>,
    pub(super) fold: Option<Fold<'static>>,
    /// The lines with the records of the turn itself.
    pub(super) records: Vec<usize>,
    /// The lines with records of kinds that this version does not know.
    pub(super) unknown: Vec<usize>,
    /// Whether the last line has its line end.
    pub(super) ended: bool,
}

impl Log {
    /// Reads the content of a file whose torn tail was cut.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let mut log = Self { ended: ends_line(bytes), ..Self::default() };
        lines(bytes).try_for_each(|line| log.take(line, path))?;
        Ok(log)
    }

    /// Reads what can be read, and says which lines cannot.
    pub(super) fn survey(bytes: &[u8], path: &Path) -> (Self, Vec<(usize, Error)>) {
        let mut log = Self { ended: ends_line(bytes), ..Self::default() };
        let refused = lines(bytes).filter_map(|line| Some((line.number, log.take(line, path).err()?))).collect();
        (log, refused)
    }

    fn take(&mut self, line: Line<'_>, path: &Path) -> Result<()> {
        match kind(line) {
            Some(Kind::Event) if self.fold.is_none() => self.events.push(record(line, path)?),
            Some(Kind::Begin) if self.begin.is_none() && self.events.is_empty() && self.fold.is_none() => {
                self.begin = Some(record(line, path)?);
                self.records.push(line.number);
            }
            Some(Kind::Started) if self.begin.is_some() && self.fold.is_none() => {
                self.started.push(record::<Started<'_>>(line, path)?.started.into_owned());
                self.records.push(line.number);
            }
            // Opening writes a second one when the base that it makes is not, to the byte, what the first one says.
            Some(Kind::Fold) => {
                let fold: Fold<'static> = record(line, path)?;
                if self.begin.as_ref().is_none_or(|begin| begin.turn != *fold.fold) {
                    return Err(damaged(path, line.number, "this ends a turn that does not start in this file"));
                }
                self.fold = Some(fold);
                self.records.push(line.number);
            }
            Some(Kind::Event | Kind::Started | Kind::Begin) => {
                // F-CONV: events of different turns must not be mixed.
                return Err(damaged(path, line.number, "this starts a turn before the one above is cleared"));
            }
            Some(Kind::Unknown) => self.unknown.push(line.number),
            None => return Err(damaged(path, line.number, "this is no record of a turn")),
        }
        Ok(())
    }
}

/// Where the part of `events.jsonl` starts that a crash tore, if it did.
pub(super) fn torn_part(bytes: &[u8]) -> Option<usize> {
    let is_fold = |line: &Line<'_>| matches!(kind(*line), Some(Kind::Fold));
    // A machine that stops may leave pages that were never written, full of zeros, before pages that were. A fold record
    // after them does not count: had it been synced, they had been too, so that nobody was told of the commit.
    let hole = lines(bytes).find(|line| line.text.contains(&0));
    // A fold record without its end was not wholly written, and the commit may have been reported as failed.
    let half_commit = lines(bytes).last().filter(|last| !last.ended && is_fold(last));
    hole.or(half_commit).map(|line| line.start).or_else(|| torn_tail(bytes))
}

enum Kind {
    Begin,
    Event,
    Started,
    Fold,
    /// Of a later version.
    Unknown,
}

/// The events of this version.
const EVENTS: [&str; 4] = ["append", "replace", "remove", "truncate"];

fn kind(line: Line<'_>) -> Option<Kind> {
    #[derive(Deserialize)]
    struct Shape {
        r#type: Option<Value>,
        turn: Option<IgnoredAny>,
        started: Option<IgnoredAny>,
        fold: Option<IgnoredAny>,
    }
    match serde_json::from_slice(line.text).ok()? {
        Shape { r#type: Some(Value::String(name)), .. } if !EVENTS.contains(&name.as_str()) => Some(Kind::Unknown),
        Shape { r#type: Some(_), .. } => Some(Kind::Event),
        Shape { fold: Some(_), .. } => Some(Kind::Fold),
        Shape { started: Some(_), .. } => Some(Kind::Started),
        Shape { turn: Some(_), .. } => Some(Kind::Begin),
        Shape { .. } => Some(Kind::Unknown),
    }
}

fn record<T: DeserializeOwned>(line: Line<'_>, path: &Path) -> Result<T> {
    serde_json::from_slice(line.text)
        .map_err(|error| damaged(path, line.number, "this is no record of a turn").caused_by(error))
}
