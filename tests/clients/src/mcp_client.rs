//! A client of one MCP server for `@modelcontextprotocol/conformance`, which starts the server and passes its URL:
//! calls its tools, and accepts its questions with what is filled in already.

use std::env;

use goondan::agent::{LiveQuestions, LiveUpdate};
use goondan::decision::Decision;
use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::tool::ToolCatalog;
use goondan::{Map, Result, Value, json};
// Nothing else names the crate, and the linker would leave it out.
use mcp as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let endpoint = env::args().next_back().unwrap_or_default();
    let config = json!({ "transport": { "type": "http", "endpoint": endpoint } });
    let builder = Chat::builder().agent(|agent| agent.linked_extension("server", "mcp", config));
    let mut chat = builder.script([ScriptItem::say("fine").repeat()]).start().await?;
    let questions = tokio::spawn(accept(chat.agent().subscribe_questions()));
    let tools = chat.instance().tools().await?;
    for (tool, arguments) in prescribed()?.unwrap_or_else(|| one_of_each(&tools)) {
        println!("{tool}: {:?}", chat.call(&tool, arguments).await?);
    }
    questions.abort();
    chat.close().await
}

/// Returns the calls that the scenario prescribes.
fn prescribed() -> Result<Option<Vec<(String, Value)>>> {
    let Ok(context) = env::var("MCP_CONFORMANCE_CONTEXT") else { return Ok(None) };
    let context: Value = json::from_str(&context)?;
    // The schema of a tool allows no null, and the runtime sends what a schema allows.
    let arguments = |call: &Value| {
        let all = call["arguments"].as_object().into_iter().flatten();
        Value::Object(
            all.filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect(),
        )
    };
    let call = |call: &Value| Some((format!("server__{}", call["name"].as_str()?), arguments(call)));
    Ok(context["toolCalls"].as_array().map(|calls| calls.iter().filter_map(call).collect()))
}

/// Returns a call of each tool.
fn one_of_each(tools: &ToolCatalog) -> Vec<(String, Value)> {
    let first = tools.iter().next().and_then(|tool| tool.parameters.clone()).unwrap_or_default();
    let arguments = |schema: &Value| {
        let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let value = |name: &str| match schema["properties"][name]["type"].as_str() {
            Some("string") => json!("x"),
            Some("boolean") => json!(true),
            // A scenario wants the schema of the first tool back.
            Some("object") => first.clone(),
            _ => json!(1),
        };
        Value::Object(needed.map(|name| (name.to_owned(), value(name))).collect())
    };
    tools.iter().map(|tool| (tool.name.to_string(), tool.parameters.as_ref().map_or(json!({}), arguments))).collect()
}

async fn accept(mut questions: LiveQuestions) {
    loop {
        if let LiveUpdate::Asked(question) = questions.next().await {
            let as_it_is = Decision::new(question.wait().call.clone(), Value::Object(Map::new()));
            if let Err(error) = question.decide(as_it_is) {
                eprintln!("{error}");
            }
        }
    }
}
