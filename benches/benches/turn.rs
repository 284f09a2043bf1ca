//! What a turn costs: 3 steps and 2 tool calls with 10 layers of each kind, beside a plain loop that makes the same calls,
//! those of the layers included, and beside one that has no layers.
#![allow(clippy::expect_used, reason = "a bench stops at what cannot be")]

use std::time::Duration;

use goondan_benches::agents::{self, Layers};
use goondan_benches::by_hand::Talk;
use goondan_benches::{head, row, runtime, side_by_side, time};
use tokio::runtime::Runtime;

/// Short, so that some samples are not interrupted.
const TURNS: u32 = 50;
const ROUNDS: usize = 400;

fn main() {
    head("One turn, in memory", "plain loop");
    for messages in [100, 10_000] {
        row(&format!("over {messages} messages"), TURNS, measure(messages, true));
        row(&format!("over {messages} messages, the loop without layers"), TURNS, measure(messages, false));
    }
}

/// Turns with a history of so many messages, beside those of a loop by hand.
fn measure(messages: usize, layered: bool) -> goondan_benches::Pair {
    let runtime = runtime();
    let layers = Layers { turn: 10, step: 10, tool_call: 10, keep: messages, observed: false };
    let instance = runtime.block_on(agents::instance(layers, 2));
    let mut talk = Talk::new(agents::by_hand(layers, 2));
    let ours = || {
        let turns = async {
            for _ in 0..TURNS {
                instance.run("hi").await.expect("a turn");
            }
        };
        time(|| runtime.block_on(turns))
    };
    let mut yardstick = || turns_by_hand(&runtime, &mut talk, messages, layered);
    // Until the history is as long as it is kept.
    for _ in 0..messages.div_ceil(6 * TURNS as usize) {
        ours();
        yardstick();
    }
    side_by_side(ROUNDS, ours, yardstick)
}

fn turns_by_hand(runtime: &Runtime, talk: &mut Talk, keep: usize, layered: bool) -> Duration {
    let turns = async {
        for _ in 0..TURNS {
            let turn = if layered { talk.turn("hi").await } else { talk.turn_without_layers("hi").await };
            turn.expect("a turn");
            let excess = talk.messages.len().saturating_sub(keep);
            talk.messages.drain(..excess);
        }
    };
    time(|| runtime.block_on(turns))
}
