//! What a call of a server's tool costs: by hand, with `rmcp` alone, and through the extension, linked and loaded.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use goondan::agent::AgentBuilder;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::plugin::Library;
use goondan::{Agent, Value, json};
use goondan_libraries::Build;
use mcp as _;
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResponse};

const CALLS: usize = 1000;
const SERVER: &str = env!("CARGO_BIN_EXE_odd-server");

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let library = Build::new("mcp").profile("release").run(env!("CARGO_TARGET_TMPDIR"));
    let library = Library::inspect(library).unwrap().load().unwrap();
    for _ in 0..3 {
        let hand = by_hand();
        let bare = runtime.block_on(bare());
        let linked = runtime.block_on(turns(|agent, config| agent.linked("odd", "mcp", config)));
        let loaded = |agent: AgentBuilder, config| agent.described("odd", library.extension(None).unwrap(), config);
        let loaded = runtime.block_on(turns(loaded));
        let ratio = |time: Duration| time.as_secs_f64() / bare.as_secs_f64();
        println!(
            "by hand {hand:?}, rmcp {bare:?}, linked {linked:?} ({:.2}), loaded {loaded:?} ({:.2})",
            ratio(linked),
            ratio(loaded)
        );
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn by_hand() -> Duration {
    let mut server = Command::new(SERVER).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
    let times = (0..CALLS).map(|id| {
        let start = Instant::now();
        let params = json!({ "name": "echo", "arguments": { "text": "hello" } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        input.write_all(format!("{call}\n").as_bytes()).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let answer: Value = goondan::json::from_str(&line).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "hello");
        start.elapsed()
    });
    let times = times.collect();
    drop(input);
    server.wait().unwrap();
    median(times)
}

async fn bare() -> Duration {
    let mut command = tokio::process::Command::new(SERVER);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pipes = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
    let client = ().serve(pipes).await.unwrap();
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let start = Instant::now();
        let Value::Object(arguments) = json!({ "text": "hello" }) else { continue };
        let params = CallToolRequestParams::new("echo").with_arguments(arguments);
        let answer = client.call_tool_once(params).await.unwrap();
        assert!(matches!(answer, CallToolResponse::Complete(_)));
        times.push(start.elapsed());
    }
    client.cancel().await.unwrap();
    server.wait().await.unwrap();
    median(times)
}

/// Returns the time of a turn that calls the tool: two steps.
async fn turns(add: impl FnOnce(AgentBuilder, Value) -> AgentBuilder) -> Duration {
    let script =
        (0..CALLS).flat_map(|_| [ScriptItem::call("odd__echo", json!({ "text": "hello" })), ScriptItem::say("done")]);
    let agent = Agent::builder("one").model(ScriptedModel::new(script));
    let config = json!({ "transport": { "type": "stdio", "command": [SERVER] } });
    let agent = add(agent, config).build().unwrap();
    let mut times = Vec::new();
    for key in 0..CALLS / 100 {
        // The conversations stay short.
        let instance = agent.instance(&key.to_string()).await.unwrap();
        for _ in 0..100 {
            let start = Instant::now();
            instance.run("go").await.unwrap();
            times.push(start.elapsed());
        }
        instance.close().await.unwrap();
    }
    median(times)
}
