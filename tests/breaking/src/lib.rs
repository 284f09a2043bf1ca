//! A store that interrupts turns at its writes, and turns that go on then, for the tests of both.

mod everywhere;
mod goes_on;
mod store;

pub use everywhere::{Case, Interruption, OfAgent, OfInstance, Ran, Running, Seen, interruptible, run as run_case};
pub use goes_on::{GoesOn, close, run, run_decided};
pub use inventory;
pub use store::{Break, Breaking, Fault, Plan, Watched};
