//! The part of the contract that `goondan-abi` uses beyond the facade: the traits behind contexts, remote results, JSON
//! forms.
//!
//! No other crate should use this module.

mod wire;

/// The limit of nesting.
pub mod depth {
    pub use crate::depth::{Unchecked, check, check_map, checked_output, from_json};
}

pub use crate::conversation::RemoteMessage;
pub use crate::crossing::{CoreRun, Crossing, RemoteCore, RemoteHost, RemoteResult, Returned};
pub use crate::error::WireError;
pub use crate::panic::{catch, drop_guarded};
pub use crate::pipeline::Layer;
pub use crate::secret::{SecretHost, set_secret_host};
pub use crate::tool::{WireReply, WireShownCall};
pub use wire::{WireAgentRequest, WireAgentResponse, WireField, WireScope, WireToolItem, WireVerdict};
