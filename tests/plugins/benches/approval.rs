//! What `approval` costs a call that its rules allow, linked and loaded: the difference of two turns with the call.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::time::{Duration, Instant};

use approval as _;
use goondan::agent::AgentBuilder;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::plugin::Library;
use goondan::prelude::*;
use goondan::{Agent, Value, json};
use goondan_libraries::Build;

const TURNS: usize = 2000;
/// In one turn.
const CALLS: usize = 10;

/// A tool that does nothing.
struct Nothing;

#[goondan::extension(name = "nothing")]
impl Nothing {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Does nothing.
    #[tool(effect = idempotent)]
    async fn happens(&self) -> Result<bool> {
        Ok(true)
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let library = Build::ready_made("approval").profile("release").run(env!("CARGO_TARGET_TMPDIR"));
    let library = Library::inspect(library).unwrap().load().unwrap();
    for _ in 0..3 {
        let bare = runtime.block_on(turn(|agent| agent));
        let linked = runtime.block_on(turn(|agent| agent.linked_extension("approval", "approval", rules())));
        let extension = library.extension(None).unwrap();
        let loaded = runtime.block_on(turn(|agent| agent.described_extension("approval", extension, rules())));
        let of_call = |turn: Duration| (turn.as_secs_f64() - bare.as_secs_f64()) / CALLS as f64 * 1e6;
        println!("a call that is allowed: linked {:.2} µs, loaded {:.2} µs", of_call(linked), of_call(loaded));
    }
}

/// Ten rules, of which the last one allows the call.
fn rules() -> Value {
    let ask: Vec<_> = (0..4).map(|number| json!({ "tool": format!("shop__tool_{number}") })).collect();
    let deny: Vec<_> =
        (0..4).map(|number| json!({ "tool": "bash__*", "args": { "/command": format!("*word {number}*") } })).collect();
    json!({ "deny": deny, "ask": ask, "allow": [{ "tool": "fs__*" }, { "tool": "nothing__*" }] })
}

/// Returns the median time of a turn with the calls.
async fn turn(add: impl Fn(AgentBuilder) -> AgentBuilder) -> Duration {
    let mut times = Vec::new();
    for _ in 0..TURNS / 50 {
        // The conversations stay short.
        let calls = ScriptItem::calls((0..CALLS).map(|_| ("nothing__happens", json!({}))));
        let script = (0..50).flat_map(|_| [calls.clone(), ScriptItem::say("done")]);
        let agent = Agent::builder("one").model(ScriptedModel::new(script)).extension::<Nothing>(json!({}));
        let instance = add(agent).build().unwrap().instance("test").await.unwrap();
        for _ in 0..50 {
            let start = Instant::now();
            instance.run("go").await.unwrap();
            times.push(start.elapsed());
        }
        instance.close().await.unwrap();
    }
    times.sort();
    times[times.len() / 2]
}
