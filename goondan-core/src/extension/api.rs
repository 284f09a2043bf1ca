//! Owns the handle that an extension registers and acts through: five members, and no other way (API-01, API-02).

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::{EventsApi, StateApi};
use crate::BoxFuture;
use crate::error::Result;
use crate::event::{Deliveries, Event, EventHandler, EventPattern};
use crate::log::{LogHost, Logger};
use crate::name::ExtensionName;
use crate::pipeline::{AnyMiddleware, Kind, Middleware, Options};
use crate::tool::{ToolHandler, ToolItem};

/// What an extension is handed in `#[init]`. Clone it and keep it as long as the extension lives.
#[derive(Clone)]
pub struct ExtensionApi {
    host: Arc<dyn ExtensionHost>,
}

/// Behind an [`ExtensionApi`]: the runtime, or the C table of a plugin.
pub trait ExtensionHost: LogHost {
    /// The extension that the handle belongs to.
    fn extension(&self) -> &ExtensionName;
    /// Notes a registration; it takes effect with all others of the agent, or none does (D-08).
    ///
    /// # Errors
    /// When the agent is past its registration.
    fn register(&self, registration: AnyRegistration) -> Result<()>;
    /// The state of the extension.
    fn state(&self) -> Option<Value>;
    /// Changes the state in one step, unless `change` fails.
    ///
    /// # Errors
    /// The error of `change`.
    fn update_state(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()>;
    /// Starts a subscription, and gives its number.
    fn subscribe(&self, pattern: EventPattern, limit: Deliveries, handler: Arc<dyn EventHandler>) -> u64;
    /// Ends a subscription.
    fn unsubscribe(&self, subscription: u64);
    /// Hands an event to all subscriptions that it fits.
    fn emit(&self, event: Event);
}

/// Something that an extension registers. Clones are the same thing.
#[derive(Clone)]
pub enum AnyRegistration {
    /// A middleware.
    Middleware(AnyMiddleware, Options),
    /// A tool.
    Tool(Arc<ToolItem>, Arc<dyn ToolHandler>),
    /// A subscription that lives as long as the extension.
    Subscription(EventPattern, Arc<dyn EventHandler>),
    /// What runs before the extension goes away.
    Cleanup(Arc<dyn CleanupHandler>),
}

/// Runs before an extension goes away. `#[cleanup]` writes implementations.
pub trait CleanupHandler: Send + Sync + 'static {
    /// Lets go of what the extension holds. It has a deadline.
    fn clean_up(&self) -> BoxFuture<'_, Result<()>>;
}

impl ExtensionApi {
    /// A handle in front of `host`.
    #[doc(hidden)]
    pub fn new(host: Arc<dyn ExtensionHost>) -> Self {
        Self { host }
    }

    /// What stands behind the handle; for the code that attributes generate.
    #[doc(hidden)]
    pub fn host(&self) -> &dyn ExtensionHost {
        &*self.host
    }

    /// Registration of middlewares.
    pub fn pipeline(&self) -> PipelineApi<'_> {
        PipelineApi { host: &*self.host }
    }

    /// Registration of tools.
    pub fn tools(&self) -> ToolsApi<'_> {
        ToolsApi { host: &*self.host }
    }

    /// The state of the extension in this conversation.
    pub fn state(&self) -> StateApi<'_> {
        StateApi::new(&*self.host)
    }

    /// The bus of this conversation.
    pub fn events(&self) -> EventsApi<'_> {
        EventsApi::new(&self.host)
    }

    /// The log.
    pub fn logger(&self) -> Logger<'_> {
        Logger::new(&*self.host)
    }
}

impl fmt::Debug for ExtensionApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtensionApi({})", self.host.extension())
    }
}

/// Registration of middlewares (API-04).
pub struct PipelineApi<'a> {
    host: &'a dyn ExtensionHost,
}

impl PipelineApi<'_> {
    /// Adds a layer of the kind [`Turn`](crate::Turn), [`Step`](crate::Step) or [`ToolCall`](crate::ToolCall). Several
    /// of one kind keep the order in which they were registered (ORDER-09).
    ///
    /// # Errors
    /// When the agent is past its registration.
    pub fn register<K: Kind>(&self, _kind: K, middleware: impl Middleware<K>, options: Options) -> Result<()> {
        self.host.register(AnyRegistration::Middleware(K::erase(Arc::new(middleware)), options))
    }
}

/// Registration of tools (TOOL-04).
pub struct ToolsApi<'a> {
    host: &'a dyn ExtensionHost,
}

impl ToolsApi<'_> {
    /// Adds a tool, in the place of one with the same name (TOOL-03).
    ///
    /// # Errors
    /// When the agent is past its registration.
    pub fn register(&self, item: ToolItem, handler: impl ToolHandler) -> Result<()> {
        self.host.register(AnyRegistration::Tool(Arc::new(item), Arc::new(handler)))
    }
}
