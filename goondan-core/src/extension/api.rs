//! Owns the handle that an extension registers and acts through.

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::name::ExtensionName;
use crate::pipeline::{AnyMiddleware, Kind, Middleware, Options};
use crate::tool::{ToolHandler, ToolItem};

/// What an extension is handed in `#[init]`. Clone it and keep it as long as the extension lives.
#[derive(Clone)]
pub struct ExtensionApi {
    host: Arc<dyn ExtensionHost>,
}

/// Behind an [`ExtensionApi`]: the runtime, or the C table of a plugin.
pub trait ExtensionHost: Send + Sync {
    /// The extension that the handle belongs to.
    fn extension(&self) -> &ExtensionName;
    /// Notes a registration; it takes effect with all others of the agent, or none does (D-08).
    ///
    /// # Errors
    /// When the agent is past its registration.
    fn register(&self, registration: AnyRegistration) -> Result<()>;
}

/// Something that an extension registers.
pub enum AnyRegistration {
    /// A middleware.
    Middleware(AnyMiddleware, Options),
    /// A tool.
    Tool(ToolItem, Arc<dyn ToolHandler>),
}

impl ExtensionApi {
    /// A handle in front of `host`.
    #[doc(hidden)]
    pub fn new(host: Arc<dyn ExtensionHost>) -> Self {
        Self { host }
    }

    /// Registration of middlewares.
    pub fn pipeline(&self) -> PipelineApi<'_> {
        PipelineApi { host: &*self.host }
    }

    /// Registration of tools.
    pub fn tools(&self) -> ToolsApi<'_> {
        ToolsApi { host: &*self.host }
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
        self.host.register(AnyRegistration::Tool(item, Arc::new(handler)))
    }
}
