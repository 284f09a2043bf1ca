//! Owns the extension: what it declares, what it registers, and what it is handed to do so.

mod api;
mod descriptor;
pub mod params;
mod record;

pub use api::{AnyRegistration, ExtensionApi, ExtensionHost, PipelineApi, ToolsApi};
pub use descriptor::{API_VERSION, Extension, ExtensionDescriptor, LinkedExtension, MiddlewareDescriptor, linked};
pub use record::{length_prefixed, record_len};
