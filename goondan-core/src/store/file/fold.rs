//! Owns what a committed turn does to the files of an instance: the new base, the new state, and the cleared events.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::base::{self, Base, Mark};
use super::events::Events;
use super::lines;
use super::log::Fold;
use super::place::Place;
use super::state;
use crate::conversation::{Conversation, MessageEvent};
use crate::error::Result;
use crate::name::{ExtensionName, TurnId};

/// The way from the files before a turn to those after it: made when the turn is committed, and again by an opening that
/// finds it unfinished.
#[derive(Debug)]
pub(super) struct Folding<'a> {
    pub(super) record: Fold<'a>,
    change: Change,
    after: Mark,
}

#[derive(Debug)]
enum Change {
    /// The base is the new one already.
    Nothing,
    Append {
        at: u64,
        lines: Vec<u8>,
        ends: Vec<u64>,
    },
    /// The new one is written beside it.
    Exchange {
        ends: Vec<u64>,
    },
}

impl<'a> Folding<'a> {
    /// Folds the events of `conversation` into the base `before`. A base that must be written anew is written beside the old
    /// one here, before the commit: what a disk may refuse is done before the turn is promised.
    pub(super) fn of(
        place: &Place,
        before: &Base,
        turn: &'a TurnId,
        conversation: &Conversation,
        state: &'a BTreeMap<ExtensionName, Value>,
    ) -> Result<Self> {
        let pure = conversation.only_appends();
        let (change, after) = if pure {
            append(place, &before.mark, conversation)?
        } else {
            let Base { mark, ends } = base::write_beside(place, before, conversation)?;
            (Change::Exchange { ends }, mark)
        };
        let record = Fold {
            fold: Cow::Borrowed(turn),
            pure,
            base_bytes_after: after.bytes,
            crc: after.crc(),
            state: Cow::Borrowed(state),
        };
        Ok(Self { record, change, after })
    }

    /// The rest of a fold whose base is done.
    pub(super) fn after_base(record: Fold<'a>, base: Mark) -> Self {
        Self { record, change: Change::Nothing, after: base }
    }

    /// What comes after the commit. It may be done again after a failure or a crash in it, but only from the start.
    pub(super) fn finish(&self, place: &Place, events: &mut Events) -> Result<()> {
        match &self.change {
            Change::Nothing => {}
            Change::Append { at, lines, .. } => base::append(place, *at, lines)?,
            Change::Exchange { .. } => {
                place.files().put_in_place(&place.base())?;
                place.files().sync_dir(&place.messages())?;
            }
        }
        state::write(place, &self.record.state)?;
        // Only now, when all that the events and the record say is on the disk elsewhere. It need not be synced: an
        // opening that still finds them finds the base as the record says, and clears them again.
        events.cut(0)
    }

    /// Makes `base` what it is after the fold.
    pub(super) fn settle(self, base: &mut Base) {
        base.mark = self.after;
        match self.change {
            Change::Nothing => {}
            Change::Append { ends, .. } => base.ends.extend(ends),
            Change::Exchange { ends } => base.ends = ends,
        }
    }

    /// How many bytes the part of the new base has that comes after the old one, if it is the old one and more.
    pub(super) fn appended(&self) -> &[u8] {
        match &self.change {
            Change::Append { lines, .. } => lines,
            Change::Nothing | Change::Exchange { .. } => &[],
        }
    }
}

fn append(place: &Place, before: &Mark, conversation: &Conversation) -> Result<(Change, Mark)> {
    let (mut new, mut ends) = (Vec::new(), Vec::new());
    let mut appended = conversation.events().iter().filter_map(MessageEvent::appended).peekable();
    // A file of another implementation may lack its last line end.
    if appended.peek().is_some() && !before.ends_line {
        new.push(b'\n');
    }
    for message in appended {
        lines::push(&mut new, message, &place.base())?;
        ends.push(before.bytes + new.len() as u64);
    }
    let mut after = before.clone();
    after.add(&new);
    let change = if new.is_empty() { Change::Nothing } else { Change::Append { at: before.bytes, lines: new, ends } };
    Ok((change, after))
}
