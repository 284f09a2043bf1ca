//! A library with the layers whose cost is measured, and one that counts its allocations. A crate of its own, because
//! the counter is a global allocator.

mod allocations;
#[path = "../../fixture/src/small.rs"]
mod small;

pub use allocations::Allocations;
pub use small::{Light, Noop};
