//! Owns what a linkage needs beyond the host traits: results, messages and errors that cross to another binary.
//!
//! Only `goondan-abi` is meant to name this module; the facade does not show it.

mod core_run;
mod crossing;
mod wire;

pub use crate::conversation::RemoteMessage;
pub use crate::pipeline::Layer;
pub use core_run::{CoreRun, FarCore};
pub(crate) use crossing::{Crossed, Field, crossing, unknown};
pub use crossing::{Crossing, FarSide, RemoteResult, Returned};
pub use wire::{WireAgentRequest, WireAgentResponse, WireError, WireScope, WireToolItem};
