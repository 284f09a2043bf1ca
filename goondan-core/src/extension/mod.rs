//! Owns the extension: what it declares, what it registers, and what it is handed to do so.

mod api;
mod descriptor;
mod events;
mod logger;
pub mod params;
mod record;
mod state;

pub use api::{AnyRegistration, CleanupHandler, Deliveries, ExtensionApi, ExtensionHost, PipelineApi, ToolsApi};
pub use descriptor::{
    API_VERSION, Extension, ExtensionDescriptor, LinkedExtension, MiddlewareDescriptor, RegisterFn, SchemaFn,
    ToolDescriptor, linked,
};
pub use events::{EventsApi, Subscription};
pub use logger::{LogHost, LogLevel, Logger};
pub use record::{length_prefixed, record_len};
pub use state::StateApi;
