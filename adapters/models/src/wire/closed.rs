//! Tools that OpenAI is sent and that the model may not call.
//!
//! The choice of tools may be a list: `{"type": "allowed_tools", "mode": "auto", "tools": […]}`. Tools that are not
//! in the list are closed. OpenAI's cache then keeps the part after the tools, whichever are closed. Other services
//! that speak the same interfaces need not know that choice, so it is sent to OpenAI's own host alone.
// CACHE-01

use goondan_core::ModelOptions;
use serde_json::{Map, Value};

/// OpenAI's own host.
const HOST: &str = "api.openai.com";

/// The most tools that OpenAI takes.
const MOST_TOOLS: usize = 128;

/// Whether OpenAI can be told, in a request to `host` with these options and this number of tools, that some of them
/// are closed. `entry` returns how the list names a tool of `options.provider`, if it can.
pub(super) fn closes_tools(
    host: &str,
    tools: usize,
    options: &ModelOptions,
    entry: impl Fn(&Map<String, Value>) -> Option<Value>,
) -> bool {
    host == HOST
        && !options.provider.contains_key("tool_choice")
        && of_provider(options, entry).is_some_and(|of_provider| of_provider.len() + tools <= MOST_TOOLS)
}

/// Returns how the list names the tools of `options.provider`, unless it cannot name one of them.
pub(super) fn of_provider(
    options: &ModelOptions,
    entry: impl Fn(&Map<String, Value>) -> Option<Value>,
) -> Option<Vec<Value>> {
    let tools = options.provider.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    tools.iter().map(|tool| entry(tool.as_object()?)).collect()
}
