//! From the updates of a [`TurnStream`](goondan_runtime::TurnStream) to those of this crate.

use std::collections::BTreeMap;

use goondan_core::{AgentName, ExtensionShown, InstanceKey, TurnId};
use goondan_runtime::TurnUpdate;

use crate::update::{Reported, Update};

/// Makes [`Update`]s of the updates of one turn. The example of the [crate](crate) uses it.
#[derive(Debug, Default)]
pub struct Updates {
    /// Known from the first event of the turn on.
    turn: Option<TurnId>,
    /// Those of the turns of other agents. An instance runs one at a time.
    children: BTreeMap<(AgentName, InstanceKey), Self>,
}

impl Updates {
    /// Returns the next update, unless it has none: events of the bus have a form that their emitter chooses.
    pub fn next(&mut self, update: TurnUpdate) -> Option<Update> {
        if let TurnUpdate::Event(event) = update {
            self.turn = Some(event.scope().turn_id.clone());
            return Some(Update::Event { event: Reported::Known(event) });
        }
        let turn_id = self.turn.clone()?;
        Some(match update {
            TurnUpdate::Text { step: step_index, part, text } => Update::Text { turn_id, step_index, part, text },
            TurnUpdate::Reasoning { step: step_index, part, text } => {
                Update::Reasoning { turn_id, step_index, part, text }
            }
            TurnUpdate::ToolCall { step: step_index, part, id: tool_call_id, name: tool_name } => {
                Update::ToolCall { turn_id, step_index, part, tool_call_id, tool_name }
            }
            TurnUpdate::Arguments { step: step_index, part, json } => {
                Update::Arguments { turn_id, step_index, part, json }
            }
            TurnUpdate::Restart { step: step_index, reason, wait } => {
                Update::Restart { turn_id, step_index, reason, wait }
            }
            TurnUpdate::Progress { call: tool_call_id, done, total, text } => {
                Update::Progress { turn_id, tool_call_id, done, total, text }
            }
            TurnUpdate::Shown(ExtensionShown { extension, shown, .. }) => Update::Shown { turn_id, extension, shown },
            TurnUpdate::Message(event) => Update::Message { turn_id, event },
            TurnUpdate::Child { call: tool_call_id, agent: agent_name, instance: instance_key, update } => {
                let child = self.children.entry((agent_name.clone(), instance_key.clone())).or_default();
                let update = Box::new(child.next(*update)?);
                Update::Child { turn_id, tool_call_id, agent_name, instance_key, update }
            }
            _ => return None,
        })
    }
}
