//! Ports: the traits that others implement so that agents reach models, keep conversations, and ask other agents.

pub(crate) mod model;
pub(crate) mod observer;
pub(crate) mod provider;
pub(crate) mod queue;
pub(crate) mod router;
pub mod store;

pub use model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse, ValueBy};
pub use observer::{Observer, Told, Wants};
pub use provider::{
    BundlePath, CassetteMode, Finding, FindingPlace, Findings, ModelProvider, ProviderContext, ProviderDescriptor,
    find_provider, linked_providers,
};
pub use queue::Queue;
pub use router::{AgentCall, AgentReply, Router};
pub use store::{InstanceId, Store};
