//! The content of a message as text.

use goondan::conversation::{Message, Part, ToolOutput};

/// Returns the parts of `message`, one text for each.
pub(crate) fn parts(message: &Message) -> Vec<String> {
    match message.content().parts() {
        [] => vec![message.text().into_owned()],
        parts => parts.iter().map(part).collect(),
    }
}

fn part(part: &Part) -> String {
    match part {
        Part::Text(text) => text.text.clone(),
        Part::ToolCall(call) => format!("→ {} {}", call.tool_name, call.input),
        Part::ToolResult(result) => match &result.output {
            ToolOutput::Text(text) => format!("← {} {text}", result.tool_name),
            ToolOutput::Json(value) => format!("← {} {value}", result.tool_name),
            other => format!("← {} {}", result.tool_name, serde_json::json!(other)),
        },
        other => serde_json::json!(other).to_string(),
    }
}
