//! The calls of a turn, as front ends are told of them.

use std::collections::{HashMap, HashSet};

use goondan_core::{ErrorCode, Message, Part, RuntimeEvent, ToolCallId, ToolCallStatus, ToolResultPart, Wait};
use serde_json::Value;

/// Tells of each call once, when it runs or a person is asked about it: front ends count a call without a result
/// as unfinished, so one that is held is not told of before.
#[derive(Default)]
pub(crate) struct Calls {
    /// Those that the model has asked for: the tool and the arguments.
    asked: HashMap<ToolCallId, (String, Value)>,
    told: HashSet<ToolCallId>,
    /// The ends of those whose messages have not come.
    ended: HashMap<ToolCallId, Ended>,
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    Badly,
    /// A person said no.
    Denied,
}

impl Calls {
    /// Those of a front end that has been told of these.
    pub(crate) fn told(told: HashSet<ToolCallId>) -> Self {
        Self { told, ..Self::default() }
    }

    /// Takes in the calls of an answer.
    pub(crate) fn answer(&mut self, message: &Message) {
        for part in message.content().parts() {
            if let Part::ToolCall(call) = part {
                self.asked.insert(call.tool_call_id.clone(), (call.tool_name.clone(), call.input.clone()));
            }
        }
    }

    /// Takes in an event, and returns the call that runs now.
    pub(crate) fn event<'e>(&mut self, event: &'e RuntimeEvent) -> Option<&'e ToolCallId> {
        match event {
            RuntimeEvent::ToolCalled { call, .. } => return Some(&call.tool_call_id),
            RuntimeEvent::ToolCompleted { call, status, .. } => {
                let ended = if *status == ToolCallStatus::Ok { Ended::Well } else { Ended::Badly };
                self.ended.entry(call.tool_call_id.clone()).or_insert(ended);
            }
            RuntimeEvent::ToolFailed { call, error_code, .. } => {
                let is_denied = *error_code == Some(ErrorCode::TOOL_REJECTED);
                let ended = if is_denied { Ended::Denied } else { Ended::Badly };
                self.ended.insert(call.tool_call_id.clone(), ended);
            }
            _ => {}
        }
        None
    }

    /// Returns the tool and the arguments of a call, if its update is due.
    pub(crate) fn tell(&mut self, id: &ToolCallId) -> Option<(String, Value)> {
        let call = self.asked.remove(id)?;
        self.told.insert(id.clone()).then_some(call)
    }

    /// Returns the same of a call that waits.
    pub(crate) fn wait(&mut self, wait: &Wait) -> Option<(String, Value)> {
        let call = (wait.tool.clone(), Value::Object(wait.args.clone()));
        self.asked.entry(wait.call.clone()).or_insert(call);
        self.tell(&wait.call)
    }

    /// Returns how the call ended that has this result.
    pub(crate) fn ended(&mut self, result: &ToolResultPart) -> Ended {
        match self.ended.remove(&result.tool_call_id) {
            Some(Ended::Well) | None if result.is_error => Ended::Badly,
            ended => ended.unwrap_or(Ended::Well),
        }
    }
}
