//! A store that interrupts turns at its writes, and turns that go on then, for the tests of both.

mod goes_on;
mod store;

pub use goes_on::{GoesOn, close, run, run_decided};
pub use store::{Break, Breaking, Plan};
