//! The handle through which an extension registers and acts: five surfaces.

use std::fmt;
use std::sync::Arc;

use super::{AnyRegistration, EventsApi, ExtensionHost, StateApi};
use crate::error::Result;
use crate::log::Logger;
use crate::pipeline::{InputMasker, Kind, Middleware, MiddlewareOptions};
use crate::tool::{ToolHandler, ToolItem};

/// The handle of an extension in one conversation. `#[init]` and all other functions of an extension can take it.
///
/// It has five surfaces: [`pipeline`](ExtensionApi::pipeline) registers in `#[init]`, and
/// [`tools`](ExtensionApi::tools) also later; [`state`](ExtensionApi::state), [`events`](ExtensionApi::events) and
/// [`logger`](ExtensionApi::logger) can be used as long as the extension lives. Clones are the same handle.
///
/// ```
/// use goondan::prelude::*;
///
/// pub struct Greeter {
///     api: ExtensionApi,
/// }
///
/// #[goondan::extension(name = "greeter")]
/// impl Greeter {
///     #[init]
///     fn new(api: ExtensionApi) -> Self {
///         Self { api }
///     }
///
///     #[middleware(turn)]
///     async fn greet(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
///         let turns: u64 = self.api.state().get()?.unwrap_or_default();
///         self.api.state().set(&(turns + 1))?;
///         self.api.logger().with("turns", turns).info("a turn begins");
///         next.run(ctx).await
///     }
/// }
/// ```
// API-01, API-02
#[derive(Clone)]
pub struct ExtensionApi {
    host: Arc<dyn ExtensionHost>,
}

impl ExtensionApi {
    /// A handle that is backed by `host`.
    #[doc(hidden)]
    pub fn new(host: Arc<dyn ExtensionHost>) -> Self {
        Self { host }
    }

    /// Returns the host, for generated code.
    #[doc(hidden)]
    pub fn host(&self) -> &dyn ExtensionHost {
        &*self.host
    }

    /// Returns the surface for the registration of middlewares.
    pub fn pipeline(&self) -> PipelineApi<'_> {
        PipelineApi { host: &*self.host }
    }

    /// Returns the surface for the registration of tools.
    pub fn tools(&self) -> ToolsApi<'_> {
        ToolsApi { host: &*self.host }
    }

    /// Returns the state of the extension in this conversation.
    pub fn state(&self) -> StateApi<'_> {
        StateApi::new(&*self.host)
    }

    /// Returns the event bus of this conversation.
    pub fn events(&self) -> EventsApi<'_> {
        EventsApi::new(&self.host)
    }

    /// Returns a logger that marks its lines with the extension and the conversation.
    pub fn logger(&self) -> Logger<'_> {
        Logger::new(&*self.host)
    }
}

impl fmt::Debug for ExtensionApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtensionApi({})", self.host.extension())
    }
}

/// Registers middlewares at run time, in `#[init]`. Returned by [`ExtensionApi::pipeline`].
///
/// `#[middleware]` registers a function without this. Use it for middlewares that depend on the config.
///
/// ```
/// use goondan::prelude::*;
/// use goondan::BoxFuture;
/// use goondan::middleware::{Middleware, MiddlewareOptions};
///
/// struct Log;
///
/// impl Middleware<Turn> for Log {
///     fn handle<'a>(
///         &'a self,
///         ctx: &'a mut TurnContext<'_>,
///         next: Next<'a, Turn>,
///     ) -> BoxFuture<'a, Result<TurnResult>> {
///         tracing::info!(turn = %ctx.turn_id(), "a turn begins");
///         Box::pin(next.run(ctx))
///     }
/// }
///
/// # struct Audit;
/// # #[goondan::extension(name = "audit")]
/// # impl Audit {
/// #[init]
/// fn new(api: ExtensionApi) -> Result<Self> {
///     api.pipeline().register(Turn, Log, MiddlewareOptions::priority(-10).named("log"))?;
///     Ok(Self)
/// }
/// # }
/// ```
// API-04
pub struct PipelineApi<'a> {
    host: &'a dyn ExtensionHost,
}

impl PipelineApi<'_> {
    /// Adds a layer of the kind [`Turn`](crate::Turn), [`Step`](crate::Step) or [`ToolCall`](crate::ToolCall). Layers
    /// of one kind with equal priority keep the order in which they were registered.
    ///
    /// # Errors
    /// `E_EXT_INIT` when registration is over: after `#[init]`.
    // ORDER-09
    pub fn register<K: Kind>(
        &self,
        _kind: K,
        middleware: impl Middleware<K>,
        options: MiddlewareOptions,
    ) -> Result<()> {
        self.host.register(AnyRegistration::Middleware(K::erase(Arc::new(middleware)), options))
    }

    /// Adds a masker of inputs, which changes their texts before anything of them is stored: before the record of the
    /// turn that an input begins, and before the message of one that joins a turn. Several of them run in the order in
    /// which they were registered.
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// # struct Codes;
    /// # #[goondan::extension(name = "codes", guard)]
    /// # impl Codes {
    /// #[init]
    /// fn new(api: ExtensionApi) -> Result<Self> {
    ///     api.pipeline().mask_inputs(|text: &str| text.contains("4711").then(|| text.replace("4711", "[code]")))?;
    ///     Ok(Self)
    /// }
    /// # }
    /// ```
    ///
    /// It gets the input, and the texts of its parts, such as names of files; not the metadata of the event, which is
    /// the program's. The message, `input()` of contexts, and watchers of the turn have only the text that it
    /// returns. A masker that fails or panics refuses the input, also with `onError: skip`.
    ///
    /// # Errors
    /// `E_EXT_INIT` when registration is over: after `#[init]`.
    // REVIEW-01
    pub fn mask_inputs(&self, masker: impl InputMasker) -> Result<()> {
        self.host.register(AnyRegistration::InputMasker(Arc::new(masker)))
    }
}

/// Registers tools at run time, in `#[init]` or later. Returned by [`ExtensionApi::tools`].
///
/// `#[tool]` registers a function without this. Use it for tools that are known only at run time. A tool that is
/// registered after `#[init]` is in the catalog from the next step on. It can be withdrawn from a step by removing it
/// from the catalog of the step, and is gone when its extension is.
///
/// ```
/// use goondan::prelude::*;
/// use goondan::tool::{Effect, ToolHandler, ToolItem};
/// use goondan::{BoxFuture, Value};
///
/// struct Echo;
///
/// impl ToolHandler for Echo {
///     fn call<'a>(&'a self, _: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
///         Box::pin(async move { Ok(input.into()) })
///     }
/// }
///
/// # #[derive(Deserialize, JsonSchema)]
/// # struct Config {
/// #     name: String,
/// # }
/// # struct Echoes;
/// # #[goondan::extension(name = "echoes")]
/// # impl Echoes {
/// #[init]
/// fn new(api: ExtensionApi, config: Config) -> Result<Self> {
///     let item = ToolItem::new(&format!("echoes__{}", config.name))?.effect(Effect::Read);
///     api.tools().register(item, Echo)?;
///     Ok(Self)
/// }
/// # }
/// ```
// TOOL-04
pub struct ToolsApi<'a> {
    host: &'a dyn ExtensionHost,
}

impl ToolsApi<'_> {
    /// Adds a tool. It replaces a tool with the same name.
    ///
    /// # Errors
    /// `E_SCHEMA_INVALID` when the parameters are not a JSON Schema, or no object can fit it, unless the item is
    /// [lenient](ToolItem::lenient). `E_VALUE_DEPTH` when they are nested too deeply. `E_EXT_INIT` once the extension
    /// has cleaned up.
    // TOOL-03, LATE-01
    pub fn register(&self, item: ToolItem, handler: impl ToolHandler) -> Result<()> {
        self.host.register(AnyRegistration::Tool(Arc::new(item.checked()?), Arc::new(handler)))
    }
}
