//! Decides which messages are replaced.

use std::collections::HashMap;
use std::iter::Sum;

use goondan::conversation::{ConversationView, MessageRef, Part, Source};
use goondan::prelude::*;

use crate::config::{Candidates, Config};

/// The metadata of messages that may be replaced, and of those that may not.
const ELIGIBLE: &str = "compaction.eligible";
const PINNED: &str = "pinned";
/// The metadata of summaries.
pub(crate) const SUMMARY: &str = "compaction.summary";

/// Why messages are replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The conversation may exceed a limit of the config.
    Limits,
    /// The request is too long for the model.
    Request,
}

/// The length of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Size {
    pub(crate) messages: usize,
    pub(crate) characters: usize,
}

impl Size {
    pub(crate) fn of(message: MessageRef<'_>) -> Self {
        Self { messages: 1, characters: message.text().chars().count() }
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self { messages: self.messages - other.messages, characters: self.characters - other.characters }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, characters: self.characters + other.characters }
    }

    fn min(self, other: Self) -> Self {
        Self { messages: self.messages.min(other.messages), characters: self.characters.min(other.characters) }
    }

    /// Returns the share that stays.
    fn share(self, config: &Config) -> Self {
        Self { messages: config.share_of(self.messages), characters: config.share_of(self.characters) }
    }

    fn fits(self, limit: Self) -> bool {
        self.messages <= limit.messages && self.characters <= limit.characters
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Self::plus)
    }
}

/// Returns whether the conversation exceeds the limits of the config.
pub(crate) fn is_too_long(conversation: ConversationView<'_>, config: &Config) -> bool {
    match config.candidates {
        Candidates::All => {
            conversation.len() > config.max_messages.get()
                || conversation.iter().map(Size::of).sum::<Size>().characters > config.max_characters.get()
        }
        Candidates::Marked => conversation.iter().filter(|message| has(*message, ELIGIBLE)).count() > config.more_than,
    }
}

/// Returns the messages that are replaced, oldest first.
pub(crate) fn choose<'a>(messages: &[MessageRef<'a>], config: &Config, cause: Cause) -> Vec<MessageRef<'a>> {
    let (units, open) = units(messages);
    let kept = kept(messages, &units, open, config);
    // Earlier summaries go whenever something goes, so that there is never more than one.
    let is_summary: Vec<_> =
        messages.iter().copied().map(is_summary).zip(&kept).map(|(is, kept)| is && !kept).collect();
    let is_candidate = |index: usize| !kept[index] && !is_summary[index];
    let candidates = (0..messages.len()).filter(|index| is_candidate(*index)).count();
    let sizes: Vec<_> = messages.iter().copied().map(Size::of).collect();
    let stays = sizes.iter().zip(&is_summary).filter(|(_, is_summary)| !**is_summary);
    let mut left: Size = stays.map(|(size, _)| *size).sum();
    let limits = Size { messages: config.max_messages.get(), characters: config.max_characters.get() };
    let goal = match (config.candidates, cause) {
        (Candidates::Marked, Cause::Limits) if candidates <= config.more_than => return Vec::new(),
        (Candidates::Marked, _) => Size::default(),
        (Candidates::All, Cause::Limits) => limits.share(config),
        // The limits are higher than what the model takes.
        (Candidates::All, Cause::Request) => limits.min(left).share(config),
    };

    let mut goes = is_summary.clone();
    for index in (0..messages.len()).filter(|index| is_candidate(*index)) {
        // The other messages of a unit go with its first one.
        let first = units[index];
        // The summary is a message too.
        let fits = left.plus(Size { messages: 1, characters: 0 }).fits(goal);
        goes[index] = if first == index { !fits } else { goes[first] };
        if goes[index] {
            left = left.without(sizes[index]);
        }
    }
    if goes == is_summary {
        return Vec::new();
    }
    messages.iter().zip(goes).filter_map(|(message, goes)| goes.then_some(*message)).collect()
}

/// Returns which messages stay whatever the limits are. `kept` has the units that stay for another reason, at the
/// indices of their first messages.
fn kept(messages: &[MessageRef<'_>], units: &[usize], mut kept: Vec<bool>, config: &Config) -> Vec<bool> {
    let retained = messages.len().saturating_sub(config.retained());
    let input = (0..messages.len()).rev().find(|index| is_input(messages, *index));
    let unmarked = |message| config.candidates == Candidates::Marked && !has(message, ELIGIBLE);
    for (index, message) in messages.iter().copied().enumerate() {
        let stays = !is_summary(message) && (index >= retained || Some(index) == input || unmarked(message));
        kept[units[index]] |= stays || has(message, PINNED);
    }
    units.iter().map(|unit| kept[*unit]).collect()
}

/// Returns whether a message is the input of a turn. One that an extension has replaced has the extension as its
/// source.
fn is_input(messages: &[MessageRef<'_>], index: usize) -> bool {
    let message = messages[index];
    let is_first = || {
        let before = index.checked_sub(1).and_then(|before| messages[before].turn());
        message.turn().is_some_and(|turn| before != Some(turn))
    };
    message.role() == Role::User && (*message.source() == Source::User || is_first())
}

/// Returns for each message the index of the first message of its unit, and at the indices of these messages whether
/// the unit has a call without a result. A unit is a message, or a message with tool calls and all their results: they
/// stay or go together.
fn units(messages: &[MessageRef<'_>]) -> (Vec<usize>, Vec<bool>) {
    let mut units: Vec<_> = (0..messages.len()).collect();
    let mut unanswered = HashMap::new();
    for (index, message) in messages.iter().enumerate() {
        for part in message.content().parts() {
            match part {
                Part::ToolCall(call) => drop(unanswered.insert(call.tool_call_id.clone(), index)),
                Part::ToolResult(result) => units[index] = unanswered.remove(&result.tool_call_id).unwrap_or(index),
                _ => {}
            }
        }
    }
    let mut open = vec![false; messages.len()];
    unanswered.into_values().for_each(|unit| open[unit] = true);
    (units, open)
}

/// Returns whether the message is a summary of this extension.
pub(crate) fn is_summary(message: MessageRef<'_>) -> bool {
    has(message, SUMMARY)
}

pub(crate) fn has(message: MessageRef<'_>, key: &str) -> bool {
    message.metadata(key).is_some_and(|value| *value == true)
}
