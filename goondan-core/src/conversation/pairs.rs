//! Owns the account of tool calls and their results, so that no model input holds one without the other (PAIR-01).

use std::borrow::Cow;

use super::{Content, HashMap, HashSet, Message, MessageData, Part};
use crate::name::{MessageId, ToolCallId};

/// Where each call id stands in the conversation, as a call and as a result. Kept up to date with every event, so that a
/// step over a long history need not look for those that stand alone.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    ids: HashMap<ToolCallId, Sides>,
    /// The ids of which one half is there, and the other is not.
    halves: HashSet<ToolCallId>,
    /// How many ids need a look at the messages to know which halves belong together.
    odd: usize,
    /// Whether results may stand before their calls: a message was put in the place of one that had other calls or results,
    /// or one has both.
    disordered: bool,
}

#[derive(Debug, Default)]
struct Sides {
    calls: Count,
    results: Count,
    /// Whether the id was used more than once, so that what is removed may be of either, or the call came after its result.
    odd: bool,
}

#[derive(Debug, Default)]
struct Count {
    number: u32,
    /// The message that it stood in last.
    message: Option<MessageId>,
}

impl Sides {
    fn is_empty(&self) -> bool {
        self.calls.number == 0 && self.results.number == 0
    }

    fn is_half(&self) -> bool {
        self.calls.number != self.results.number && !self.odd
    }

    fn of(&mut self, side: Side) -> &mut Count {
        match side {
            Side::Call => &mut self.calls,
            Side::Result => &mut self.results,
        }
    }
}

impl Pairs {
    pub(super) fn add(&mut self, message: &Message) {
        for (id, side) in sides(message) {
            self.change(id, |sides| {
                let count = sides.of(side);
                count.number += 1;
                count.message = Some(message.id().clone());
                let twice = count.number > 1;
                sides.odd |= twice || side == Side::Call && sides.results.number > 0;
            });
        }
        self.disordered |=
            sides(message).any(|(_, side)| side != Side::Call) && sides(message).any(|(_, side)| side == Side::Call);
    }

    pub(super) fn subtract(&mut self, message: &Message) {
        for (id, side) in sides(message) {
            self.change(id, |sides| {
                let count = sides.of(side);
                count.number = count.number.saturating_sub(1);
            });
        }
    }

    /// Takes note that `new` stands where `old` stood. With the same calls and results, shortened ones for example, the
    /// order stays.
    pub(super) fn replace(&mut self, old: &Message, new: &Message) {
        if sides(old).eq(sides(new)) {
            for (id, side) in sides(new) {
                self.change(id, |sides| sides.of(side).message = Some(new.id().clone()));
            }
        } else {
            self.subtract(old);
            self.add(new);
            self.disordered = true;
        }
    }

    fn change(&mut self, id: &ToolCallId, change: impl FnOnce(&mut Sides)) {
        let sides = self.ids.entry(id.clone()).or_default();
        let (was_half, was_odd) = (sides.is_half(), sides.odd);
        change(sides);
        if sides.is_half() && !was_half {
            self.halves.insert(id.clone());
        }
        if !sides.is_half() && was_half {
            self.halves.remove(id);
        }
        let is_odd = sides.odd && !sides.is_empty();
        self.odd = self.odd + usize::from(is_odd) - usize::from(was_odd);
        if sides.is_empty() {
            self.ids.remove(id);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The ids of the orphans.
    pub(super) fn orphan_ids<'a, M: Iterator<Item = &'a Message>>(
        &self,
        messages: impl FnOnce() -> M,
    ) -> Cow<'_, HashSet<ToolCallId>> {
        if self.need_matching() { Cow::Owned(matched(messages()).ids()) } else { Cow::Borrowed(&self.halves) }
    }

    /// Whether counting does not tell which halves belong together.
    fn need_matching(&self) -> bool {
        self.odd > 0 || self.disordered
    }

    /// The calls without a result behind them, and the results without a call before them. `message` finds a message,
    /// `messages` are all of them.
    pub(super) fn orphans<'a, M: Iterator<Item = &'a Message>>(
        &self,
        message: impl Fn(&MessageId) -> Option<&'a Message>,
        messages: impl FnOnce() -> M,
    ) -> Orphans<'a> {
        if self.need_matching() {
            return matched(messages());
        }
        let mut orphans = Orphans::default();
        for id in &self.halves {
            let sides = self.ids.get(id);
            let stands = sides.map(|sides| if sides.calls.number > 0 { &sides.calls } else { &sides.results });
            let Some(message) = stands.and_then(|count| message(count.message.as_ref()?)) else { continue };
            for (part, it) in message.content().parts().iter().enumerate() {
                if let Some((found, _)) = side(it)
                    && found == id
                {
                    orphans.insert(found, Place { message: message.id(), part });
                }
            }
        }
        orphans
    }
}

/// Matches calls and results one by one. Of calls with the same id the newest message is answered first, as models have
/// it.
fn matched<'a>(messages: impl Iterator<Item = &'a Message>) -> Orphans<'a> {
    let mut orphans = Orphans::default();
    let mut open: HashMap<&ToolCallId, Vec<Vec<Place<'_>>>> = HashMap::default();
    for message in messages {
        let mut asked: HashMap<&ToolCallId, Vec<Place<'_>>> = HashMap::default();
        let parts = message.content().parts().iter().enumerate();
        for (part, (id, side)) in parts.filter_map(|(at, part)| Some((at, side(part)?))) {
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
    /// The id of the call at each place.
    places: HashMap<Place<'a>, &'a ToolCallId>,
}

impl<'a> Orphans<'a> {
    fn insert(&mut self, id: &'a ToolCallId, place: Place<'a>) {
        self.places.insert(place, id);
    }

    /// The ids of the calls and results.
    fn ids(&self) -> HashSet<ToolCallId> {
        self.places.values().copied().cloned().collect()
    }

    pub(super) fn contain(&self, message: &MessageId, part: usize) -> bool {
        !self.places.is_empty() && self.places.contains_key(&Place { message, part })
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
