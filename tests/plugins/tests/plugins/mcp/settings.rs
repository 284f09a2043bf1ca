//! The config: what is refused, and what the server gets of it.

use std::fs;

use goondan::testing::Chat;
use goondan::{ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};

use super::support::{Odd, call, chat, logs, tools};
use crate::linkage::{self, WithPlugin};

async fn refusal(config: Value) -> String {
    let error = Chat::builder().agent(|agent| agent.plugin("odd", "mcp", config)).start().await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::EXT_CONFIG, "{}", error.report());
    error.report().to_string()
}

#[both_linkages]
#[covers("PATTERN-MCP-06", "PATTERN-MCP-07", "PATTERN-MCP-08")]
async fn a_transport_that_makes_no_sense_is_refused() {
    for (transport, about) in [
        (json!({ "type": "pigeon", "command": ["x"] }), "transport"),
        (json!({ "command": ["x"] }), "transport"),
        (json!({ "type": "stdio" }), "transport"),
        (json!({ "type": "stdio", "command": [] }), "transport"),
        (json!({ "type": "stdio", "command": ["x"], "endpoint": "http://127.0.0.1" }), "transport"),
        (json!({ "type": "http" }), "transport"),
        (json!({ "type": "http", "headers": {} }), "transport"),
    ] {
        let report = refusal(json!({ "transport": transport })).await;
        assert!(report.contains(about), "{transport}: {report}");
    }
}

#[both_linkages]
#[covers("PATTERN-MCP-13")]
async fn without_a_config_the_extension_warns_and_registers_nothing() {
    let chat = chat(json!({})).await;
    assert_eq!(tools(&chat).await, [""; 0]);
    assert!(logs(&chat)[0].contains("no MCP server is configured"), "{:?}", logs(&chat));
    chat.say("hello").await.unwrap();
    assert_eq!(chat.last_request().transcript(), ["user: hello"]);
    assert!(refusal(json!({ "required": false })).await.contains("the config has no `transport`"));
}

#[both_linkages]
#[covers("PATTERN-MCP-13")]
async fn a_connection_is_opened_before_the_first_turn_and_at_no_other_time() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    assert_eq!(odd.starts(), 1);
    call(&mut chat, "pid", json!({})).await;
    assert_eq!(odd.starts(), 1);
}

#[both_linkages]
#[covers("PATTERN-MCP-07")]
async fn the_server_gets_its_variables_and_those_of_the_program_and_a_directory() {
    let odd = Odd::new();
    let mut config = odd.config(&[]);
    config["transport"]["env"] = json!({ "ODD_GREETING": "hello" });
    let below = odd.path("below");
    fs::create_dir(&below).unwrap();
    config["transport"]["cwd"] = json!("below");
    let root = odd.path("");
    let builder = Chat::builder().agent(|agent| agent.bundle_root(&root).plugin("odd", "mcp", config));
    let mut chat = builder.start().await.unwrap();
    assert_eq!(call(&mut chat, "env", json!({ "name": "ODD_GREETING" })).await, "hello");
    assert_eq!(call(&mut chat, "env", json!({ "name": "PATH" })).await, std::env::var("PATH").unwrap());
    assert_eq!(call(&mut chat, "directory", json!({})).await, below.canonicalize().unwrap().display().to_string());
}

#[both_linkages]
#[covers("PATTERN-MCP-14")]
async fn a_bundle_reads_variables_of_the_server_from_the_environment() {
    let odd = Odd::new();
    let transport = odd.transport(&[]);
    let script = "- call: { tool: odd__env, args: { name: ODD_COPY } }\n- say: done\n";
    fs::write(odd.path("script.yaml"), script).unwrap();
    let entry = linkage::entry("mcp", &odd.path(""));
    let bundle = format!(
        r#"
apiVersion: goondan.ai/v1
kind: Model
metadata: {{ name: main }}
spec: {{ provider: scripted, script: ./script.yaml }}
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: odd }}
spec:
  entry: "{entry}"
  config:
    transport:
      type: stdio
      command: {command}
      env: {{ ODD_COPY: {{ valueFrom: {{ env: PATH }} }} }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: one }}
spec: {{ model: Model/main, extensions: [{{ ref: Extension/odd }}] }}
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: {{ name: all }}
spec: {{ agents: [{{ ref: Agent/one }}], entryAgent: Agent/one }}
"#,
        command = transport["command"],
    );
    fs::write(odd.path("goondan.yaml"), bundle).unwrap();
    let agents = linkage::build(&odd.path("")).await;
    let instance = agents.get("one").unwrap().instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let messages = instance.messages().await.unwrap();
    let texts: Vec<_> = messages.iter().map(|message| format!("{:?}", message.content())).collect();
    let path = std::env::var("PATH").unwrap();
    assert!(texts.iter().any(|text| text.contains(&path)), "{texts:?}");
}

/// Only linked, as the example says.
#[tokio::test]
async fn the_example_runs() {
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mcp");
    let agents = linkage::build(&example).await;
    let instance = agents.get("guide").unwrap().instance("test").await.unwrap();
    let answers = [("what time is it?", "looked at its clock"), ("greet me", "greeted you")];
    for (question, answer) in answers {
        let said = instance.run(question).await.unwrap();
        assert!(said.text().contains(answer), "{}", said.text());
    }
    instance.close().await.unwrap();
}
