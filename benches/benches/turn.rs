//! The cost of a turn of 3 steps and 2 tool calls with 10 layers of each kind, beside a loop by hand that makes the
//! same calls, those of the layers included, and beside a loop without layers.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::time::Duration;

use goondan_benches::agents::{self, Layers};
use goondan_benches::by_hand::Conversation;
use goondan_benches::{head, row, runtime, side_by_side, time};
use tokio::runtime::Runtime;

/// The turns of a sample. A sample is short, so that some samples are not interrupted.
const TURNS: u32 = 50;
const ROUNDS: usize = 400;

fn main() {
    head("One turn, in memory", "plain loop");
    for messages in [100, 10_000] {
        row(&format!("over {messages} messages"), TURNS, measure(messages, true));
        row(&format!("over {messages} messages, the loop without layers"), TURNS, measure(messages, false));
    }
}

/// Measures turns with a history of `messages` messages, beside those of a loop by hand.
fn measure(messages: usize, layered: bool) -> goondan_benches::Pair {
    let runtime = runtime();
    let layers = Layers { turn: 10, step: 10, tool_call: 10, keep: messages, ..Layers::default() };
    let instance = runtime.block_on(agents::instance(layers, 2));
    let mut by_hand = Conversation::new(agents::by_hand(layers, 2));
    let ours = || {
        let turns = async {
            for _ in 0..TURNS {
                instance.run("hi").await.expect("a turn");
            }
        };
        time(|| runtime.block_on(turns))
    };
    let mut yardstick = || turns_by_hand(&runtime, &mut by_hand, messages, layered);
    // Until the history has its full length.
    for _ in 0..messages.div_ceil(6 * TURNS as usize) {
        ours();
        yardstick();
    }
    side_by_side(ROUNDS, ours, yardstick)
}

fn turns_by_hand(runtime: &Runtime, by_hand: &mut Conversation, keep: usize, layered: bool) -> Duration {
    let turns = async {
        for _ in 0..TURNS {
            let turn = if layered { by_hand.turn("hi").await } else { by_hand.turn_without_layers("hi").await };
            turn.expect("a turn");
            let excess = by_hand.messages.len().saturating_sub(keep);
            by_hand.messages.drain(..excess);
        }
    };
    time(|| runtime.block_on(turns))
}
