//! Renders an answer of the server as a reply.

use goondan::tool::{ReplyPart, ToolContext, ToolReply};
use goondan::{Result, Value, json};
use goondan_text::{Excerpt, NumberedFile, Place};

use crate::server::{Answer, Block};

/// Returns the answer as a reply with at most `limit` characters of text. If it has more, all of it is in a file.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn reply(ctx: &ToolContext<'_>, answer: Answer, limit: usize) -> Result<ToolReply> {
    let Answer { blocks, structured, is_error } = answer;
    let blocks = match structured {
        Some(value) if blocks.is_empty() => return Ok(failed_if(is_error, value_reply(ctx, value, limit)?)),
        _ => blocks,
    };
    let texts = || {
        blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::File(_) => None,
        })
    };
    let has_files = blocks.iter().any(|block| matches!(block, Block::File(_)));
    let characters: usize = texts().map(|text| text.chars().count()).sum();
    let reply = match (has_files, characters > limit) {
        (false, _) => ToolReply::text(cut(ctx, texts().collect::<Vec<_>>().join("\n"), limit)?),
        (true, false) => ToolReply::content(blocks.into_iter().map(ReplyPart::from)),
        (true, true) => {
            let text = cut(ctx, texts().collect::<Vec<_>>().join("\n"), limit)?;
            let files = blocks.into_iter().filter(|block| matches!(block, Block::File(_)));
            ToolReply::content(std::iter::once(Block::Text(text)).chain(files).map(ReplyPart::from))
        }
    };
    Ok(failed_if(is_error, reply))
}

/// Returns JSON as a reply; as text, if it is too long.
pub(crate) fn value_reply(ctx: &ToolContext<'_>, value: Value, limit: usize) -> Result<ToolReply> {
    let text = json::to_string(&value)?;
    if text.chars().count() <= limit { Ok(value.into()) } else { cut(ctx, text, limit).map(ToolReply::text) }
}

fn failed_if(is_error: bool, reply: ToolReply) -> ToolReply {
    if is_error { reply.failed() } else { reply }
}

impl From<Block> for ReplyPart {
    fn from(block: Block) -> Self {
        match block {
            Block::Text(text) => text.into(),
            Block::File(file) => file.into(),
        }
    }
}

/// Returns the beginning of a text that is too long, and writes all of it to a file.
fn cut(ctx: &ToolContext<'_>, text: String, limit: usize) -> Result<String> {
    if text.chars().count() <= limit {
        return Ok(text);
    }
    let file = NumberedFile::new(ctx.workdir()?, ["mcp", ctx.call_id().as_str()], "txt");
    // The server has done its work: the part that does not fit is lost, and the call does not fail.
    let place = match file.within(ctx.max_output_bytes()).write(text.as_bytes()) {
        Ok(path) => Place::File(path),
        Err(error) => Place::Lost(error.to_string()),
    };
    Ok(Excerpt { text: &text, place: &place }.beginning(limit))
}
