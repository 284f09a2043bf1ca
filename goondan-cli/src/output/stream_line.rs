//! The lines of `run --json --stream`: what happens in a turn, while it happens.

use goondan::agent::TurnUpdate;
use goondan::event::RuntimeEvent;
use goondan::name::TurnId;
use serde_json::{Value, json};

/// Writes the updates of one turn as JSON, one object each.
#[derive(Default)]
pub(crate) struct StreamLines {
    /// Known from the first event of the turn on.
    turn: Option<TurnId>,
}

impl StreamLines {
    /// Returns the line of an update.
    pub(crate) fn line(&mut self, update: &TurnUpdate) -> Option<Value> {
        if let TurnUpdate::Event(event) = update {
            if let RuntimeEvent::TurnStarted { scope } = &**event {
                self.turn = Some(scope.turn_id.clone());
            }
            return Some(json!({ "type": "event", "event": event }));
        }
        let turn = &self.turn;
        let line = match update {
            TurnUpdate::Text { step, part, text } => {
                json!({ "type": "text", "turnId": turn, "stepIndex": step, "part": part, "text": text })
            }
            TurnUpdate::Reasoning { step, part, text } => {
                json!({ "type": "reasoning", "turnId": turn, "stepIndex": step, "part": part, "text": text })
            }
            TurnUpdate::ToolCall { step, part, id, name } => json!({
                "type": "tool-call", "turnId": turn, "stepIndex": step, "part": part, "toolCallId": id,
                "toolName": name,
            }),
            TurnUpdate::Arguments { step, part, json } => {
                json!({ "type": "arguments", "turnId": turn, "stepIndex": step, "part": part, "json": json })
            }
            TurnUpdate::Restart { step, reason, wait } => {
                let mut line = json!({ "type": "restart", "turnId": turn, "stepIndex": step, "reason": reason });
                if let Some(wait) = wait {
                    line["wait"] = json!(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                }
                line
            }
            TurnUpdate::Progress { call, done, total, text } => json!({
                "type": "progress", "turnId": turn, "toolCallId": call, "done": done, "total": total, "text": text,
            }),
            _ => return None,
        };
        Some(line)
    }
}
