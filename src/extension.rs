//! An extension for the runtime: its descriptor, the handle through which it registers and acts, and questions of
//! `#[init]` about its conversation ([`InitContext`]).
//!
//! [`#[goondan::extension]`](macro@crate::extension) generates the [`Extension`] implementation. Every function of
//! an extension can take the [`ExtensionApi`], through which it registers, keeps state, emits events and writes to
//! the log:
//!
//! ```
//! /// Counts the turns of each conversation.
//! #[goondan::extension(name = "turn-count")]
//! mod turn_count {
//!     use goondan::prelude::*;
//!
//!     #[on("turn.completed")]
//!     async fn count(api: &ExtensionApi) -> Result<()> {
//!         let turns = api.state().update(|turns: &mut u32| {
//!             *turns += 1;
//!             *turns
//!         })?;
//!         api.logger().with("turns", turns).info("counted");
//!         api.events().emit("turns.counted", (turns,));
//!         Ok(())
//!     }
//! }
//! ```
//!
//! | surface | for |
//! | --- | --- |
//! | [`api.pipeline()`](ExtensionApi::pipeline) | middlewares that are made at run time |
//! | [`api.tools()`](ExtensionApi::tools) | tools that are made at run time |
//! | [`api.state()`](ExtensionApi::state) | one value that survives restarts |
//! | [`api.events()`](ExtensionApi::events) | the event bus of the conversation |
//! | [`api.logger()`](ExtensionApi::logger) | the log |

#[doc(hidden)]
pub use goondan_core::{
    API_VERSION, AnyRegistration, Deliveries, ExtensionHost, ExtensionInfo, LinkedExtension, LogHost, RegisterFn,
    SchemaFn, absent, params,
};
pub use goondan_core::{
    BundleFile, BundleFileError, BundleFiles, CleanupHandler, EventsApi, Extension, ExtensionApi, ExtensionDescriptor,
    InitContext, LogLevel, Logger, MiddlewareDescriptor, PipelineApi, PresentExtension, SharedState, StateApi,
    ToolDescriptor, ToolsApi, linked,
};
