//! The events that the newest turns answered, so that each is answered once.
//!
//! Only their hashes are kept in memory. The outcomes are in the journal: those before the checkpoint in its record,
//! the others in the fold record of each turn.
// ONCE-01

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use goondan_core::EventId;
use goondan_runtime::store::EndedTurn;

use super::grammar::{JournalRecords, KEPT};

/// The hashes of the newest answered events, oldest first.
#[derive(Debug, Default)]
pub(super) struct Answered {
    hashes: VecDeque<u64>,
}

impl Answered {
    pub(super) fn of(records: &JournalRecords) -> Self {
        let mut answered = Self::default();
        records.answered().for_each(|turn| answered.add(&turn));
        answered
    }

    pub(super) fn add(&mut self, turn: &EndedTurn) {
        let Some(event) = turn.outcome.event() else { return };
        if self.hashes.len() == KEPT {
            self.hashes.pop_front();
        }
        self.hashes.push_back(hash(event));
    }

    /// Whether a turn may have answered `event`. If not, none did.
    pub(super) fn may_have(&self, event: &EventId) -> bool {
        self.hashes.contains(&hash(event))
    }
}

fn hash(event: &EventId) -> u64 {
    let mut hasher = DefaultHasher::new();
    event.as_str().hash(&mut hasher);
    hasher.finish()
}
