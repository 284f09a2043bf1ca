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
        Part::Reasoning(part) => format!("… {}", part.text()),
        Part::File(part) => part.label(),
        Part::Provider(part) => format!("[block of {}]", part.provider().api()),
        Part::ToolResult(result) => {
            let output = match &result.output {
                ToolOutput::Content(parts) => parts.iter().map(self::part).collect::<Vec<_>>().join("\n").into(),
                output => output.to_text(),
            };
            format!("← {} {output}", result.tool_name)
        }
        other => serde_json::json!(other).to_string(),
    }
}
