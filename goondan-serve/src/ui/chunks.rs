//! The chunks of AI SDK UI.

use axum::body::Bytes;
use goondan_core::{EventId, FinishReason, ModelFinish, ToolOutput, Wait};
use goondan_wire::TurnEnd;
use serde_json::{Value, json};

use crate::calls::Ended;
use crate::front_end::{FrontEnd, Kind, Streamed, Told};
use crate::sse::Event;

/// A page, which is told of one message.
pub(super) struct Page {
    /// The id of the message of the page. After an approval the turn goes on with the same one.
    pub(super) message: EventId,
}

impl FrontEnd for Page {
    const KEEPS_ARGUMENTS: bool = false;

    fn tell(&mut self, told: Told<'_>, chunks: &mut Vec<Value>) {
        match told {
            Told::Started => chunks.push(json!({ "type": "start", "messageId": self.message })),
            Told::StepStarted(_) => chunks.push(json!({ "type": "start-step" })),
            Told::StepEnded => chunks.push(json!({ "type": "finish-step" })),
            Told::PartStarted(part) => chunks.extend(part_chunk(part, "start")),
            Told::PartEnded(part) => chunks.extend(part_chunk(part, "end")),
            Told::Piece(part, piece) => chunks.push(match part_chunk(part, "delta") {
                Some(mut chunk) => {
                    chunk["delta"] = piece.into();
                    chunk
                }
                // A page counts a call without a known result as unfinished, and a call may be held: it is told
                // when it runs.
                None => passing("arguments", &json!({ "part": part.id, "toolName": tool_of(part), "json": piece })),
            }),
            Told::File(file) => {
                chunks.push(json!({ "type": "file", "url": file.url, "mediaType": file.media_type }));
            }
            Told::Restarted(reason) => chunks.push(passing("restart", &json!({ "reason": reason }))),
            Told::Called { id, tool, input } => chunks.push(json!({
                "type": "tool-input-available", "toolCallId": id, "toolName": tool, "input": input, "dynamic": true,
            })),
            Told::Result { result, ended, .. } => {
                let id = &result.tool_call_id;
                chunks.push(match ended {
                    Ended::Well => {
                        let output = match &result.output {
                            ToolOutput::Json(value) => value.clone(),
                            other => Value::String(other.to_text().into_owned()),
                        };
                        json!({ "type": "tool-output-available", "toolCallId": id, "output": output, "dynamic": true })
                    }
                    Ended::Denied => json!({ "type": "tool-output-denied", "toolCallId": id }),
                    Ended::Badly => {
                        let text = result.output.to_text();
                        json!({ "type": "tool-output-error", "toolCallId": id, "errorText": text, "dynamic": true })
                    }
                });
            }
            Told::Asked(wait) => ask(wait, chunks),
            Told::Passing(name, value) => chunks.push(passing(name, &value)),
            Told::Ended { end, model } => finish(end, model, chunks),
            Told::Failed { message, code } => {
                chunks.push(json!({ "type": "error", "errorText": format!("{message} ({code})") }));
            }
        }
    }

    fn last(&self) -> Option<Bytes> {
        Some(Event::new("[DONE]").bytes())
    }
}

fn part_chunk(part: &Streamed, event: &str) -> Option<Value> {
    let kind = match part.kind {
        Kind::Text => "text",
        Kind::Reasoning => "reasoning",
        Kind::Call { .. } => return None,
    };
    Some(json!({ "type": format!("{kind}-{event}"), "id": part.id }))
}

fn tool_of(part: &Streamed) -> Option<&str> {
    match &part.kind {
        Kind::Call { tool, .. } => Some(tool),
        _ => None,
    }
}

/// Returns a chunk that pages do not keep.
fn passing(name: &str, data: &Value) -> Value {
    json!({ "type": format!("data-{name}"), "data": data, "transient": true })
}

fn ask(wait: &Wait, chunks: &mut Vec<Value>) {
    chunks.push(json!({ "type": "tool-approval-request", "approvalId": wait.call, "toolCallId": wait.call }));
    let questions: Vec<_> = wait.questions.iter().map(|asked| asked.question.text.as_str()).collect();
    let data = json!({ "toolCallId": wait.call, "questions": questions, "presentation": wait.presentation });
    chunks.push(json!({ "type": "data-question", "id": wait.call, "data": data }));
}

fn finish(end: &TurnEnd, model: Option<ModelFinish>, chunks: &mut Vec<Value>) {
    let is_failure = end.finish_reason == FinishReason::Error && end.response.is_none();
    if let Some(error) = end.error.as_ref().filter(|_| is_failure) {
        chunks.push(json!({ "type": "error", "errorText": format!("{} ({})", error.message, error.code) }));
    }
    let reason = match (end.finish_reason, model) {
        (FinishReason::Error, _) => "error",
        (FinishReason::Length, _) => "length",
        (FinishReason::Suspended, _) => "tool-calls",
        (_, Some(ModelFinish::ContentFilter)) => "content-filter",
        (FinishReason::TextResponse, _) => "stop",
        _ => "other",
    };
    chunks.push(json!({ "type": "finish", "finishReason": reason }));
}
