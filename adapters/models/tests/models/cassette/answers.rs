//! Answers of providers, written by hand after their references: a thought and a text in two pieces.

use serde_json::{Value, json};

/// The interfaces of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Anthropic,
    Responses,
    Gemini,
    Chat,
    Converse,
}

impl Api {
    /// Returns the stream of an answer.
    pub(super) fn stream(self, thought: &str, text: [&str; 2]) -> String {
        let events = match self {
            Self::Anthropic => anthropic(thought, text),
            Self::Responses => responses(thought, text),
            Self::Gemini => gemini(thought, text),
            Self::Chat => chat(thought, text),
            Self::Converse => converse(thought, text),
        };
        let event = |event: &Value| {
            let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
            format!("{name}data: {event}\n\n")
        };
        let end = if self == Self::Chat { "data: [DONE]\n\n" } else { "" };
        events.iter().map(event).collect::<String>() + end
    }

    /// What the provider's own address has after the host.
    pub(super) fn base(self) -> &'static str {
        match self {
            Self::Anthropic | Self::Gemini | Self::Converse => "",
            Self::Responses | Self::Chat => "/v1",
        }
    }
}

fn anthropic(thought: &str, text: [&str; 2]) -> Vec<Value> {
    let block =
        |index: u32, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta = |index: u32, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stop = |index: u32| json!({ "type": "content_block_stop", "index": index });
    vec![
        json!({ "type": "message_start", "message": {
            "id": "msg_example", "type": "message", "role": "assistant", "model": "claude-example-1", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 20, "output_tokens": 1 },
        } }),
        block(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": thought })),
        delta(0, json!({ "type": "signature_delta", "signature": "ZXhhbXBsZQ==" })),
        stop(0),
        block(1, json!({ "type": "text", "text": "" })),
        delta(1, json!({ "type": "text_delta", "text": text[0] })),
        delta(1, json!({ "type": "text_delta", "text": text[1] })),
        stop(1),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null },
                "usage": { "output_tokens": 12 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn responses(thought: &str, text: [&str; 2]) -> Vec<Value> {
    let reasoning = json!({ "id": "rs_example", "type": "reasoning", "encrypted_content": "ZXhhbXBsZQ==",
                            "summary": [{ "type": "summary_text", "text": thought }] });
    let part = |text: String| json!({ "type": "output_text", "annotations": [], "text": text });
    let message = |content: Value| {
        json!({ "id": "msg_example", "type": "message", "status": "completed",
                                           "content": content, "role": "assistant" })
    };
    let whole = json!([part(text.concat())]);
    let delta = |text: &str| {
        json!({ "type": "response.output_text.delta", "item_id": "msg_example", "output_index": 1,
                "content_index": 0, "delta": text })
    };
    let response = json!({ "id": "resp_example", "object": "response", "status": "completed", "model": "gpt-example-1",
                           "output": [reasoning, message(whole.clone())],
                           "usage": { "input_tokens": 20, "output_tokens": 12, "total_tokens": 32 } });
    vec![
        json!({ "type": "response.created", "response": { "id": "resp_example", "object": "response",
                "status": "in_progress", "model": "gpt-example-1", "output": [] } }),
        json!({ "type": "response.output_item.added", "output_index": 0,
                "item": { "id": "rs_example", "type": "reasoning", "summary": [] } }),
        json!({ "type": "response.reasoning_summary_part.added", "item_id": "rs_example", "output_index": 0,
                "summary_index": 0, "part": { "type": "summary_text", "text": "" } }),
        json!({ "type": "response.reasoning_summary_text.delta", "item_id": "rs_example", "output_index": 0,
                "summary_index": 0, "delta": thought }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": reasoning }),
        json!({ "type": "response.output_item.added", "output_index": 1, "item": message(json!([])) }),
        json!({ "type": "response.content_part.added", "item_id": "msg_example", "output_index": 1,
                "content_index": 0, "part": part(String::new()) }),
        delta(text[0]),
        delta(text[1]),
        json!({ "type": "response.output_item.done", "output_index": 1, "item": message(whole) }),
        json!({ "type": "response.completed", "response": response }),
    ]
}

fn gemini(thought: &str, text: [&str; 2]) -> Vec<Value> {
    let event = |candidate: Value| {
        let (model, id) = ("gemini-example-1", "resp-example");
        json!({ "candidates": [candidate], "modelVersion": model, "responseId": id })
    };
    let content = |part: Value| json!({ "content": { "parts": [part], "role": "model" }, "index": 0 });
    let mut last = content(json!({ "text": "", "thoughtSignature": "ZXhhbXBsZQ==" }));
    last["finishReason"] = "STOP".into();
    let mut last = event(last);
    last["usageMetadata"] = json!({ "promptTokenCount": 20, "candidatesTokenCount": 12, "totalTokenCount": 32 });
    vec![
        event(content(json!({ "text": thought, "thought": true }))),
        event(content(json!({ "text": text[0] }))),
        event(content(json!({ "text": text[1] }))),
        last,
    ]
}

fn chat(thought: &str, text: [&str; 2]) -> Vec<Value> {
    let chunk = |delta: Value, end: Value| {
        json!({ "id": "chatcmpl-example", "object": "chat.completion.chunk", "created": 1_780_000_000,
                "model": "example-1", "choices": [{ "index": 0, "delta": delta, "finish_reason": end }] })
    };
    let mut usage = chunk(json!({}), Value::Null);
    usage["choices"] = json!([]);
    usage["usage"] = json!({ "prompt_tokens": 20, "completion_tokens": 12, "total_tokens": 32 });
    vec![
        chunk(json!({ "role": "assistant", "content": null, "reasoning": thought }), Value::Null),
        chunk(json!({ "content": text[0] }), Value::Null),
        chunk(json!({ "content": text[1] }), Value::Null),
        chunk(json!({}), json!("stop")),
        usage,
    ]
}

fn converse(thought: &str, text: [&str; 2]) -> Vec<Value> {
    let delta =
        |index: u32, delta: Value| json!({ "contentBlockDelta": { "contentBlockIndex": index, "delta": delta } });
    let stop = |index: u32| json!({ "contentBlockStop": { "contentBlockIndex": index } });
    vec![
        json!({ "messageStart": { "role": "assistant" } }),
        delta(0, json!({ "reasoningContent": { "text": thought } })),
        delta(0, json!({ "reasoningContent": { "signature": "ZXhhbXBsZQ==" } })),
        stop(0),
        delta(1, json!({ "text": text[0] })),
        delta(1, json!({ "text": text[1] })),
        stop(1),
        json!({ "messageStop": { "stopReason": "end_turn" } }),
        json!({ "metadata": { "usage": { "inputTokens": 20, "outputTokens": 12, "totalTokens": 32 },
                              "metrics": { "latencyMs": 400 } } }),
    ]
}
