//! Measurement of two things side by side, and the agents, conversations and yardsticks that the benches measure.
//!
//! Every figure has a yardstick that is measured in the same run, alternating with it: on a machine that is busy with
//! other work, the ratio of the two says more than either.
#![allow(clippy::expect_used, clippy::missing_panics_doc)] // Benches stop at the first error.

pub mod agents;
pub mod by_hand;
pub mod instances;
pub mod messages;
pub mod sample;
pub mod step;
pub mod stored;
pub mod watching;

use std::time::{Duration, Instant};

/// How long one thing and its yardstick took.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The time of goondan.
    pub ours: Duration,
    /// The time of the yardstick.
    pub yardstick: Duration,
}

impl Pair {
    /// Returns how many times as long as its yardstick it took.
    pub fn ratio(self) -> f64 {
        self.ours.as_secs_f64() / self.yardstick.as_secs_f64()
    }
}

/// Runs both alternately and returns the shortest of the times that each returns: on a busy machine, that is the
/// round with the fewest interruptions.
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

/// Returns how long `work` takes.
pub fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Makes a runtime of this thread alone, because hops between threads would be measured too.
pub fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime without input and output can be built")
}

/// Prints one line of a table: name, ours, the yardstick, the ratio. The times are divided by `per`.
pub fn row(what: &str, per: u32, pair: Pair) {
    let (ours, yardstick) = (pair.ours / per, pair.yardstick / per);
    println!("{what:<52} {ours:>12.1?} {yardstick:>12.1?} {:>8.2}×", pair.ratio());
}

/// Prints the head of a table of [`row`]s.
pub fn head(title: &str, yardstick: &str) {
    println!("\n{title}\n{:<52} {:>12} {yardstick:>12} {:>9}", "", "goondan", "ratio");
}
