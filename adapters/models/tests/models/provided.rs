//! Tools that providers define and programs run.

use goondan_core::{Part, ProviderTool, ToolItem};
use goondan_models::wire::{Anthropic, Chat, Dialect, Responses, Wire};
use goondan_models::{Provider, providers};
use goondan_runtime::ModelResponse;
use serde_json::{Value, json};

use crate::support::{Asked, Played, Sent, config, told};

fn bash() -> ToolItem {
    let item = ToolItem::new("terminal__run").unwrap().describe("Runs a command.");
    item.provider_tool(ProviderTool::anthropic("bash_20250124", "bash")).provider_tool(ProviderTool::openai("shell"))
}

fn memory() -> ToolItem {
    let memory = ProviderTool::anthropic("memory_20250818", "memory").member("cache_control", json!({ "x": 1 }));
    ToolItem::new("notes__file").unwrap().provider_tool(memory)
}

fn patch() -> ToolItem {
    ToolItem::new("files__patch").unwrap().provider_tool(ProviderTool::openai("apply_patch"))
}

fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Asks for an answer that arrives as `events`, and asks again with `messages` made of it. Returns both requests, the
/// answer, and what watchers were told.
async fn twice<W: Wire + Clone>(
    provider: &Provider,
    wire: W,
    asked: &Asked,
    events: &[Value],
    output: Value,
) -> (Vec<Value>, ModelResponse, Vec<String>) {
    let sent = Sent::to([Played::events(&stream(events))]);
    let model = config("http://127.0.0.1:9").model(provider, wire).unwrap().with_transport(sent.clone());
    let (answer, told) = told(&model, asked).await;
    let answer = answer.unwrap();
    let mut messages = asked.messages.clone();
    let content = serde_json::to_value(&answer.content).unwrap();
    let mut more = vec![json!({ "role": "assistant", "content": content })];
    for part in &answer.content {
        if let Part::ToolCall(call) = part {
            let (id, name) = (&call.tool_call_id, &call.tool_name);
            let part = json!({ "type": "tool-result", "toolCallId": id, "toolName": name, "output": output });
            more.push(json!({ "role": "tool", "content": [part] }));
        }
    }
    messages.as_array_mut().unwrap().extend(more);
    let again = Asked { messages, ..asked.clone() };
    again.of(&model, goondan_runtime::DeltaSink::none()).await.unwrap();
    (sent.bodies(), answer, told)
}

fn anthropic_call(name: &str, arguments: &str) -> Vec<Value> {
    vec![
        json!({ "type": "message_start", "message": {} }),
        json!({ "type": "content_block_start", "index": 0,
            "content_block": { "type": "tool_use", "id": "toolu_1", "name": name, "input": {} } }),
        json!({ "type": "content_block_delta", "index": 0,
            "delta": { "type": "input_json_delta", "partial_json": arguments } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ]
}

#[tokio::test]
async fn a_call_of_a_tool_of_anthropic_is_one_of_the_tool_that_is_it() {
    let options = json!({ "cache": "off", "toolChoice": { "tool": "terminal__run" } });
    let asked = Asked { tools: vec![bash(), memory(), patch()], ..Asked::default() }.options(options);
    let events = anthropic_call("bash", "{\"command\":\"ls\"}");
    let output = json!({ "type": "text", "value": "a.txt" });
    let (bodies, answer, told) = twice(&providers::ANTHROPIC, Anthropic, &asked, &events, output).await;
    let expected = json!([
        { "type": "bash_20250124", "name": "bash" },
        { "type": "memory_20250818", "name": "memory", "cache_control": { "x": 1 } },
        { "name": "files__patch", "input_schema": { "type": "object" } },
    ]);
    assert_eq!(bodies[0]["tools"], expected);
    assert_eq!(bodies[0]["tool_choice"], json!({ "type": "tool", "name": "bash" }));
    assert_eq!(told[0], "0 call toolu_1 terminal__run");
    let Part::ToolCall(call) = &answer.content[0] else { panic!("{answer:?}") };
    assert_eq!((&*call.tool_name, &call.input), ("terminal__run", &json!({ "command": "ls" })));
    let back = json!([{ "type": "tool_use", "id": "toolu_1", "name": "bash", "input": { "command": "ls" } }]);
    assert_eq!(bodies[1]["messages"][1]["content"], back);

    // Where the tool is gone, or is a function now, its call has the name that the model gave it.
    let mut messages = asked.messages.clone();
    let content = serde_json::to_value(&answer.content).unwrap();
    messages.as_array_mut().unwrap().push(json!({ "role": "assistant", "content": content }));
    let result = json!({ "type": "tool-result", "toolCallId": "toolu_1", "toolName": "terminal__run",
        "output": { "type": "text", "value": "" } });
    messages.as_array_mut().unwrap().push(json!({ "role": "tool", "content": [result] }));
    let sent = Sent::to([Played::events(&stream(&events))]);
    let model = config("http://127.0.0.1:9").model(&providers::ANTHROPIC, Anthropic).unwrap();
    let model = model.with_transport(sent.clone());
    Asked::messages(messages).of(&model, goondan_runtime::DeltaSink::none()).await.unwrap();
    assert_eq!(sent.bodies()[0]["messages"][1]["content"][0]["name"], "bash");
}

#[tokio::test]
async fn of_two_tools_with_one_name_at_the_provider_the_first_is_it() {
    let other = ToolItem::new("other__run").unwrap().provider_tool(ProviderTool::anthropic("bash_20250124", "bash"));
    let asked = Asked { tools: vec![bash(), other], ..Asked::default() }.options(json!({ "cache": "off" }));
    let events = anthropic_call("other__run", "{}");
    let output = json!({ "type": "text", "value": "" });
    let (bodies, answer, _) = twice(&providers::ANTHROPIC, Anthropic, &asked, &events, output).await;
    let expected = json!([
        { "type": "bash_20250124", "name": "bash" },
        { "name": "other__run", "input_schema": { "type": "object" } },
    ]);
    assert_eq!(bodies[0]["tools"], expected);
    assert!(matches!(&answer.content[0], Part::ToolCall(call) if call.tool_name == "other__run"), "{answer:?}");
}

#[tokio::test]
async fn other_interfaces_are_offered_a_function() {
    let asked = Asked { tools: vec![bash()], ..Asked::default() };
    let events = [
        json!({ "choices": [{ "delta": { "content": "hi" }, "finish_reason": "stop" }] }),
        json!({ "choices": [], "usage": {} }),
    ];
    let provider = providers::chat(&Dialect::OPENROUTER);
    let (bodies, ..) = twice(&provider, Chat::new(Dialect::OPENROUTER), &asked, &events, Value::Null).await;
    assert_eq!(bodies[0]["tools"][0]["function"]["name"], "terminal__run");
}

fn openai_item(item: &Value) -> Vec<Value> {
    let mut added = item.clone();
    added["status"] = "in_progress".into();
    vec![
        json!({ "type": "response.created", "response": {} }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": added }),
        json!({ "type": "response.apply_patch_call_operation_diff.delta", "output_index": 0, "delta": "+b" }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "output": [item] } }),
    ]
}

#[tokio::test]
async fn a_patch_of_openai_is_a_call_whose_output_says_whether_it_failed() {
    let operation = json!({ "type": "update_file", "path": "a.txt", "diff": "@@\n-a\n+b\n" });
    let item = json!({ "type": "apply_patch_call", "id": "apc_1", "call_id": "call_1", "status": "completed",
        "operation": operation });
    let asked = Asked { tools: vec![patch()], ..Asked::default() };
    let output = json!({ "type": "text", "value": "done" });
    let (bodies, answer, told) = twice(&providers::OPENAI, Responses, &asked, &openai_item(&item), output).await;
    assert_eq!(bodies[0]["tools"], json!([{ "type": "apply_patch" }]));
    assert_eq!(told, ["0 call call_1 files__patch"]);
    let Part::ToolCall(call) = &answer.content[0] else { panic!("{answer:?}") };
    assert_eq!((&*call.tool_name, &call.input), ("files__patch", &operation));
    assert_eq!(bodies[1]["input"][1], item);
    let output = json!({ "type": "apply_patch_call_output", "call_id": "call_1", "status": "completed",
        "output": "done" });
    assert_eq!(bodies[1]["input"][2], output);
}

#[tokio::test]
async fn a_shell_of_openai_gets_the_outputs_of_its_commands() {
    let action = json!({ "commands": ["ls"], "timeout_ms": 1000, "max_output_length": 4096 });
    let item = json!({ "type": "shell_call", "id": "sh_1", "call_id": "call_1", "status": "completed",
        "action": action });
    let commands = json!([{ "stdout": "a", "stderr": "", "outcome": { "type": "exit", "exit_code": 0 } }]);
    let asked =
        Asked { tools: vec![bash()], ..Asked::default() }.options(json!({ "toolChoice": { "tool": "terminal__run" } }));
    for (output, expected) in [
        (json!({ "type": "json", "value": commands }), commands.clone()),
        (json!({ "type": "text", "value": "a" }), commands),
    ] {
        let (bodies, ..) = twice(&providers::OPENAI, Responses, &asked, &openai_item(&item), output).await;
        assert_eq!(bodies[0]["tools"], json!([{ "type": "shell" }]));
        assert_eq!(bodies[0]["tool_choice"], json!({ "type": "shell" }));
        assert_eq!(bodies[1]["input"][1], item);
        let output = json!({ "type": "shell_call_output", "call_id": "call_1", "max_output_length": 4096,
            "output": expected });
        assert_eq!(bodies[1]["input"][2], output);
    }
}

#[tokio::test]
async fn a_call_of_a_tool_of_openai_that_no_tool_is_stays_a_block() {
    let item = json!({ "type": "shell_call", "id": "sh_1", "call_id": "call_1", "status": "completed",
        "action": { "commands": ["ls"] } });
    let asked = Asked { tools: vec![patch()], ..Asked::default() };
    let (bodies, answer, _) = twice(&providers::OPENAI, Responses, &asked, &openai_item(&item), Value::Null).await;
    assert!(matches!(&answer.content[..], [Part::Provider(_)]), "{answer:?}");
    assert_eq!(bodies[1]["input"].as_array().unwrap().len(), 1, "{}", bodies[1]);
}
