//! Answers of five interfaces with signed reasoning, a text and calls, and what requests to them carry.

use serde_json::{Value, json};

use super::Api;

/// The tool that all answers call.
const TOOL: &str = "switch__act";

/// An answer. What only its own provider and model may read again has its mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// Its number in the conversation, from which its texts, its mark and its ids are made.
    pub(super) number: usize,
    pub(super) reasons: bool,
    pub(super) calls: bool,
}

impl Said {
    pub(super) fn mark(&self) -> String {
        format!("mark-of-{}", self.number)
    }

    pub(super) fn text(&self) -> String {
        format!("This is answer {}.", self.number)
    }

    /// Returns whether the answer over `api` has something that only its own model may read again.
    pub(super) fn marked(&self, api: Api) -> bool {
        self.reasons || !api.has_budget()
    }

    fn thought(&self) -> String {
        format!("A thought with the {}.", self.mark())
    }

    /// Returns the ids of the calls, as the interface forms them.
    fn ids(&self, api: Api) -> Vec<String> {
        let id = |place: usize| match api {
            Api::Anthropic => format!("toolu_{}{place}", self.number),
            Api::Converse => format!("tooluse_{}{place}", self.number),
            Api::Responses => format!("call_{}{place}", self.number),
            // Without ids.
            Api::Gemini => String::new(),
            // As a popular open model does, with characters that others refuse.
            Api::Chat => format!("functions.{TOOL}:{place}"),
        };
        (0..if self.calls { 2 } else { 0 }).map(id).collect()
    }

    /// Returns the stream of the answer.
    pub(super) fn stream(&self, api: Api) -> String {
        let events = match api {
            Api::Anthropic => self.anthropic(),
            Api::Converse => self.converse(),
            Api::Responses => self.responses(),
            Api::Gemini => self.gemini(),
            Api::Chat => self.chat(),
        };
        events.iter().map(|event| format!("data: {event}\n\n")).collect()
    }

    fn anthropic(&self) -> Vec<Value> {
        let thinking = json!({ "type": "thinking", "thinking": self.thought(), "signature": self.mark() });
        let mut blocks = if self.reasons { vec![thinking] } else { vec![] };
        blocks.push(json!({ "type": "text", "text": self.text() }));
        let call = |id| json!({ "type": "tool_use", "id": id, "name": TOOL, "input": {} });
        blocks.extend(self.ids(Api::Anthropic).into_iter().map(call));
        let kind = "content_block_start";
        let start = |(index, block): (usize, Value)| json!({ "type": kind, "index": index, "content_block": block });
        let begin = json!({ "type": "message_start", "message": {} });
        let end = json!({ "type": "message_stop" });
        [begin].into_iter().chain(blocks.into_iter().enumerate().map(start)).chain([end]).collect()
    }

    fn converse(&self) -> Vec<Value> {
        let piece =
            |index: usize, delta: Value| json!({ "contentBlockDelta": { "contentBlockIndex": index, "delta": delta } });
        let mut events = Vec::new();
        if self.reasons {
            events.push(piece(0, json!({ "reasoningContent": { "text": self.thought() } })));
            events.push(piece(0, json!({ "reasoningContent": { "signature": self.mark() } })));
        }
        events.push(piece(1, json!({ "text": self.text() })));
        for (index, id) in self.ids(Api::Converse).into_iter().enumerate() {
            let start = json!({ "toolUse": { "toolUseId": id, "name": TOOL } });
            events.push(json!({ "contentBlockStart": { "contentBlockIndex": index + 2, "start": start } }));
        }
        let reason = if self.calls { "tool_use" } else { "end_turn" };
        events.push(json!({ "messageStop": { "stopReason": reason } }));
        events.push(json!({ "metadata": { "usage": {} } }));
        events
    }

    fn responses(&self) -> Vec<Value> {
        let mark = self.mark();
        let mut items = vec![json!({
            "type": "message", "id": format!("msg_{mark}"), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": self.text(), "annotations": [] }],
        })];
        if self.reasons {
            let summary = json!([{ "type": "summary_text", "text": self.thought() }]);
            let id = format!("rs_{mark}");
            items.insert(0, json!({ "type": "reasoning", "id": id, "encrypted_content": mark, "summary": summary }));
        }
        let call = |id: String| {
            json!({ "type": "function_call", "id": format!("fc_{mark}_{id}"), "call_id": id, "name": TOOL,
                    "arguments": "{}", "status": "completed" })
        };
        items.extend(self.ids(Api::Responses).into_iter().map(call));
        let kind = "response.output_item.done";
        let done = |(index, item): (usize, &Value)| json!({ "type": kind, "output_index": index, "item": item });
        let mut events: Vec<_> = items.iter().enumerate().map(done).collect();
        let response = json!({ "id": "resp", "status": "completed", "output": items });
        events.push(json!({ "type": "response.completed", "response": response }));
        events
    }

    fn gemini(&self) -> Vec<Value> {
        let mut parts = vec![json!({ "text": self.text() })];
        if self.reasons {
            parts.insert(0, json!({ "text": self.thought(), "thought": true }));
        }
        parts
            .extend(self.ids(Api::Gemini).into_iter().map(|_| json!({ "functionCall": { "name": TOOL, "args": {} } })));
        // The first call carries the signature, or else the text.
        let signed = parts.iter().position(|part| part.get("functionCall").is_some()).unwrap_or(parts.len() - 1);
        parts[signed]["thoughtSignature"] = self.mark().into();
        let content = json!({ "role": "model", "parts": parts });
        vec![json!({ "candidates": [{ "content": content, "finishReason": "STOP", "index": 0 }] })]
    }

    fn chat(&self) -> Vec<Value> {
        let mut delta = json!({ "role": "assistant", "content": self.text() });
        if self.reasons {
            delta["reasoning_details"] =
                json!([{ "type": "reasoning.text", "text": self.thought(), "signature": self.mark(), "index": 0 }]);
        }
        let call = |(index, id): (usize, String)| {
            let function = json!({ "name": TOOL, "arguments": "{}" });
            json!({ "index": index, "id": id, "type": "function", "function": function })
        };
        let calls: Vec<_> = self.ids(Api::Chat).into_iter().enumerate().map(call).collect();
        let end = if self.calls { "tool_calls" } else { "stop" };
        delta["tool_calls"] = calls.into();
        vec![json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": end }] })]
    }
}

/// A call in a request, or the result of one, with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) is_result: bool,
    pub(super) id: Option<String>,
}

/// Returns the calls and results in a request, in their order.
pub(super) fn exchanges(api: Api, body: &Value) -> Vec<Exchange> {
    let (list, inner) = match api {
        Api::Anthropic | Api::Converse => ("messages", "content"),
        Api::Responses => ("input", ""),
        Api::Gemini => ("contents", "parts"),
        Api::Chat => ("messages", "tool_calls"),
    };
    let exchange = |part: &Value| {
        let (is_result, id) = match part["type"].as_str() {
            Some("tool_use" | "function") => (false, &part["id"]),
            Some("tool_result") => (true, &part["tool_use_id"]),
            Some("function_call") => (false, &part["call_id"]),
            Some("function_call_output") => (true, &part["call_id"]),
            _ if part["role"] == "tool" => (true, &part["tool_call_id"]),
            _ if part["toolUse"].is_object() => (false, &part["toolUse"]["toolUseId"]),
            _ if part["toolResult"].is_object() => (true, &part["toolResult"]["toolUseId"]),
            _ if part["functionCall"].is_object() => (false, &part["functionCall"]["id"]),
            _ if part["functionResponse"].is_object() => (true, &part["functionResponse"]["id"]),
            _ => return None,
        };
        Some(Exchange { is_result, id: id.as_str().map(str::to_owned) })
    };
    let entries = body[list].as_array().unwrap().iter();
    let parts = entries.flat_map(|entry| std::iter::once(entry).chain(entry[inner].as_array().into_iter().flatten()));
    parts.filter_map(exchange).collect()
}
