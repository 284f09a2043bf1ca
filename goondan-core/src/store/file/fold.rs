//! Owns what a committed turn does to the files of an instance: the new base, the new state, and the cleared events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Error as IoError, Result as IoResult, Seek, SeekFrom, Write};

use crc32fast::Hasher;
use serde_json::Value;

use super::atomic::{self, io_error};
use super::events::Events;
use super::lines;
use super::log::Fold;
use super::place::Place;
use super::state;
use crate::conversation::{Conversation, MessageEvent};
use crate::error::Result;
use crate::name::{ExtensionName, TurnId};

/// What one must know of `base.jsonl` to add to it without reading it, so that a turn costs what it adds.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    bytes: u64,
    hasher: Hasher,
    ends_line: bool,
}

impl Mark {
    pub(super) fn of(base: &[u8]) -> Self {
        Self { bytes: 0, hasher: Hasher::new(), ends_line: true }.extended(base)
    }

    fn extended(&self, more: &[u8]) -> Self {
        let mut hasher = self.hasher.clone();
        hasher.update(more);
        let ends_line = if more.is_empty() { self.ends_line } else { lines::ends_line(more) };
        Self { bytes: self.bytes + more.len() as u64, hasher, ends_line }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn crc(&self) -> u32 {
        self.hasher.clone().finalize()
    }
}

/// The way from the files before a turn to those after it: made when the turn is committed, and again by an opening that
/// finds it unfinished.
#[derive(Debug)]
pub(super) struct Folding<'a> {
    pub(super) record: Fold<'a>,
    base: Base,
    pub(super) after: Mark,
}

#[derive(Debug)]
enum Base {
    /// The base is the new one already.
    Stays,
    Append {
        at: u64,
        lines: Vec<u8>,
    },
    Rewrite(Vec<u8>),
}

impl<'a> Folding<'a> {
    /// Folds the events of `conversation` into the base that `before` marks.
    pub(super) fn of(
        place: &Place,
        before: &Mark,
        turn: &'a TurnId,
        conversation: &Conversation,
        state: &'a BTreeMap<ExtensionName, Value>,
    ) -> Result<Self> {
        let path = place.base();
        let mut new = Vec::new();
        let pure = conversation.only_appends();
        let (base, after) = if pure {
            let mut appended = conversation.events().iter().filter_map(MessageEvent::appended).peekable();
            // A file of another implementation may lack its last line end.
            if appended.peek().is_some() && !before.ends_line {
                new.push(b'\n');
            }
            appended.try_for_each(|message| lines::push(&mut new, message, &path))?;
            let after = before.extended(&new);
            let nothing = new.is_empty();
            (if nothing { Base::Stays } else { Base::Append { at: before.bytes, lines: new } }, after)
        } else {
            conversation.messages().try_for_each(|message| lines::push(&mut new, message, &path))?;
            let after = Mark::of(&new);
            (Base::Rewrite(new), after)
        };
        let record = Fold {
            fold: Cow::Borrowed(turn),
            pure,
            base_bytes_after: after.bytes,
            crc: after.crc(),
            state: Cow::Borrowed(state),
        };
        Ok(Self { record, base, after })
    }

    /// The rest of a fold whose base is done.
    pub(super) fn after_base(record: Fold<'a>, base: Mark) -> Self {
        Self { record, base: Base::Stays, after: base }
    }

    /// What comes after the commit. It may be done again after a failure or a crash in it, but only from the start.
    pub(super) fn finish(&self, place: &Place, events: &mut Events) -> Result<()> {
        let path = place.base();
        match &self.base {
            Base::Stays => {}
            Base::Append { at, lines } => {
                append(place, *at, lines).map_err(|error| io_error("write", &path, error))?;
            }
            Base::Rewrite(bytes) => {
                atomic::replace(&path, bytes)?;
                atomic::sync_dir(&place.messages())?;
            }
        }
        state::write(&place.extensions(), &self.record.state)?;
        // Only now, when all that the events and the record say is on the disk elsewhere. It need not be synced: an
        // opening that still finds them finds the base as the record says, and clears them again.
        events.cut(0)
    }

    /// Whether `tail`, which stands beyond the old base, is the part of the new one that was written before a crash.
    pub(super) fn explains(&self, tail: &[u8]) -> bool {
        match &self.base {
            Base::Append { lines, .. } => lines.starts_with(tail),
            Base::Stays | Base::Rewrite(_) => tail.is_empty(),
        }
    }
}

fn append(place: &Place, at: u64, lines: &[u8]) -> IoResult<()> {
    let mut file = OpenOptions::new().write(true).open(place.base())?;
    // An attempt before this one may have written some of the lines. Anything else is not ours to write over, and beyond
    // the end of a shorter file writing would leave a hole.
    if !(at..=at + lines.len() as u64).contains(&file.metadata()?.len()) {
        return Err(IoError::other("another program has changed its length"));
    }
    file.seek(SeekFrom::Start(at))?;
    file.write_all(lines)?;
    file.sync_data()
}
