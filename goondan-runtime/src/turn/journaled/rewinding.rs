//! A conversation that is taken back to an earlier turn.
// BACK-01

use std::sync::Arc;

use goondan_core::host::IdSet;
use goondan_core::{AgentEvent, Error, ErrorCode, Message, MessageEvent, Result, TurnId, TurnInfo};

use super::JournaledConversation;
use crate::ports::store::{EmittedBy, EventDigest, TurnOutcome, TurnStart};

/// The kind of the event that starts the turn which takes the conversation back.
const KIND: &str = "conversation.rewind";

/// The point to which a conversation is taken back.
#[derive(Clone, Copy)]
pub(crate) enum Back<'a> {
    /// To the end of this turn.
    To(&'a TurnId),
    /// To before the newest turn.
    One,
}

/// The result of [`Instance::rewind`](crate::Instance::rewind).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Rewound {
    /// The turns, oldest first. Empty if there was nothing to take back.
    pub turns: Vec<TurnId>,
    /// Their messages, oldest first, which are not in the conversation any more.
    pub messages: Vec<Arc<Message>>,
}

/// Returns the event of a turn that takes a conversation back.
pub(crate) fn rewind_event() -> AgentEvent {
    let mut event = AgentEvent::input("");
    event.input = None;
    event.kind = KIND.to_owned();
    event
}

/// Returns whether an event started a turn that takes a conversation back.
pub(super) fn is_rewind(event: &AgentEvent) -> bool {
    event.kind == KIND
}

impl JournaledConversation {
    /// Returns the messages that are taken back. Messages that stand for others stay.
    ///
    /// # Errors
    /// `E_REWIND` if the conversation has no such turn, or not all of its messages any more.
    pub(crate) fn rewound(&self, back: Back<'_>) -> Result<Rewound> {
        let made: Vec<_> = self.conversation.messages().filter(|message| message.stands_for().is_none()).collect();
        let mut turns: Vec<&TurnId> = Vec::new();
        for turn in made.iter().filter_map(|message| message.turn()) {
            // The messages of a turn stand together, but for those that layers have left between others.
            if turns.last() != Some(&turn) && !turns.contains(&turn) {
                turns.push(turn);
            }
        }
        // A message that stands for those of a turn stands for those of all turns before it.
        let standing = self.conversation.messages().filter_map(|message| message.stands_for());
        let earliest = standing.filter_map(|newest| turns.iter().position(|turn| **turn == newest)).max().unwrap_or(0);
        let keep = match back {
            Back::To(to) => match turns.iter().position(|turn| *turn == to) {
                Some(at) if at >= earliest => at + 1,
                _ => return Err(refused(to, turns.get(earliest).copied())),
            },
            Back::One => match turns.len().checked_sub(1) {
                None => return Ok(Rewound::default()),
                // A summary of the newest turn's own messages would be left without them.
                Some(last) if self.is_stood_for(turns[last]) => return Err(refused(turns[last], Some(turns[last]))),
                Some(last) => last,
            },
        };
        let gone: IdSet<_> = turns[keep..].iter().copied().collect();
        let is_gone = |message: &&&Arc<Message>| message.turn().is_some_and(|turn| gone.contains(turn));
        let messages = made.iter().filter(is_gone).map(|message| Arc::clone(message)).collect();
        Ok(Rewound { turns: turns[keep..].iter().copied().cloned().collect(), messages })
    }

    fn is_stood_for(&self, turn: &TurnId) -> bool {
        self.conversation.messages().any(|message| message.stands_for().as_ref() == Some(turn))
    }

    /// Takes the conversation back, in a turn of its own.
    ///
    /// # Errors
    /// When it cannot be stored; then nothing is taken back.
    pub(crate) async fn rewind(&mut self, info: &Arc<TurnInfo>, rewound: &Rewound) -> Result<()> {
        self.begin(TurnStart::of(info, EventDigest::of(&info.input)))?;
        for message in &rewound.messages {
            self.emit_by(MessageEvent::remove(message.id().clone()), Some(&EmittedBy::Rewind))?;
        }
        self.end_turn(&TurnOutcome::rewind(info.input.id.clone(), rewound.turns.clone())).await
    }

    /// Restores the messages that a turn removed that was to take the conversation back, and was interrupted.
    pub(super) async fn give_up_rewind(&mut self) -> Result<()> {
        if self.facts.emitted.iter().any(|(_, by)| *by == EmittedBy::Rewind) {
            self.go_on().await?;
        }
        Ok(())
    }
}

#[cold]
fn refused(to: &TurnId, earliest: Option<&TurnId>) -> Error {
    let message =
        format!("the conversation cannot be taken back to the turn `{to}`: it has no messages of it any more");
    let error = Error::new(ErrorCode::REWIND, message);
    match earliest {
        Some(earliest) => error
            .suggest(format!("the earliest possible turn is `{earliest}`"))
            .with_detail("earliest", earliest.as_str()),
        None => error.suggest("the conversation has no turns"),
    }
}
