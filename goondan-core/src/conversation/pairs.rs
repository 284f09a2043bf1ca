//! Owns the account of tool calls and their results, so that no model input holds one without the other (PAIR-01).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::{Content, Message, MessageData, Part};
use crate::name::{MessageId, ToolCallId};

/// How often each call id stands in the conversation as a call and as a result. Kept up to date with every event, so that
/// a step over a long history, in which as a rule every call has its result, need not look for those that have none.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    counts: HashMap<ToolCallId, Sides>,
    /// How many ids of `counts` do not show by their numbers alone that they are whole.
    doubtful: usize,
    /// Whether results may stand before their calls: a message was put in the place of one that had other calls or results,
    /// or one has both.
    disordered: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sides {
    calls: u32,
    results: u32,
    /// Whether the id was used for more than one call, so that what is removed may be of either, or a result was there
    /// without a call, so that a call now comes too late.
    odd: bool,
}

impl Sides {
    fn is_doubtful(self) -> bool {
        self.calls != self.results || self.odd
    }
}

impl Pairs {
    pub(super) fn add(&mut self, message: &Message) {
        self.each_side(message, |side| *side += 1);
        self.disordered |=
            sides(message).any(|(_, side)| side != Side::Call) && sides(message).any(|(_, side)| side == Side::Call);
    }

    pub(super) fn subtract(&mut self, message: &Message) {
        self.each_side(message, |side| *side = side.saturating_sub(1));
    }

    /// Takes note that `new` stands where `old` stood. With the same calls and results, shortened ones for example, nothing
    /// changes.
    pub(super) fn replace(&mut self, old: &Message, new: &Message) {
        if !sides(old).eq(sides(new)) {
            self.subtract(old);
            self.add(new);
            self.disordered = true;
        }
    }

    fn each_side(&mut self, message: &Message, change: impl Fn(&mut u32)) {
        for (id, side) in sides(message) {
            let sides = self.counts.entry(id.clone()).or_default();
            self.doubtful -= usize::from(sides.is_doubtful());
            change(match side {
                Side::Call => &mut sides.calls,
                Side::Result => &mut sides.results,
            });
            sides.odd |= sides.calls > 1 || sides.results > sides.calls;
            self.doubtful += usize::from(sides.is_doubtful() && (sides.calls, sides.results) != (0, 0));
            if (sides.calls, sides.results) == (0, 0) {
                self.counts.remove(id);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The calls of `messages` without a result behind them, and the results without a call before them. Of calls with
    /// the same id the newest message is answered first, as models have it.
    pub(super) fn orphans<'a>(&self, messages: impl Iterator<Item = &'a Message>) -> Orphans<'a> {
        let mut orphans = Orphans::default();
        if self.doubtful == 0 && !self.disordered {
            return orphans;
        }
        let mut open: HashMap<&ToolCallId, Vec<Vec<Place<'_>>>> = HashMap::new();
        for message in messages {
            let mut asked: HashMap<&ToolCallId, Vec<Place<'_>>> = HashMap::new();
            for (part, (id, side)) in
                message.content().parts().iter().enumerate().filter_map(|(at, part)| Some((at, side(part)?)))
            {
                let place = Place { message: message.id(), part };
                match side {
                    Side::Call => asked.entry(id).or_default().push(place),
                    Side::Result if answer(&mut open, id) => {}
                    Side::Result => orphans.insert(id, place),
                }
            }
            asked.into_iter().for_each(|(id, places)| open.entry(id).or_default().push(places));
        }
        for (id, places) in open {
            places.into_iter().flatten().for_each(|place| orphans.insert(id, place));
        }
        orphans
    }
}

/// Takes out the call that a result with this id answers, if there is one.
fn answer(open: &mut HashMap<&ToolCallId, Vec<Vec<Place<'_>>>>, id: &ToolCallId) -> bool {
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

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Call,
    Result,
}

fn side(part: &Part) -> Option<(&ToolCallId, Side)> {
    match part {
        Part::ToolCall(call) => Some((&call.tool_call_id, Side::Call)),
        Part::ToolResult(result) => Some((&result.tool_call_id, Side::Result)),
        Part::Text(_) | Part::Other(_) => None,
    }
}

fn sides(message: &Message) -> impl Iterator<Item = (&ToolCallId, Side)> {
    message.content().parts().iter().filter_map(side)
}

/// A part of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place<'a> {
    message: &'a MessageId,
    part: usize,
}

/// The halves of tool pairs in a conversation, which are kept from the model.
#[derive(Default)]
pub(crate) struct Orphans<'a> {
    places: HashSet<Place<'a>>,
    ids: HashSet<&'a ToolCallId>,
}

impl<'a> Orphans<'a> {
    fn insert(&mut self, id: &'a ToolCallId, place: Place<'a>) {
        self.places.insert(place);
        self.ids.insert(id);
    }

    /// The ids of the calls and results.
    #[cfg(feature = "runtime")]
    pub(crate) fn ids(&self) -> &HashSet<&'a ToolCallId> {
        &self.ids
    }

    pub(super) fn contain(&self, message: &MessageId, part: usize) -> bool {
        !self.places.is_empty() && self.places.contains(&Place { message, part })
    }

    /// What a model may see of `message`: all of it, or what is left without orphans, or nothing.
    pub(super) fn visible<'m>(&self, message: &'m Message) -> Option<Cow<'m, MessageData>> {
        let parts = message.content().parts();
        let seen = |at: &usize| !self.contain(message.id(), *at);
        if self.places.is_empty() || (0..parts.len()).all(|at| seen(&at)) {
            return Some(Cow::Borrowed(message.data()));
        }
        let left: Vec<_> = (0..parts.len()).filter(seen).map(|at| parts[at].clone()).collect();
        let data = MessageData { role: message.role(), content: Content::Parts(left) };
        (!data.content.parts().is_empty()).then_some(Cow::Owned(data))
    }
}
