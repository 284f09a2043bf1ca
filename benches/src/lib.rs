//! What the benches share: taking the time of two things side by side, and agents to take it of.
//!
//! Every figure stands beside a yardstick that is measured in the same run, in turns with it: the ratio of the two says
//! more than either, on machines that are busy with other things.
#![allow(clippy::expect_used, clippy::missing_panics_doc)] // Benches stop at what cannot be.

pub mod agents;
pub mod by_hand;
pub mod instances;
pub mod messages;
pub mod step;
pub mod stored;

use std::time::{Duration, Instant};

/// How long one thing took, and its yardstick, for one round.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// What the bench is about.
    pub ours: Duration,
    /// The same by hand.
    pub yardstick: Duration,
}

impl Pair {
    /// How many times as long as its yardstick it took.
    pub fn ratio(self) -> f64 {
        self.ours.as_secs_f64() / self.yardstick.as_secs_f64()
    }
}

/// Runs both in turns, and gives the shortest of what they say they took: on a busy machine that is the round in which
/// the fewest others ran.
pub fn side_by_side(
    rounds: usize,
    mut ours: impl FnMut() -> Duration,
    mut yardstick: impl FnMut() -> Duration,
) -> Pair {
    let mut least = Pair { ours: Duration::MAX, yardstick: Duration::MAX };
    for _ in 0..rounds {
        least.ours = least.ours.min(ours());
        least.yardstick = least.yardstick.min(yardstick());
    }
    least
}

/// How long `work` takes.
pub fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A runtime of this thread alone: hops between threads would be measured too.
pub fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime without input and output can be built")
}

/// One line of a table: what, ours, the yardstick, the ratio.
pub fn row(what: &str, per: u32, pair: Pair) {
    let (ours, yardstick) = (pair.ours / per, pair.yardstick / per);
    println!("{what:<52} {ours:>12.1?} {yardstick:>12.1?} {:>8.2}×", pair.ratio());
}

/// The head of a table of [`row`]s.
pub fn head(title: &str, yardstick: &str) {
    println!("\n{title}\n{:<52} {:>12} {yardstick:>12} {:>9}", "", "goondan", "ratio");
}
