//! Requests to other agents and to models: the API that extensions and tools call, and the port to a router.

mod api;
mod target;

pub use api::{AgentRequest, AgentResponse, AgentsApi, AgentsHost, RequestTicket};
pub use target::RequestTarget;
