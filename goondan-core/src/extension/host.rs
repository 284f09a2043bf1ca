//! The implementation behind the handle of an extension, and the registrations that it accepts.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::ExtensionInfo;
use crate::BoxFuture;
use crate::error::Result;
use crate::event::{AgentDelegate, AgentReload, AgentReloadAnswer, Deliveries, Event, EventHandler, EventPattern};
use crate::log::LogHost;
use crate::name::ExtensionName;
use crate::pipeline::{AnyMiddleware, InputMasker, MiddlewareOptions};
use crate::shown::Shown;
use crate::tool::{ToolHandler, ToolItem};

/// The implementation behind an [`ExtensionApi`](super::ExtensionApi): the runtime, or in a library the C table of its
/// host.
pub trait ExtensionHost: LogHost {
    /// Returns the name of the extension.
    fn extension(&self) -> &ExtensionName;
    /// Adds a registration. Those of `#[init]` become active together with those of all extensions, or none does; after
    /// it, only tools are accepted.
    ///
    /// # Errors
    /// When registration is over, and for a schema that cannot be compiled.
    // D-08
    fn register(&self, registration: AnyRegistration) -> Result<()>;
    /// Returns the state of the extension.
    fn state(&self) -> Option<Value>;
    /// Changes the state atomically. It is kept as it is when `change` fails.
    ///
    /// # Errors
    /// The error of `change`.
    fn update_state(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()>;
    /// Returns the value that all conversations of the workspace share.
    ///
    /// # Errors
    /// When the store has none, or cannot read it.
    // D-42
    fn shared_state(&self) -> Result<Option<Value>>;
    /// Changes the shared value while all other changes wait. It is kept as it is when `change` fails.
    ///
    /// # Errors
    /// The error of `change`, and as for [`shared_state`](Self::shared_state).
    // D-42
    fn update_shared_state(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()>;
    /// Starts a subscription, and returns its number.
    fn subscribe(&self, pattern: EventPattern, limit: Deliveries, handler: Arc<dyn EventHandler>) -> u64;
    /// Ends a subscription.
    fn unsubscribe(&self, subscription: u64);
    /// Sends an event to all subscriptions that match it.
    fn emit(&self, event: Event);
    /// Shows something to the person, and publishes it as an event.
    fn show(&self, shown: Shown);
    /// Starts the turn of a delegation, and publishes the delegation as an event.
    fn delegate(&self, delegation: AgentDelegate);
    /// Sends a request for a reload to the program, and publishes it as an event. Returns the answer.
    fn reload(&self, request: AgentReload) -> BoxFuture<'static, AgentReloadAnswer>;
    /// Returns the values of an [`InitContext`](super::InitContext).
    ///
    /// # Errors
    /// In a library, when its host does not return it.
    fn info(&self) -> Result<ExtensionInfo>;
    /// Makes, unless it exists, and returns the directory for files of the extension.
    ///
    /// # Errors
    /// See [`InitContext::state_dir`](super::InitContext::state_dir).
    fn state_dir(&self) -> Result<PathBuf>;
}

/// Something that an extension registers. Clones share the handler.
#[derive(Clone)]
pub enum AnyRegistration {
    /// A middleware.
    Middleware(AnyMiddleware, MiddlewareOptions),
    /// A masker of inputs.
    InputMasker(Arc<dyn InputMasker>),
    /// A tool.
    Tool(Arc<ToolItem>, Arc<dyn ToolHandler>),
    /// A subscription for the life of the extension.
    Subscription(EventPattern, Arc<dyn EventHandler>),
    /// A handler that runs before the extension is dropped.
    Cleanup(Arc<dyn CleanupHandler>),
}

/// Runs before an extension is dropped. `#[cleanup]` generates implementations.
pub trait CleanupHandler: Send + Sync + 'static {
    /// Releases the resources of the extension. The call has a deadline.
    fn clean_up(&self) -> BoxFuture<'_, Result<()>>;
}
