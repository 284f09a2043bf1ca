//! What a layer costs: the slope between 16 and 64 layers that do nothing, beside a chain by hand.
#![allow(clippy::expect_used, reason = "a bench stops at what cannot be")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use goondan_benches::agents::{self, Layers};
use goondan_benches::by_hand::{Context, Layer, Plain, Rest};
use goondan_benches::{Pair, head, row, runtime, side_by_side, time};

const TURNS: u32 = 500;

/// So many layers of one kind.
type Around = fn(usize) -> Layers;

fn main() {
    head("One more layer (slope between 16 and 64)", "by hand");
    let kinds: [(&str, Around); 3] = [
        ("turn", |depth| Layers { turn: depth, ..Layers::default() }),
        ("step", |depth| Layers { step: depth, ..Layers::default() }),
        ("tool call", |depth| Layers { tool_call: depth, ..Layers::default() }),
    ];
    for (kind, layers) in kinds {
        for (how, observed) in [("plain", false), ("observed", true)] {
            let at = |depth| {
                measure(Layers { keep: 20, observed, ..layers(depth) }, depth, usize::from(kind == "tool call"))
            };
            let (few, many) = (at(16), at(64));
            let slope = |few: Duration, many: Duration| many.saturating_sub(few) / 48;
            let pair = Pair { ours: slope(few.ours, many.ours), yardstick: slope(few.yardstick, many.yardstick) };
            row(&format!("{kind}, {how}"), TURNS, pair);
        }
    }
}

/// Whole turns with so many layers of one kind, beside as many runs of a chain by hand.
fn measure(layers: Layers, depth: usize, calls: usize) -> Pair {
    let runtime = runtime();
    let instance = runtime.block_on(agents::instance(layers, calls));
    let by_hand: Vec<Arc<dyn Layer>> = (0..depth).map(|_| Arc::new(Plain) as _).collect();
    let mut ctx = Context::default();
    let ours = || {
        let turns = async {
            for _ in 0..TURNS {
                instance.run("hi").await.expect("a turn");
            }
        };
        time(|| runtime.block_on(turns))
    };
    let yardstick = || {
        let runs = async {
            for _ in 0..TURNS {
                black_box(Rest::new(&by_hand).run(&mut ctx).await).expect("a run");
            }
        };
        time(|| runtime.block_on(runs))
    };
    side_by_side(60, ours, yardstick)
}
