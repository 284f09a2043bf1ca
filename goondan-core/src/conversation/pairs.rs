//! Owns the account of tool calls and their results, so that no model input holds one without the other (PAIR-01).

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Content, Message, MessageData, Part};
use crate::name::ToolCallId;

/// How often each call id stands in the conversation as a call and as a result. Kept up to date with every event, so that
/// a step over a long history pays nothing for it.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    counts: HashMap<ToolCallId, Sides>,
    /// How many ids of `counts` lack a side.
    orphans: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sides {
    calls: u32,
    results: u32,
}

impl Sides {
    fn is_orphan(self) -> bool {
        (self.calls == 0) != (self.results == 0)
    }
}

impl Pairs {
    pub(super) fn add(&mut self, message: &Message) {
        self.each_side(message, |side| *side += 1);
    }

    pub(super) fn subtract(&mut self, message: &Message) {
        self.each_side(message, |side| *side = side.saturating_sub(1));
    }

    fn each_side(&mut self, message: &Message, change: impl Fn(&mut u32)) {
        for part in message.content().parts() {
            let (id, is_call) = match part {
                Part::ToolCall(call) => (&call.tool_call_id, true),
                Part::ToolResult(result) => (&result.tool_call_id, false),
                Part::Text(_) | Part::Other(_) => continue,
            };
            let sides = self.counts.entry(id.clone()).or_default();
            self.orphans -= usize::from(sides.is_orphan());
            change(if is_call { &mut sides.calls } else { &mut sides.results });
            self.orphans += usize::from(sides.is_orphan());
            if sides.calls == 0 && sides.results == 0 {
                self.counts.remove(id);
            }
        }
    }

    pub(super) fn orphans(&self) -> usize {
        self.orphans
    }

    pub(super) fn lacks_result(&self, call: &ToolCallId) -> bool {
        self.counts.get(call).is_some_and(|sides| sides.results == 0)
    }

    /// What a model may see of `message`: all of it, or what is left without orphans, or nothing.
    pub(super) fn visible<'a>(&self, message: &'a Message) -> Option<Cow<'a, MessageData>> {
        let parts = message.content().parts();
        if self.orphans == 0 || !parts.iter().any(|part| self.is_orphan(part)) {
            return Some(Cow::Borrowed(message.data()));
        }
        let left: Vec<_> = parts.iter().filter(|part| !self.is_orphan(part)).cloned().collect();
        let data = MessageData { role: message.role(), content: Content::Parts(left) };
        (!data.content.parts().is_empty()).then_some(Cow::Owned(data))
    }

    fn is_orphan(&self, part: &Part) -> bool {
        let id = match part {
            Part::ToolCall(call) => &call.tool_call_id,
            Part::ToolResult(result) => &result.tool_call_id,
            Part::Text(_) | Part::Other(_) => return false,
        };
        self.counts.get(id).is_some_and(|sides| sides.is_orphan())
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
