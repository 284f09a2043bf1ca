//! The content of a message as text.

use goondan::conversation::{Message, Part};
use goondan::tool::Presentation;
use serde::Deserialize as _;

/// Returns the parts of `message`, one text for each.
pub(crate) fn parts(message: &Message) -> Vec<String> {
    let presentation = presentation(message);
    message.content().parts().iter().map(|part| self::part(part, presentation.as_ref())).collect()
}

/// Returns the presentation of the call whose result the message has.
pub(super) fn presentation(message: &Message) -> Option<Presentation> {
    message.metadata().get("presentation").and_then(|shown| Presentation::deserialize(shown).ok())
}

fn part(part: &Part, presentation: Option<&Presentation>) -> String {
    match part {
        Part::ToolCall(_) => format!("→ {part}"),
        Part::Reasoning(_) => format!("… {part}"),
        Part::ToolResult(result) => match presentation {
            Some(presentation) => format!("← {}  {presentation}\n{part}", result.tool_name),
            None => format!("← {} {part}", result.tool_name),
        },
        _ => part.to_string(),
    }
}
