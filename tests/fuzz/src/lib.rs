//! The fuzz targets: one for each kind of foreign bytes that goondan reads, and what must hold for every input.
//!
//! `fuzz/` at the root of the repository runs them with libFuzzer. The test of this crate runs them with the inputs in
//! `fuzz/corpus`. A target panics when an assertion fails.
#![allow(clippy::panic, clippy::expect_used, clippy::missing_panics_doc)] // Targets are assertions.

mod answer;
mod bundle;
mod library;
mod names;
mod request;
mod script;
mod store;

pub use answer::answer;
pub use bundle::bundle;
pub use library::library;
pub use names::names;
pub use request::request;
pub use script::script;
pub use store::store;

/// A function that checks one input.
pub type Target = fn(&[u8]);

/// All targets, each with its name, which is also the name of its corpus.
pub const TARGETS: [(&str, Target); 7] = [
    ("answer", answer),
    ("bundle", bundle),
    ("library", library),
    ("names", names),
    ("request", request),
    ("script", script),
    ("store", store),
];

/// Runs a future on this thread, in a runtime with timers and without IO.
fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime without input and output can be built").block_on(future)
}
