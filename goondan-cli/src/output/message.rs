//! The content of a message as text.

use goondan::conversation::{Message, Part};

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
        Part::Reasoning(part) => format!("… {}", part.text()),
        Part::File(part) => {
            let name = part.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            format!("[{}{name}]", part.media_type)
        }
        Part::Provider(part) => format!("[block of {}]", part.provider().api()),
        Part::ToolResult(result) => format!("← {} {}", result.tool_name, result.output.to_text()),
        other => serde_json::json!(other).to_string(),
    }
}
