//! Owns what a linkage needs beyond the host traits: results, messages and errors that cross to another binary.
//!
//! Only `goondan-abi` is meant to name this module; the facade does not show it.

mod crossing;
mod wire;

pub use crate::conversation::RemoteMessage;
pub use crate::pipeline::Layer;
pub use crossing::{Crossing, RemoteResult, Returned};
pub(crate) use crossing::{Field, Origin, crossing, unknown};
pub use wire::{WireAgentRequest, WireAgentResponse, WireError, WireScope, WireToolItem};
