//! Messages for libraries of version 1.0, which cannot read outputs and sources of later versions.

use std::borrow::Cow;

use goondan_core::{Content, MessageRef, Part, Result, Source, ToolOutput};
use serde_json::{Value, json};

/// Returns `content` with outputs of other types than text and JSON as JSON.
pub(super) fn content(content: &Content) -> Result<Cow<'_, Content>> {
    if content.parts().iter().all(is_readable) {
        return Ok(Cow::Borrowed(content));
    }
    let mut parts = content.parts().to_vec();
    for part in parts.iter_mut().filter(|part| !is_readable(part)) {
        if let Part::ToolResult(result) = part {
            result.output = ToolOutput::Json(serde_json::to_value(&result.output)?);
        }
    }
    Ok(Cow::Owned(Content::Parts(parts)))
}

fn is_readable(part: &Part) -> bool {
    !matches!(part, Part::ToolResult(result) if !matches!(result.output, ToolOutput::Text(_) | ToolOutput::Json(_)))
}

/// Returns `source`, or the runtime if it is of a type that version 1.0 does not have.
pub(super) fn source(source: &Source) -> &Source {
    if let Source::Other(_) = source { &Source::System } else { source }
}

/// Returns the whole message.
pub(super) fn message(message: &MessageRef<'_>) -> Result<Value> {
    let mut whole = serde_json::to_value(message.to_message())?;
    whole["data"]["content"] = json!(content(&message.content())?);
    if let Source::Other(_) = &*message.source() {
        whole["source"] = json!(Source::System);
    }
    Ok(whole)
}
