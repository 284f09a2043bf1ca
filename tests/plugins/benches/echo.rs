//! What a call of a server's tool costs: by hand, with `rmcp` alone, with `rmcp` in a tool, and through the extension,
//! linked and loaded.
//!
//! The machine may be busy, so each round measures all of them one after the other, and only ratios within a round are
//! compared. `cargo bench -p goondan-plugin-tests -- 50` measures fifty rounds.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use goondan::agent::AgentBuilder;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::plugin::{Library, Loaded};
use goondan::prelude::*;
use goondan::{Agent, Map, Value, json};
use goondan_libraries::Build;
use mcp as _;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::{Peer, RunningService};
use rmcp::{RoleClient, ServiceExt};

/// Calls in each round.
const CALLS: usize = 200;
const SERVER: &str = env!("CARGO_BIN_EXE_odd-server");

/// How long the tool calls of the running round took.
static TOOL_CALLS: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

/// Measures tool calls, as the outermost layer.
struct Stopwatch;

#[goondan::extension(name = "stopwatch")]
impl Stopwatch {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall, priority = -10000)]
    async fn measure(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let start = Instant::now();
        let result = next.run(ctx).await;
        TOOL_CALLS.lock().unwrap().push(start.elapsed());
        result
    }
}

/// The session that [`Direct`] uses.
static SESSION: Mutex<Option<Peer<RoleClient>>> = Mutex::new(None);

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
struct Hello {
    text: String,
}

/// Calls the server with `rmcp` alone: what a call costs in a turn, in which the server waits longer for the next one.
struct Direct;

#[goondan::extension(name = "direct")]
impl Direct {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Calls the tool of the server.
    #[tool]
    async fn echo(&self, input: Hello) -> Result<String> {
        let session = SESSION.lock().unwrap().clone().unwrap();
        let answer = session.call_tool_once(hello()).await.unwrap();
        assert!(matches!(answer, CallToolResponse::Complete(_)));
        Ok(input.text)
    }
}

/// Medians of one round. The turn has two steps, one of which calls the tool.
struct Round {
    hand: Duration,
    rmcp: Duration,
    direct: Cost,
    linked: Cost,
    loaded: Cost,
}

struct Cost {
    call: Duration,
    turn: Duration,
}

fn main() {
    let rounds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(20);
    let library = Build::ready_made("mcp").profile("release").run(env!("CARGO_TARGET_TMPDIR"));
    let library = Library::inspect(library).unwrap().load().unwrap();
    // As in the command.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    print("one thread, as in the command", &runtime, &library, rounds);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    print("two threads", &runtime, &library, rounds);
}

fn print(title: &str, runtime: &tokio::runtime::Runtime, library: &Loaded, rounds: usize) {
    let mut measured = Vec::new();
    for _ in 0..rounds {
        measured.push(Round {
            hand: by_hand(),
            rmcp: runtime.block_on(bare()),
            direct: runtime.block_on(direct()),
            linked: runtime
                .block_on(conversations("odd__echo", |agent, config| agent.linked_extension("odd", "mcp", config))),
            loaded: runtime.block_on(conversations("odd__echo", |agent, config| {
                agent.described_extension("odd", library.extension(None).unwrap(), config)
            })),
        });
    }
    println!("{title}, {rounds} rounds of {CALLS} calls: median, and compared with `rmcp` median and least");
    let row = |name: &str, time: fn(&Round) -> Duration| {
        let median = median(measured.iter().map(time).collect());
        let mut ratios: Vec<_> =
            measured.iter().map(|round| time(round).as_secs_f64() / round.rmcp.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        println!("  {name:<14} {median:>10.1?}  {:.2}  {:.2}", ratios[ratios.len() / 2], ratios[0]);
    };
    row("by hand", |round| round.hand);
    row("rmcp", |round| round.rmcp);
    row("rmcp in a tool", |round| round.direct.call);
    row("… its turn", |round| round.direct.turn);
    row("linked call", |round| round.linked.call);
    row("linked turn", |round| round.linked.turn);
    row("loaded call", |round| round.loaded.call);
    row("loaded turn", |round| round.loaded.turn);
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

fn hello() -> CallToolRequestParams {
    CallToolRequestParams::new("echo").with_arguments(Map::from_iter([("text".to_owned(), "hello".into())]))
}

/// Starts a server, and begins a session.
async fn serve() -> (tokio::process::Child, RunningService<RoleClient, ()>) {
    let mut command = tokio::process::Command::new(SERVER);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pipes = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
    let client = ().serve(pipes).await.unwrap();
    (server, client)
}

async fn direct() -> Cost {
    let (mut server, client) = serve().await;
    *SESSION.lock().unwrap() = Some(client.peer().clone());
    let cost = conversations("direct__echo", |agent, _| agent.extension::<Direct>(json!({}))).await;
    client.cancel().await.unwrap();
    server.wait().await.unwrap();
    cost
}

async fn bare() -> Duration {
    let (mut server, client) = serve().await;
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let start = Instant::now();
        let answer = client.call_tool_once(hello()).await.unwrap();
        assert!(matches!(answer, CallToolResponse::Complete(_)));
        times.push(start.elapsed());
    }
    client.cancel().await.unwrap();
    server.wait().await.unwrap();
    median(times)
}

/// Runs turns that call the tool, in conversations that stay short.
async fn conversations(tool: &str, add: impl FnOnce(AgentBuilder, Value) -> AgentBuilder) -> Cost {
    let script = (0..CALLS).flat_map(|_| [ScriptItem::call(tool, json!({ "text": "hello" })), ScriptItem::say("done")]);
    let agent = Agent::builder("one").model(ScriptedModel::new(script)).extension::<Stopwatch>(json!({}));
    let config = json!({ "transport": { "type": "stdio", "command": [SERVER] } });
    let agent = add(agent, config).build().unwrap();
    TOOL_CALLS.lock().unwrap().clear();
    let mut turns = Vec::new();
    for key in 0..CALLS / 50 {
        let instance = agent.instance(&key.to_string()).await.unwrap();
        for _ in 0..50 {
            let start = Instant::now();
            let turn = instance.run("go").await.unwrap();
            turns.push(start.elapsed());
            assert_eq!(json!(turn.tool_calls()[0].status), "ok");
        }
        instance.close().await.unwrap();
    }
    Cost { call: median(std::mem::take(&mut TOOL_CALLS.lock().unwrap())), turn: median(turns) }
}
