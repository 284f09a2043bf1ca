//! Requests to other agents and to models: the API that extensions and tools call, and the port to a router.

mod api;
#[cfg(feature = "runtime")]
mod caller;
#[cfg(feature = "runtime")]
mod inbox;
#[cfg(feature = "runtime")]
mod port;
#[cfg(feature = "runtime")]
mod reach;
mod target;

pub use api::{AgentRequest, AgentResponse, AgentsApi, AgentsHost, Ticket};
#[cfg(feature = "runtime")]
pub(crate) use caller::Caller;
#[cfg(feature = "runtime")]
pub(crate) use inbox::Inbox;
#[cfg(feature = "runtime")]
pub(crate) use port::not_found;
#[cfg(feature = "runtime")]
pub use port::{AgentCall, Router};
#[cfg(feature = "runtime")]
pub(crate) use reach::Reach;
pub use target::RequestTarget;
