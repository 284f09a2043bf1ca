//! Pairs tool calls with their results, so that no model input has one without the other.
// PAIR-01

use std::borrow::Cow;
use std::collections::hash_map::Entry;

use super::IdMap;
use super::message::{Message, MessageData, MessageDataExt};
use super::part::Part;
use crate::name::{MessageId, ToolCallId};

/// The tool call ids of a conversation, each with its calls and results. Every event updates them, so that a step of a
/// long conversation need not search it for orphans: calls without a result, and results without a call.
///
/// Counts suffice while each id has one call, followed by at most one result. Otherwise all messages are matched in
/// order.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    calls: IdMap<ToolCallId, CallState>,
    /// The ids that have a call or a result, but not both.
    unpaired: Vec<ToolCallId>,
    /// The number of ids whose counts do not determine which calls and results belong together.
    ambiguous: usize,
    /// Whether results may precede their calls: a message was replaced by one with other calls or results, or one
    /// message has both.
    reordered: bool,
}

/// The calls and results of one id.
#[derive(Debug, Default)]
struct CallState {
    calls: Occurrences,
    results: Occurrences,
    /// Whether the id was used more than once, so that a removed call or result may be any of them, or whether the
    /// call was added after its result.
    ambiguous: bool,
    /// The position of the id in [`Pairs::unpaired`].
    unpaired_at: Option<usize>,
}

#[derive(Debug, Default)]
struct Occurrences {
    count: u32,
    /// The newest message that contains one.
    message: Option<MessageId>,
}

impl CallState {
    fn is_empty(&self) -> bool {
        self.calls.count == 0 && self.results.count == 0
    }

    fn is_unpaired(&self) -> bool {
        self.calls.count != self.results.count && !self.ambiguous
    }

    fn of(&mut self, half: Half) -> &mut Occurrences {
        match half {
            Half::Call => &mut self.calls,
            Half::Result => &mut self.results,
        }
    }
}

impl Pairs {
    pub(super) fn add(&mut self, message: &Message) {
        let (mut has_call, mut has_result) = (false, false);
        for (id, half) in halves(message) {
            *if half == Half::Call { &mut has_call } else { &mut has_result } = true;
            self.update(id, |state| {
                let occurrences = state.of(half);
                occurrences.count += 1;
                occurrences.message = Some(message.id().clone());
                let repeated = occurrences.count > 1;
                state.ambiguous |= repeated || half == Half::Call && state.results.count > 0;
            });
        }
        self.reordered |= has_call && has_result;
    }

    pub(super) fn remove(&mut self, message: &Message) {
        for (id, half) in halves(message) {
            self.update(id, |state| {
                let occurrences = state.of(half);
                occurrences.count = occurrences.count.saturating_sub(1);
            });
        }
    }

    /// Records that `new` has replaced `old`. If both have the same calls and results, which may be shortened for
    /// example, the order of all calls and results is unchanged.
    pub(super) fn replace(&mut self, old: &Message, new: &Message) {
        if halves(old).eq(halves(new)) {
            for (id, half) in halves(new) {
                self.update(id, |state| state.of(half).message = Some(new.id().clone()));
            }
        } else {
            self.remove(old);
            self.add(new);
            self.reordered = true;
        }
    }

    fn update(&mut self, id: &ToolCallId, update: impl FnOnce(&mut CallState)) {
        let mut entry = match self.calls.entry(id.clone()) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => entry.insert_entry(CallState::default()),
        };
        let state = entry.get_mut();
        let was_ambiguous = state.ambiguous;
        update(state);
        let is_ambiguous = state.ambiguous && !state.is_empty();
        self.ambiguous = self.ambiguous + usize::from(is_ambiguous) - usize::from(was_ambiguous);
        let mut moved = None;
        match (state.is_unpaired(), state.unpaired_at) {
            (true, None) => {
                state.unpaired_at = Some(self.unpaired.len());
                self.unpaired.push(id.clone());
            }
            (false, Some(position)) => {
                state.unpaired_at = None;
                self.unpaired.swap_remove(position);
                moved = self.unpaired.get(position).map(|last| (last, position));
            }
            _ => {}
        }
        if state.is_empty() {
            entry.remove();
        }
        if let Some((id, position)) = moved
            && let Some(state) = self.calls.get_mut(id)
        {
            state.unpaired_at = Some(position);
        }
    }

    /// Returns whether a call or a result has this id.
    pub(super) fn contains(&self, id: &ToolCallId) -> bool {
        self.calls.contains_key(id)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the ids of the orphans. `messages` iterates all messages.
    pub(super) fn orphan_ids<'a, M: Iterator<Item = &'a Message>>(
        &self,
        messages: impl FnOnce() -> M,
    ) -> Cow<'_, [ToolCallId]> {
        if self.needs_matching() {
            Cow::Owned(match_in_order(messages(), |_| true).ids())
        } else {
            Cow::Borrowed(&self.unpaired)
        }
    }

    /// Returns whether there may be calls without a result, or results without a call.
    pub(super) fn has_orphans(&self) -> bool {
        self.needs_matching() || !self.unpaired.is_empty()
    }

    /// Returns whether a call with this id may have no result.
    pub(super) fn may_be_orphan(&self, id: &ToolCallId) -> bool {
        self.needs_matching() || self.calls.get(id).is_some_and(CallState::is_unpaired)
    }

    /// Returns whether counts do not determine which calls and results belong together.
    fn needs_matching(&self) -> bool {
        self.ambiguous > 0 || self.reordered
    }

    /// Returns the calls without a later result, and the results without an earlier call. `message` finds a message,
    /// `messages` iterates all of them.
    pub(super) fn orphans<'a, M: Iterator<Item = &'a Message>>(
        &self,
        message: impl Fn(&MessageId) -> Option<&'a Message>,
        messages: impl FnOnce() -> M,
    ) -> Orphans<'a> {
        if self.needs_matching() {
            return match_in_order(messages(), |_| true);
        }
        let mut orphans = Orphans::default();
        for id in &self.unpaired {
            let state = self.calls.get(id);
            let only = state.map(|state| if state.calls.count > 0 { &state.calls } else { &state.results });
            let Some(message) = only.and_then(|only| message(only.message.as_ref()?)) else { continue };
            for (index, part) in message.content().parts().iter().enumerate() {
                if let Some((found, _)) = half(part)
                    && found == id
                {
                    orphans.insert(found, PartRef { message: message.id(), index });
                }
            }
        }
        orphans
    }
}

/// Matches calls and results with the ids that are `wanted` one by one, and returns those that are left. Of calls with
/// the same id, a result answers the one in the newest message, as models assume.
pub(super) fn match_in_order<'a>(
    messages: impl Iterator<Item = &'a Message>,
    wanted: impl Fn(&ToolCallId) -> bool,
) -> Orphans<'a> {
    let mut orphans = Orphans::default();
    // The unanswered calls of each id, by message.
    let mut open: IdMap<&ToolCallId, Vec<Vec<PartRef<'_>>>> = IdMap::default();
    for message in messages {
        let mut calls: IdMap<&ToolCallId, Vec<PartRef<'_>>> = IdMap::default();
        let parts = message.content().parts().iter().enumerate();
        let halves = parts.filter_map(|(index, part)| Some((index, half(part)?)));
        for (index, (id, half)) in halves.filter(|(_, (id, _))| wanted(id)) {
            let part = PartRef { message: message.id(), index };
            match half {
                Half::Call => calls.entry(id).or_default().push(part),
                Half::Result if take_call(&mut open, id) => {}
                Half::Result => orphans.insert(id, part),
            }
        }
        calls.into_iter().for_each(|(id, parts)| open.entry(id).or_default().push(parts));
    }
    for (id, messages) in open {
        messages.into_iter().flatten().for_each(|part| orphans.insert(id, part));
    }
    orphans
}

/// Removes the call that a result with this id answers. Returns false if there is none.
fn take_call(open: &mut IdMap<&ToolCallId, Vec<Vec<PartRef<'_>>>>, id: &ToolCallId) -> bool {
    let Some(messages) = open.get_mut(id) else { return false };
    if let Some(newest) = messages.last_mut() {
        newest.remove(0);
    }
    messages.pop_if(|newest| newest.is_empty());
    if messages.is_empty() {
        open.remove(id);
    }
    true
}

/// One half of a pair.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Half {
    Call,
    Result,
}

fn half(part: &Part) -> Option<(&ToolCallId, Half)> {
    match part {
        Part::ToolCall(call) => Some((&call.tool_call_id, Half::Call)),
        Part::ToolResult(result) => Some((&result.tool_call_id, Half::Result)),
        Part::Text(_) | Part::Reasoning(_) | Part::File(_) | Part::Provider(_) | Part::Other(_) => None,
    }
}

pub(super) fn halves(message: &Message) -> impl Iterator<Item = (&ToolCallId, Half)> {
    message.content().parts().iter().filter_map(half)
}

/// A part of a message, by its index.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PartRef<'a> {
    message: &'a MessageId,
    index: usize,
}

/// The calls without a result and the results without a call, which are not sent to a model.
#[derive(Default)]
pub(crate) struct Orphans<'a> {
    parts: IdMap<PartRef<'a>, &'a ToolCallId>,
}

impl<'a> Orphans<'a> {
    fn insert(&mut self, id: &'a ToolCallId, part: PartRef<'a>) {
        self.parts.insert(part, id);
    }

    /// Replaces the calls and results whose ids are `changed` by those of `new`.
    pub(super) fn replace(&mut self, new: Self, changed: impl Fn(&ToolCallId) -> bool) {
        self.parts.retain(|_, id| !changed(id));
        self.parts.extend(new.parts);
    }

    /// Returns the ids of the calls and results.
    fn ids(&self) -> Vec<ToolCallId> {
        self.parts.values().copied().cloned().collect()
    }

    pub(super) fn contains(&self, message: &MessageId, index: usize) -> bool {
        !self.parts.is_empty() && self.parts.contains_key(&PartRef { message, index })
    }

    /// Returns the part of `message` that is sent to a model: all of it, or its parts without orphans, or `None` if
    /// no part is left.
    pub(super) fn visible<'m>(&self, message: &'m Message) -> Option<Cow<'m, MessageData>> {
        let parts = message.content().parts();
        // Most parts are no halves of a pair, and need no look-up.
        let visible = |index: &usize| half(&parts[*index]).is_none() || !self.contains(message.id(), *index);
        if self.parts.is_empty() || (0..parts.len()).all(|index| visible(&index)) {
            return Some(Cow::Borrowed(message.data()));
        }
        let left: Vec<_> = (0..parts.len()).filter(visible).map(|index| parts[index].clone()).collect();
        let data = message.data().with_content(left.into());
        (!data.content.parts().is_empty()).then_some(Cow::Owned(data))
    }
}
