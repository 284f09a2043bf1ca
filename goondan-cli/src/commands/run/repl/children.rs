//! The turns of other agents that a turn waits for: a row for each.

use std::time::Instant;

use goondan::agent::TurnUpdate;
use goondan::event::RuntimeEvent;
use goondan::name::{AgentName, InstanceKey, ToolCallId};

use super::usage::seconds;
use crate::output::{Style, Styled, first_line};

/// The number of characters that are shown of an agent and of its work.
const MAX_ROW: usize = 100;

/// The turns that a turn waits for, in the order in which they began.
#[derive(Default)]
pub(super) struct Children(Vec<Child>);

/// A turn of another agent.
struct Child {
    /// The calls and instances of agents that lead to it.
    path: Vec<(Option<ToolCallId>, AgentName, InstanceKey)>,
    does: String,
    since: Instant,
}

impl Children {
    /// Takes an update of such a turn.
    pub(super) fn take(&mut self, mut update: TurnUpdate) {
        let mut path = Vec::new();
        while let TurnUpdate::Child { call, agent, instance, update: inner } = update {
            path.push((call, agent, instance));
            update = *inner;
        }
        let does = match &update {
            TurnUpdate::Reasoning { .. } => "thinks".to_owned(),
            TurnUpdate::Text { .. } => "answers".to_owned(),
            TurnUpdate::Event(event) => match &**event {
                RuntimeEvent::TurnCompleted { .. } | RuntimeEvent::TurnFailed { .. } => {
                    return self.0.retain(|child| !child.path.starts_with(&path));
                }
                RuntimeEvent::TurnSuspended { .. } => "waits for a decision".to_owned(),
                RuntimeEvent::StepStarted { .. } => "waits for its model".to_owned(),
                RuntimeEvent::ToolCalled { call, presentation, .. } => {
                    format!("{} {}", call.tool_name, presentation.line)
                }
                _ => return,
            },
            _ => return,
        };
        match self.0.iter_mut().find(|child| child.path == path) {
            Some(child) => child.does = does,
            None => self.0.push(Child { path, does, since: Instant::now() }),
        }
    }

    /// Returns the rows: at most `limit`.
    pub(super) fn rows(&self, limit: usize, style: &Styled) -> impl Iterator<Item = Styled> {
        self.0.iter().take(limit).map(|Child { path, does, since }| {
            let agents: Vec<_> = path.iter().map(|(_, agent, _)| agent.as_str()).collect();
            let row = first_line(&format!("  {}: {does}", agents.join(" › ")), MAX_ROW);
            style.clone().paint(Style::Dim, &format!("{row} {}", seconds(since.elapsed())))
        })
    }
}
