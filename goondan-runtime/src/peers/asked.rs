//! Ids of the events that a turn causes elsewhere: of requests to other agents, and of delegations. A turn that goes on
//! after an interruption gives them the same ids again, so that each is answered once.
// ONCE-01

use std::fmt;
use std::sync::{Arc, Weak};

use goondan_core::host::IdMap;
use goondan_core::{EventId, ExtensionName, ToolCallId, TurnInfo};
use goondan_lock::Lock;

use crate::ports::router::AgentCall;
use crate::ports::store::EventDigest;

/// Where a turn causes an event.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Turn,
    Step(u32),
    Call(&'a ToolCallId),
    /// By an extension, or by the program.
    Delegation(Option<&'a ExtensionName>),
}

impl<'a> Place<'a> {
    /// Returns the tool call, if it is one.
    pub(super) fn call(self) -> Option<&'a ToolCallId> {
        match self {
            Self::Call(call) => Some(call),
            _ => None,
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn => f.write_str("turn"),
            Self::Step(index) => write!(f, "step-{index}"),
            Self::Call(call) => write!(f, "{call}"),
            Self::Delegation(extension) => write!(f, "delegate-{}", extension.map_or("", ExtensionName::as_str)),
        }
    }
}

/// The number of times that one run of a turn has caused each event.
pub(super) type Numbers = IdMap<String, u32>;

pub(super) fn next_number(numbers: &mut Numbers, what: String) -> u32 {
    let number = numbers.entry(what).or_default();
    *number += 1;
    *number
}

/// Returns the id of the event of `call`, whose place is in `turn`.
pub(super) fn event_id(numbers: &mut Numbers, turn: &TurnInfo, place: Place<'_>, call: &AgentCall) -> EventId {
    let AgentCall { target, instance, event, .. } = call;
    let request = format!("{}/{place}/{target}:{instance}/{}", turn.turn, EventDigest::of(event));
    match next_number(numbers, request.clone()) {
        1 => request.into(),
        number => format!("{request}/{number}").into(),
    }
}

/// The delegations of the turns of a conversation, also of turns that have ended and whose events are still handled.
#[derive(Default)]
pub(crate) struct Delegations(Lock<Vec<(Weak<TurnInfo>, Numbers)>>);

impl Delegations {
    /// Returns the id of the event of a delegation by `extension`, or by the program, which this run of a turn caused.
    pub(crate) fn event_id(
        &self,
        turn: &Arc<TurnInfo>,
        extension: Option<&ExtensionName>,
        call: &AgentCall,
    ) -> EventId {
        let mut runs = self.0.lock();
        runs.retain(|(run, _)| run.strong_count() > 0);
        let known = runs.iter().position(|(run, _)| run.as_ptr() == Arc::as_ptr(turn));
        let run = known.unwrap_or_else(|| {
            runs.push((Arc::downgrade(turn), Numbers::default()));
            runs.len() - 1
        });
        event_id(&mut runs[run].1, turn, Place::Delegation(extension), call)
    }
}
