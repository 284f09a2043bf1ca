//! Owns registration: running every extension's `register`, and making one whole of what they asked for.

use std::sync::Arc;
use std::time::Duration;

use super::AgentInner;
use super::services::{ExtensionServices, Handle, Notes, Services};
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Event, ExtensionCleanup};
use crate::extension::{AnyRegistration, CleanupHandler, Deliveries, ExtensionApi, LogHost};
use crate::name::ExtensionName;
use crate::pipeline::{
    AnyMiddleware, Chain, Kind, LayerInfo, Middleware, MiddlewareKind, Options, Step, ToolCall, Turn, catch_panics,
    in_order,
};
use crate::tool::ToolRegistry;

/// How long one extension may take to clean up.
const CLEANUP_LIMIT: Duration = Duration::from_secs(5);

/// What the extensions of one instance registered.
pub(super) struct Registered {
    pub(super) turn: Chain<Turn>,
    pub(super) step: Chain<Step>,
    pub(super) tool_call: Chain<ToolCall>,
    pub(super) tools: ToolRegistry,
    extensions: Vec<ExtensionName>,
    cleanups: Vec<(ExtensionName, Arc<dyn CleanupHandler>)>,
}

impl Registered {
    /// Runs `register` of every extension, one after another (ENTRY-02, ENTRY-03). It takes effect as a whole: after a
    /// failure nothing that was registered before stays (D-08).
    pub(super) async fn build(agent: &AgentInner, services: &Arc<Services>) -> Result<Self> {
        let extensions = &agent.extensions;
        let notes = Arc::new(Notes::new());
        for extension in extensions {
            let host = ExtensionServices::new(extension.name.clone(), Arc::clone(services), Arc::clone(&notes));
            let api = ExtensionApi::new(Arc::new(Handle(host)));
            let register = (extension.descriptor.register)(api, extension.config.clone());
            let outcome = catch_panics(register).await.unwrap_or_else(Err);
            outcome.map_err(|error| init_error(error, &extension.name))?;
        }
        let mut layers = Layers::default();
        let mut tools = ToolRegistry::default();
        let mut cleanups = Vec::new();
        for (host, registration) in notes.close() {
            let extension = &host.extension;
            match registration {
                AnyRegistration::Middleware(middleware, options) => layers.push(extension, middleware, options),
                AnyRegistration::Tool(item, handler) => {
                    let name = item.name.clone();
                    let owner = Arc::clone(&host) as Arc<dyn LogHost>;
                    let replaced = tools
                        .insert(item, handler, extension.clone(), owner, &agent.schemas)
                        .map_err(|error| error.at(extension, format!("tool `{name}`")))?;
                    if let Some(other) = replaced.filter(|other| other != extension) {
                        // TOOL-03: the later one wins, but nobody should have to guess why.
                        tracing::warn!(tool = %name, %extension, replaced = %other, "a tool replaces that of another extension");
                    }
                }
                AnyRegistration::Subscription(pattern, handler) => {
                    services.bus.subscribe(Some(extension.clone()), pattern, Deliveries::All, handler);
                }
                AnyRegistration::Cleanup(handler) => cleanups.push((extension.clone(), handler)),
            }
        }
        let extensions: Vec<_> = extensions.iter().map(|extension| extension.name.clone()).collect();
        Ok(Self {
            turn: chain(layers.turn, &extensions)?,
            step: chain(layers.step, &extensions)?,
            tool_call: chain(layers.tool_call, &extensions)?,
            tools,
            extensions,
            cleanups,
        })
    }

    /// The layers of one kind, outermost first.
    pub(super) fn layers(&self, kind: MiddlewareKind) -> &[LayerInfo] {
        match kind {
            MiddlewareKind::Turn => self.turn.layers(),
            MiddlewareKind::Step => self.step.layers(),
            MiddlewareKind::ToolCall => self.tool_call.layers(),
        }
    }

    /// Tells every extension that it goes away, and lets it clean up, the last registered first (LOAD-11).
    pub(super) async fn clean_up(&self, services: &Services) {
        for extension in &self.extensions {
            let payload = ExtensionCleanup { extension: extension.clone() };
            match Event::new(ExtensionCleanup::NAME, (payload,)) {
                Ok(event) => services.bus.emit(event),
                Err(error) => tracing::error!(%extension, "{}", error.report()),
            }
        }
        services.bus.drain(CLEANUP_LIMIT).await;
        for (extension, handler) in self.cleanups.iter().rev() {
            let outcome = tokio::time::timeout(CLEANUP_LIMIT, catch_panics(handler.clean_up())).await;
            // What has cleaned up hears nothing more.
            services.bus.unsubscribe_owner(extension);
            let problem = match outcome {
                Ok(Ok(Ok(()))) => continue,
                Ok(Ok(Err(error)) | Err(error)) => error.at(extension, "#[cleanup]").report().to_string(),
                Err(_) => format!("it took longer than {CLEANUP_LIMIT:?}"),
            };
            tracing::error!(%extension, "the extension could not clean up: {problem}");
        }
    }
}

/// ERR-03: whatever failed in `register` is `E_EXT_INIT`, unless it is the config (ERR-04).
fn init_error(error: Error, extension: &ExtensionName) -> Error {
    let error = if *error.code() == ErrorCode::EXT_CONFIG {
        error
    } else {
        Error::new(ErrorCode::EXT_INIT, "the extension could not be initialized").caused_by(error)
    };
    let error = error.at(extension, "#[init]");
    tracing::error!(%extension, code = %error.code(), "{}", error.report());
    error
}

/// The layers of one kind. Extensions that each must be outside of the other are an error, which the log has, too (LOAD-12).
fn chain<K: Kind>(layers: LayersOf<K>, extensions: &[ExtensionName]) -> Result<Chain<K>> {
    let layers = in_order(layers, extensions);
    layers.inspect_err(|error| tracing::error!(code = %error.code(), "{}", error.report())).map(Chain::new)
}

type LayersOf<K> = Vec<(LayerInfo, Arc<dyn Middleware<K>>)>;

/// The middlewares of each kind, in registration order.
#[derive(Default)]
struct Layers {
    turn: LayersOf<Turn>,
    step: LayersOf<Step>,
    tool_call: LayersOf<ToolCall>,
}

impl Layers {
    fn push(&mut self, extension: &ExtensionName, middleware: AnyMiddleware, options: Options) {
        let info = LayerInfo::new(extension.clone(), middleware.kind(), options);
        match middleware {
            AnyMiddleware::Turn(middleware) => self.turn.push((info, middleware)),
            AnyMiddleware::Step(middleware) => self.step.push((info, middleware)),
            AnyMiddleware::ToolCall(middleware) => self.tool_call.push((info, middleware)),
        }
    }
}
