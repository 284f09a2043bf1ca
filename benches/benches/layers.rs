//! The cost of a layer: the slope between 16 and 64 layers that do nothing, beside a chain that is written by hand.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use goondan::Instance;
use goondan_benches::agents::{self, Layers};
use goondan_benches::by_hand::{Count, Layer, Next, noop_layers};
use goondan_benches::{Pair, head, row, runtime, side_by_side, time};
use tokio::runtime::Runtime;

/// The turns of a sample. A sample is short, so that some samples are not interrupted.
const TURNS: u32 = 50;
const ROUNDS: usize = 1_000;

/// Makes this number of layers of one kind.
type LayersOfKind = fn(usize) -> Layers;

fn main() {
    head("One more layer (slope between 16 and 64)", "by hand");
    let kinds: [(&str, LayersOfKind); 6] = [
        ("turn", |depth| Layers { turn: depth, ..Layers::default() }),
        ("step", |depth| Layers { step: depth, ..Layers::default() }),
        ("tool call", |depth| Layers { tool_call: depth, ..Layers::default() }),
        ("step that projects a message", |depth| Layers { projecting: depth, ..Layers::default() }),
        ("step that prepares the answer", |depth| Layers { preparing: depth, ..Layers::default() }),
        ("tool call that prepares the reply", |depth| Layers { replying: depth, ..Layers::default() }),
    ];
    for (kind, layers) in kinds {
        for (how, observed, skipping) in [("plain", false, false), ("observed", true, false), ("skipping", false, true)]
        {
            let at = |depth| {
                let layers = Layers { keep: 20, observed, skipping, ..layers(depth) };
                Depth::new(layers, depth, usize::from(kind.starts_with("tool call")))
            };
            row(&format!("{kind}, {how}"), TURNS, slope(&mut at(16), &mut at(64)));
        }
    }
}

/// Returns the cost of one more layer. The two depths alternate, because the machine may become faster or slower
/// meanwhile.
fn slope(few: &mut Depth, many: &mut Depth) -> Pair {
    let mut least = [Pair { ours: Duration::MAX, yardstick: Duration::MAX }; 2];
    for _ in 0..ROUNDS {
        for (least, depth) in least.iter_mut().zip([&mut *few, &mut *many]) {
            let Depth { runtime, instance, by_hand, runs } = depth;
            let pair = side_by_side(1, || turns(runtime, instance), || runs_by_hand(runtime, by_hand, runs));
            *least = Pair { ours: least.ours.min(pair.ours), yardstick: least.yardstick.min(pair.yardstick) };
        }
    }
    let [few, many] = least;
    let slope = |few: Duration, many: Duration| many.saturating_sub(few) / 48;
    Pair { ours: slope(few.ours, many.ours), yardstick: slope(few.yardstick, many.yardstick) }
}

/// An agent with a number of layers of one kind, and a chain by hand with as many.
struct Depth {
    runtime: Runtime,
    instance: Instance,
    by_hand: Vec<Arc<dyn Layer<Count>>>,
    runs: u64,
}

impl Depth {
    fn new(layers: Layers, depth: usize, calls: usize) -> Self {
        let runtime = runtime();
        let instance = runtime.block_on(agents::instance(layers, calls));
        Self { runtime, instance, by_hand: noop_layers(depth), runs: 0 }
    }
}

fn turns(runtime: &Runtime, instance: &Instance) -> Duration {
    let turns = async {
        for _ in 0..TURNS {
            instance.run("hi").await.expect("a turn");
        }
    };
    time(|| runtime.block_on(turns))
}

fn runs_by_hand(runtime: &Runtime, by_hand: &[Arc<dyn Layer<Count>>], runs: &mut u64) -> Duration {
    let chain = async {
        for _ in 0..TURNS {
            black_box(Next::new(by_hand).run(runs).await).expect("a run");
        }
    };
    time(|| runtime.block_on(chain))
}
