//! What an extension is to the runtime: its descriptor, and the handle through which it registers and acts.
//!
//! [`#[goondan::extension]`](macro@crate::extension) writes the [`Extension`] implementation. `#[init]` receives the
//! [`ExtensionApi`]; its members register middlewares and tools, keep state, emit events and write to the log.

pub use goondan_core::{
    API_VERSION, CleanupHandler, EventsApi, Extension, ExtensionApi, ExtensionDescriptor, LogLevel, Logger,
    MiddlewareDescriptor, PipelineApi, StateApi, ToolDescriptor, ToolsApi, linked,
};
#[doc(hidden)]
pub use goondan_core::{
    AnyRegistration, Deliveries, ExtensionHost, LinkedExtension, LogHost, RegisterFn, SchemaFn, absent, params,
};
