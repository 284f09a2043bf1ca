//! Owns how agents reach one another: the port to a router, and what extensions and tools see of it.

mod api;
#[cfg(feature = "runtime")]
mod caller;
#[cfg(feature = "runtime")]
mod inbox;
#[cfg(feature = "runtime")]
mod router;

pub use api::{AgentRequest, AgentResponse, AgentsApi, AgentsHost, Ticket};
#[cfg(feature = "runtime")]
pub(crate) use caller::Caller;
#[cfg(feature = "runtime")]
pub(crate) use inbox::Inbox;
#[cfg(feature = "runtime")]
pub use router::{AgentCall, LocalRouter, Router};
