//! The content of a message as text.

use goondan::conversation::{Message, Part};

/// Returns the parts of `message`, one text for each.
pub(crate) fn parts(message: &Message) -> Vec<String> {
    message.content().parts().iter().map(part).collect()
}

fn part(part: &Part) -> String {
    match part {
        Part::ToolCall(_) => format!("→ {part}"),
        Part::Reasoning(_) => format!("… {part}"),
        Part::ToolResult(result) => format!("← {} {part}", result.tool_name),
        _ => part.to_string(),
    }
}
