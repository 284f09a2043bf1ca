//! What is fed to goondan from outside, and what must hold whatever that is. `fuzz/` at the root of the repository hands
//! each target the inputs of libFuzzer; the test of this crate hands it those that are checked in.
//!
//! A target returns when all is well, and panics when something is wrong.
#![allow(clippy::panic, clippy::expect_used, clippy::missing_panics_doc)] // Targets are assertions.

mod answer;
mod bundle;
mod library;
mod names;
mod script;
mod store;

pub use answer::answer;
pub use bundle::bundle;
pub use library::library;
pub use names::names;
pub use script::script;
pub use store::store;

/// Takes one input.
pub type Target = fn(&[u8]);

/// All targets, by the name of their corpus.
pub const TARGETS: [(&str, Target); 6] = [
    ("answer", answer),
    ("bundle", bundle),
    ("library", library),
    ("names", names),
    ("script", script),
    ("store", store),
];

/// Runs a future that waits for nothing but timers.
fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime without input and output can be built").block_on(future)
}
