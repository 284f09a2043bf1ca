//! Owns the typed kinds of resources; each file reads one from its spec.

mod model;
pub use model::{ModelResource, Provider};

mod extension;
pub use extension::ExtensionResource;

mod entry;
pub use entry::{Entry, LibraryEntry};

mod agent;
pub use agent::{AgentResource, ExtensionRef};

mod policy;
pub use policy::Policy;

mod swarm;
pub use swarm::SwarmResource;
