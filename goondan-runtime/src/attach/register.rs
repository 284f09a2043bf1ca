//! Registration: runs the `register` of each extension, and combines their registrations.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use goondan_core::host::panic::{catch, catch_panics};
use goondan_core::host::{AnyMiddleware, Chain, in_order, mask_event};
use goondan_core::{
    AgentEvent, AnyRegistration, Effect, Error, ErrorCode, ExtensionApi, ExtensionName, InputMasker, Kind, LayerInfo,
    LogHost, Middleware, MiddlewareKind, MiddlewareOptions, Result, Step, ToolCall, ToolHandler, ToolItem, Turn,
};
use goondan_lock::Lock;

use super::active::{ActiveExtension, run_cleanup};
use super::handle::ExtensionHandle;
use super::late::LateTools;
use super::services::{Present, Services};
use crate::registry::{Described, PresenterState, SharedTools, Tool, ToolRegistry};
use crate::spec::{AgentSpec, ExtensionSpec};

/// The registrations of the extensions of one conversation.
pub(crate) struct Registered {
    pub(crate) turn: Chain<Turn>,
    pub(crate) step: Chain<Step>,
    pub(crate) tool_call: Chain<ToolCall>,
    maskers: Vec<(ExtensionName, Arc<dyn InputMasker>)>,
    /// Those of `#[init]`.
    tools: ToolRegistry,
    late: Arc<LateTools>,
    /// All of them, and how often a late one had been added when this was made.
    with_late: Lock<(u64, Arc<ToolRegistry>)>,
    shared: Arc<SharedTools>,
    /// The last field, so that the parts of an extension are dropped by the extension.
    pub(crate) extensions: Vec<Arc<ActiveExtension>>,
}

/// A set of extensions that have registered and are not active yet.
pub(crate) struct Staged {
    registered: Registered,
    /// The members of the set that were made for it; the others are active already.
    new: Vec<Arc<ActiveExtension>>,
}

impl Staged {
    /// Runs `register` of every extension of `spec`, one after another. An extension of `current` that `spec` describes
    /// unchanged is kept instead, whatever its position. After a failure, the new extensions are cleaned up.
    // ENTRY-02, ENTRY-03, LEGACY-RECONCILE-01, D-08
    pub(crate) async fn register_all(
        spec: &AgentSpec,
        services: &Arc<Services>,
        current: &[Arc<ActiveExtension>],
    ) -> Result<Self> {
        let kept = |spec: &Arc<ExtensionSpec>| current.iter().find(|active| active.matches(spec));
        let to_make: Vec<_> = spec.extensions.iter().filter(|spec| kept(spec).is_none()).collect();
        // Before `#[init]`, which may ask.
        let before = services.set_present(Present::new(spec, &*services.store));
        let (new, outcome) = make(&to_make, services, spec).await;
        let all = spec.extensions.iter().filter_map(|spec| {
            let mut found = new.iter().chain(kept(spec)).filter(|active| active.matches(spec));
            found.next().map(Arc::clone)
        });
        match outcome.and_then(|()| Registered::combine(all.collect(), spec, Arc::clone(&services.late))) {
            Ok(registered) => Ok(Self { registered, new }),
            Err(error) => {
                run_cleanup(&new).await;
                services.set_present(before);
                Err(error)
            }
        }
    }

    /// Activates the new extensions: their subscriptions start, and their state is the one that is stored.
    pub(crate) fn activate(self) -> Registered {
        for active in &self.new {
            active.activate();
        }
        self.registered
    }
}

/// Makes extensions until one fails. Returns those that were made, and the outcome.
async fn make(
    extensions: &[&Arc<ExtensionSpec>],
    services: &Arc<Services>,
    agent: &AgentSpec,
) -> (Vec<Arc<ActiveExtension>>, Result<()>) {
    let mut handles = Vec::new();
    let mut outcome = Ok(());
    for extension in extensions {
        let handle = ExtensionHandle::new(extension.name.clone(), Arc::clone(services), agent);
        outcome = register(extension, &handle, agent.policy.init_timeout).await;
        if outcome.is_err() {
            let registrations = handle.end_registration().into();
            drop(ActiveExtension::new(Arc::clone(extension), handle, registrations));
            break;
        }
        handles.push(handle);
    }
    // Ended for all at once: until the last `#[init]` returned, an extension may register from a task.
    let active = handles.into_iter().zip(extensions).map(|(handle, spec)| {
        let registrations = handle.end_registration().into();
        Arc::new(ActiveExtension::new(Arc::clone(spec), handle, registrations))
    });
    (active.collect(), outcome)
}

async fn register(extension: &ExtensionSpec, handle: &Arc<ExtensionHandle>, limit: Duration) -> Result<()> {
    let api = ExtensionApi::new(Arc::clone(handle) as Arc<dyn goondan_core::ExtensionHost>);
    let register = async { (extension.descriptor.register)(api, extension.config.clone()).await };
    let outcome = match tokio::time::timeout(limit, catch_panics(&extension.name, register)).await {
        Ok(outcome) => outcome.unwrap_or_else(|text| Err(Error::panicked(&text))),
        Err(_) => Err(Error::msg(format!("it took longer than {limit:?}"))
            .suggest("let a task do what takes long, or raise `Policy::init_timeout`")),
    };
    outcome.map_err(|error| {
        // Subscriptions that its code started would outlive it.
        handle.unsubscribe_all();
        init_error(error, &extension.name)
    })
}

impl Registered {
    /// Combines the registrations of `extensions`, in their order.
    fn combine(extensions: Vec<Arc<ActiveExtension>>, agent: &AgentSpec, late: Arc<LateTools>) -> Result<Self> {
        let (mut layers, mut maskers) = (Layers::default(), Vec::new());
        let mut tools = ToolRegistry::default();
        for active in &extensions {
            for registration in active.registrations() {
                match registration.clone() {
                    AnyRegistration::Middleware(middleware, options) => {
                        layers.push(active, middleware, options);
                    }
                    AnyRegistration::InputMasker(masker) => maskers.push((active.name().clone(), masker)),
                    AnyRegistration::Tool(item, handler) => add_tool(&mut tools, &agent.tools, active, item, handler)?,
                    AnyRegistration::Subscription(..) | AnyRegistration::Cleanup(_) => {}
                }
            }
        }
        let names: Vec<_> = extensions.iter().map(|active| active.name().clone()).collect();
        Ok(Self {
            turn: chain(layers.turn, &names, agent.policy.layer_timeout)?,
            step: chain(layers.step, &names, agent.policy.layer_timeout)?,
            tool_call: chain(layers.tool_call, &names, agent.policy.layer_timeout)?,
            maskers,
            tools,
            late,
            with_late: Lock::default(),
            shared: Arc::clone(&agent.tools),
            extensions,
        })
    }

    /// Masks the input of an event.
    ///
    /// # Errors
    /// The failure of a masker.
    // REVIEW-01
    #[inline]
    pub(crate) fn mask(&self, event: &mut AgentEvent) -> Result<()> {
        if self.maskers.is_empty() { Ok(()) } else { self.mask_by_all(event) }
    }

    #[cold]
    fn mask_by_all(&self, event: &mut AgentEvent) -> Result<()> {
        self.maskers.iter().try_for_each(|(extension, masker)| {
            mask_event(event, &mut |text| {
                let masked = catch(|| masker.mask(text)).unwrap_or_else(|text| Err(Error::panicked(&text)));
                masked.map_err(|error| error.at(extension, "masker of inputs"))
            })
        })
    }

    /// Returns all tools, those included that were registered after `#[init]`.
    // LATE-01
    #[inline]
    pub(crate) fn tools(&self) -> Tools<'_> {
        if self.late.changes() == 0 { Tools::Initial(&self.tools) } else { Tools::WithLate(self.with_late()) }
    }

    #[cold]
    fn with_late(&self) -> Arc<ToolRegistry> {
        let mut cached = self.with_late.lock();
        if cached.0 != self.late.changes() {
            let (changes, added) = self.late.all();
            let mut tools = self.tools.clone();
            for tool in added {
                // An extension that is not in the list is being replaced.
                let Some(active) = self.extensions.iter().find(|active| *active.handle().owner() == tool.owner) else {
                    continue;
                };
                if let Err(error) = add_tool(&mut tools, &self.shared, active, tool.item, tool.handler) {
                    tracing::error!(code = %error.code(), "{}", error.report());
                }
            }
            *cached = (changes, Arc::new(tools));
        }
        Arc::clone(&cached.1)
    }

    /// The layers of one kind, outermost first.
    pub(crate) fn layers(&self, kind: MiddlewareKind) -> Vec<LayerInfo> {
        match kind {
            MiddlewareKind::Turn => self.turn.layers().cloned().collect(),
            MiddlewareKind::Step => self.step.layers().cloned().collect(),
            MiddlewareKind::ToolCall => self.tool_call.layers().cloned().collect(),
            // The runtime has no chain of another kind.
            _ => Vec::new(),
        }
    }
}

/// The tools of a conversation at one moment.
pub(crate) enum Tools<'a> {
    Initial(&'a ToolRegistry),
    WithLate(Arc<ToolRegistry>),
}

impl Deref for Tools<'_> {
    type Target = ToolRegistry;

    fn deref(&self) -> &ToolRegistry {
        match self {
            Self::Initial(tools) => tools,
            Self::WithLate(tools) => tools,
        }
    }
}

/// Adds a tool of `active`.
fn add_tool(
    tools: &mut ToolRegistry,
    shared: &SharedTools,
    active: &ActiveExtension,
    item: Arc<ToolItem>,
    handler: Arc<dyn ToolHandler>,
) -> Result<()> {
    let (name, extension) = (item.name.clone(), active.name());
    let Described { item, schema } = shared.describe(item, extension)?;
    let tool = Tool {
        handler,
        schema,
        effect: item.effect,
        timeout: item.timeout,
        asks: item.asks,
        parallel: item.parallel || item.effect == Effect::Read,
        log: Arc::clone(active.handle()) as Arc<dyn LogHost>,
        extension: extension.clone(),
        presenter: PresenterState::default(),
    };
    if let Some(other) = tools.insert(item, tool).filter(|other| other != extension) {
        // TOOL-03: the later one wins, with a warning.
        tracing::warn!(tool = %name, %extension, replaced = %other, "a tool replaces that of another extension");
    }
    Ok(())
}

/// Wraps a failure of `register` in `E_EXT_INIT`, unless the config or a schema is at fault.
// ERR-03, ERR-04
fn init_error(error: Error, extension: &ExtensionName) -> Error {
    let error = if [ErrorCode::EXT_CONFIG, ErrorCode::SCHEMA_INVALID].contains(error.code()) {
        error
    } else {
        let failed = Error::new(ErrorCode::EXT_INIT, "the extension could not be initialized");
        // ERR-06: the remedy of the cause is the remedy.
        let failed = match error.suggestion() {
            Some(suggestion) => failed.suggest(suggestion.to_owned()),
            None => failed,
        };
        failed.caused_by(error)
    };
    let error = error.at(extension, "#[init]");
    // LOAD-09. The caller gets the error too and reports it, so this line is for those who look for details.
    tracing::debug!(%extension, code = %error.code(), "{}", error.report());
    error
}

/// Orders the layers of one kind. Contradictory constraints are an error, which is logged too.
// LOAD-12
fn chain<K: Kind>(layers: LayersOf<K>, extensions: &[ExtensionName], timeout: Duration) -> Result<Chain<K>> {
    let layers = in_order(layers, extensions);
    let layers = layers.inspect_err(|error| tracing::error!(code = %error.code(), "{}", error.report()))?;
    let sleep = |after| -> goondan_core::BoxFuture<'static, ()> {
        Box::pin(tokio::task::unconstrained(tokio::time::sleep(after)))
    };
    Ok(Chain::new(layers, goondan_core::host::LayerTimeout { after: timeout, sleep }))
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
    fn push(&mut self, active: &ActiveExtension, middleware: AnyMiddleware, options: MiddlewareOptions) {
        let mut info = LayerInfo::new(active.name().clone(), middleware.kind(), options);
        (info.on_error, info.guards_swarm) = (active.on_error(), active.guards_swarm());
        match middleware {
            AnyMiddleware::Turn(middleware) => self.turn.push((info, middleware)),
            AnyMiddleware::Step(middleware) => self.step.push((info, middleware)),
            AnyMiddleware::ToolCall(middleware) => self.tool_call.push((info, middleware)),
        }
    }
}
