//! The number of tokens of messages, by estimate: without a tokenizer, which differs from model to model.

use super::message::Message;
use super::part::{Part, ToolOutput};

const BYTES_PER_TOKEN: u64 = 4;
/// The tokens of an image. A large one has about as many with most providers.
const TOKENS_PER_IMAGE: u64 = 1_500;

/// Returns the tokens of a text of `bytes` bytes.
pub fn tokens_of(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// Returns the tokens of a message.
pub fn message_tokens(message: &Message) -> u64 {
    parts_tokens(message.content().parts())
}

fn parts_tokens(parts: &[Part]) -> u64 {
    parts.iter().map(part_tokens).sum()
}

fn part_tokens(part: &Part) -> u64 {
    match part {
        Part::Text(text) => tokens_of(text.text.len()),
        Part::Reasoning(reasoning) => tokens_of(reasoning.text().len()),
        Part::ToolCall(call) => tokens_of(call.tool_name.len() + call.input.to_string().len()),
        Part::ToolResult(result) => match &result.output {
            ToolOutput::Content(parts) => parts_tokens(parts),
            output => tokens_of(output.to_text().len()),
        },
        Part::File(file) if file.media_type.starts_with("image/") => TOKENS_PER_IMAGE,
        Part::File(file) => tokens_of(file.url.len()),
        Part::Provider(part) => tokens_of(serde_json::to_string(part).map_or(0, |json| json.len())),
        Part::Other(other) => tokens_of(serde_json::to_string(other).map_or(0, |json| json.len())),
    }
}
