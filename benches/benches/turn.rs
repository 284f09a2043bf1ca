//! What a turn costs: 3 steps and 2 tool calls with 10 layers of each kind, beside a plain loop that makes the same calls.
#![allow(clippy::expect_used, reason = "a bench stops at what cannot be")]

use std::sync::Arc;

use goondan::Message;
use goondan_benches::agents::{self, Asks, Layers, Nothing, TOOL};
use goondan_benches::{by_hand, head, row, runtime, side_by_side, time};

const TURNS: u32 = 200;

fn main() {
    head("One turn, in memory", "plain loop");
    for messages in [100, 10_000] {
        let layers = Layers { turn: 10, step: 10, tool_call: 10, keep: messages, observed: false };
        let runtime = runtime();
        let instance = runtime.block_on(agents::instance(layers, 2));
        let model = Asks::new(2);
        let mut history: Vec<Arc<Message>> = Vec::new();
        let ours = || {
            let turns = async {
                for _ in 0..TURNS {
                    instance.run("hi").await.expect("a turn");
                }
            };
            time(|| runtime.block_on(turns))
        };
        let mut yardstick = || {
            let turns = async {
                for _ in 0..TURNS {
                    let tools = [(TOOL, &Nothing as &dyn by_hand::PlainTool)];
                    by_hand::turn(&mut history, &model, &tools).await.expect("a turn");
                    let excess = history.len().saturating_sub(messages);
                    history.drain(..excess);
                }
            };
            time(|| runtime.block_on(turns))
        };
        // Until the history is as long as it is kept.
        for _ in 0..messages.div_ceil(6 * TURNS as usize) {
            ours();
            yardstick();
        }
        row(&format!("over {messages} messages"), TURNS, side_by_side(60, ours, yardstick));
    }
}
