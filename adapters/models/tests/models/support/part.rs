//! Parts of messages as JSON, with one tool.

use goondan_core::ToolItem;
use serde_json::{Value, json};

const TOOL: &str = "weather__today";

pub(crate) fn weather() -> ToolItem {
    ToolItem::new(TOOL).unwrap().describe("Tells the weather.").parameters(json!({ "properties": {} }))
}

/// A call of the tool. `provider` is the data of the provider that made it.
pub(crate) fn call(id: &str, input: Value, provider: Option<Value>) -> Value {
    let mut part = json!({ "type": "tool-call", "toolCallId": id, "toolName": TOOL, "input": input });
    if let Some(provider) = provider {
        part["provider"] = provider;
    }
    part
}

/// A message with the result of a call.
pub(crate) fn result(id: &str, output: Value) -> Value {
    let part = json!({ "type": "tool-result", "toolCallId": id, "toolName": TOOL, "output": output });
    json!({ "role": "tool", "content": [part] })
}

/// The output of a tool that is a text.
pub(crate) fn text(text: &str) -> Value {
    json!({ "type": "text", "value": text })
}

/// The data of a provider.
pub(crate) fn data(api: &str, model: &str, rest: Value) -> Value {
    json!({ "api": api, "model": model, "rest": rest })
}
