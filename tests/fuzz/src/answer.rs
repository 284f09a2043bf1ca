//! Target `answer`: any answers of a model, and with them any tool name and any arguments.

use std::collections::HashMap;

use goondan::conversation::Part;
use goondan::model::{ModelResponse, ScriptItem, ScriptedModel};
use goondan::prelude::*;
use goondan::{Agent, Value};

use crate::block_on;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Note {
    text: String,
    #[serde(default)]
    tags: Vec<String>,
    priority: Option<u8>,
    #[serde(default)]
    then: Option<Box<Note>>,
}

#[derive(Debug)]
struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Notes something.
    #[tool(name = "notes__add", effect = read)]
    async fn add(&self, input: Note) -> Result<usize> {
        let rest = input.then.map_or(0, |note| note.text.len());
        Ok(input.text.len() + input.tags.len() + usize::from(input.priority.unwrap_or(0)) + rest)
    }

    /// Returns its arguments.
    #[tool(name = "notes__echo")]
    async fn echo(&self, input: Value) -> Result<Value> {
        Ok(input)
    }
}

/// Runs a turn whose model answers with the lines of `data`, at most eight. A line is a response in JSON, or else plain
/// text. The turn ends, and every call in the conversation has exactly one result.
pub fn answer(data: &[u8]) {
    let answers = data.split(|byte| *byte == b'\n').take(8).map(|line| {
        let response = serde_json::from_slice(line);
        ScriptItem::raw(response.unwrap_or_else(|_| ModelResponse::text(String::from_utf8_lossy(line))))
    });
    block_on(async {
        let agent = Agent::builder("bot").extension::<Notes>(goondan::json!({})).model(ScriptedModel::new(answers));
        let agent = agent.build().expect("an agent");
        let instance = agent.instance("fuzz").await.expect("an instance");
        // The script may end before the turn does.
        _ = instance.run("hello").await;
        let mut open: HashMap<String, usize> = HashMap::new();
        for message in instance.messages().await.expect("an open instance has messages") {
            for part in message.content().parts() {
                match part {
                    Part::ToolCall(call) => *open.entry(call.tool_call_id.to_string()).or_default() += 1,
                    Part::ToolResult(result) => {
                        let calls = open.get_mut(result.tool_call_id.as_str());
                        let calls = calls.filter(|calls| **calls > 0).expect("a result comes after its call");
                        *calls -= 1;
                    }
                    _ => {}
                }
            }
        }
        assert!(open.values().all(|calls| *calls == 0), "calls without result: {open:?}");
        instance.close().await.expect("an instance closes");
    });
}
