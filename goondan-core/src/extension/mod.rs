//! Extensions: the descriptor that they declare, and the handle through which they register and act.

mod api;
mod bundle_files;
mod descriptor;
mod events;
mod finite;
mod host;
mod info;
mod init_context;
mod record;
mod shared_state;
mod state;
mod stored;

pub use api::{ExtensionApi, PipelineApi, ToolsApi};
pub use bundle_files::BundleFiles;
pub use descriptor::skipped_guard;
pub use descriptor::{
    API_VERSION, Extension, ExtensionDescriptor, LinkedExtension, MiddlewareDescriptor, RegisterFn, SchemaFn,
    ToolDescriptor, linked,
};
pub use events::{EventsApi, Subscription};
pub use host::{AnyRegistration, CleanupHandler, ExtensionHost};
pub use info::{ExtensionInfo, PresentExtension};
pub use init_context::InitContext;
pub use record::{length_prefixed, record_len};
pub use shared_state::SharedState;
pub use state::StateApi;
