//! F-TOOL: the ids of tool calls, which models choose.

use std::collections::BTreeSet;

use conformance_extensions::tools::Running;
use goondan::conversation::Part;
use goondan::json;
use goondan::middleware::{ToolCallStatus, ToolRequest};
use goondan::model::{ModelResponse, ScriptItem};
use goondan::testing::Chat;
use goondan_covers::both_linkages;

use crate::linkage::Extended;
use crate::support::Log;

fn calls(tool: &str, ids: &[&str]) -> ScriptItem {
    let calls = ids.iter().map(|id| ToolRequest::new((*id).into(), tool, json!({})));
    ScriptItem::raw(ModelResponse::tool_calls(calls))
}

/// The ids of the calls, or of the results, that the newest request had.
fn ids(chat: &Chat, of: fn(&Part) -> Option<&str>) -> Vec<String> {
    let messages = chat.last_request().messages;
    messages.iter().flat_map(|message| message.content.parts()).filter_map(of).map(str::to_owned).collect()
}

#[both_linkages]
async fn every_call_has_an_id_of_its_own_and_its_result() {
    // Both tools run: one at a time, and concurrently.
    for tool in ["running__change", "running__complain"] {
        let log = Log::new();
        let script = [
            calls(tool, &["", "x", "x", "", " ", "y"]),
            ScriptItem::say("done"),
            calls(tool, &["x"]),
            ScriptItem::say("done"),
        ];
        let chat = Chat::builder().script(script).agent(|agent| agent.with::<Running>(log.config()));
        let chat = chat.start().await.unwrap();
        let turn = chat.say("hello").await.unwrap();
        assert_eq!(turn.tool_calls().len(), 6);
        assert!(
            turn.tool_calls().iter().all(|call| call.status != ToolCallStatus::Error || tool.ends_with("complain"))
        );
        chat.say("again").await.unwrap();

        let asked = ids(&chat, |part| match part {
            Part::ToolCall(call) => Some(call.tool_call_id.as_str()),
            _ => None,
        });
        let answered = ids(&chat, |part| match part {
            Part::ToolResult(result) => Some(result.tool_call_id.as_str()),
            _ => None,
        });
        assert_eq!(asked, answered, "D-12: one result for each call, in the order of the calls");
        assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), 7, "{asked:?}");
        assert_eq!((asked[1].as_str(), asked[5].as_str()), ("x", "y"), "an id that is fine stays");
        assert!(asked.iter().all(|id| !id.trim().is_empty()), "{asked:?}");
        assert!(!chat.logs().iter().any(|line| line.text.contains("kept from the model")));
    }
}
