//! Owns registration: running the `register` of extensions, and making one whole of what they asked for.

use std::sync::Arc;

use super::attached::{Attached, take_leave};
use super::builder::ExtensionSpec;
use super::description::Description;
use super::services::{ExtensionServices, Handle, Notes, Services};
use crate::error::{Error, ErrorCode, Result};
use crate::extension::{AnyRegistration, ExtensionApi};
use crate::log::LogHost;
use crate::name::ExtensionName;
use crate::panic::catch_panics;
use crate::pipeline::{
    AnyMiddleware, Chain, Kind, LayerInfo, Middleware, MiddlewareKind, Options, Step, ToolCall, Turn, in_order,
};
use crate::tool::{SharedTools, ToolRegistry};

/// What the extensions of one instance registered.
pub(super) struct Registered {
    pub(super) turn: Chain<Turn>,
    pub(super) step: Chain<Step>,
    pub(super) tool_call: Chain<ToolCall>,
    pub(super) tools: ToolRegistry,
    pub(super) extensions: Vec<Arc<Attached>>,
}

/// A set of extensions that has not taken effect.
pub(super) struct Prepared {
    registered: Registered,
    /// Those of the set that were made for it.
    new: Vec<Arc<Attached>>,
}

impl Prepared {
    /// Runs `register` of every extension, one after another (ENTRY-02, ENTRY-03). What `current` has as it is described is
    /// taken from there instead, whatever its place (LEGACY-RECONCILE-01). After a failure nothing new stays (D-08).
    pub(super) async fn of(
        description: &Description,
        services: &Arc<Services>,
        current: &[Arc<Attached>],
    ) -> Result<Self> {
        let kept = |spec: &Arc<ExtensionSpec>| current.iter().find(|attached| attached.is(spec));
        let to_make: Vec<_> = description.extensions.iter().filter(|spec| kept(spec).is_none()).collect();
        let (new, made) = make(&to_make, services, &description.tools).await;
        let all = description.extensions.iter().filter_map(|spec| {
            let mut found = new.iter().chain(kept(spec)).filter(|attached| attached.is(spec));
            found.next().map(Arc::clone)
        });
        match made.and_then(|()| Registered::of(all.collect(), &description.tools)) {
            Ok(registered) => Ok(Self { registered, new }),
            Err(error) => {
                take_leave(&new).await;
                Err(error)
            }
        }
    }

    /// The set takes effect: its events reach it, and its state is kept.
    pub(super) fn take_effect(self) -> Registered {
        for attached in &self.new {
            attached.take_effect();
        }
        self.registered
    }
}

/// Makes extensions: those that came to be, and what kept the others from it.
async fn make(
    extensions: &[&Arc<ExtensionSpec>],
    services: &Arc<Services>,
    tools: &SharedTools,
) -> (Vec<Arc<Attached>>, Result<()>) {
    let notes = Arc::new(Notes::new());
    let mut hosts = Vec::new();
    let outcome = register(extensions, services, &notes, &mut hosts).await;
    let mut notes = notes.close();
    let shared = |registration, extension: &_| match registration {
        AnyRegistration::Tool(item, handler) => AnyRegistration::Tool(tools.share(item, extension), handler),
        other => other,
    };
    let attach = |(host, spec): (Arc<ExtensionServices>, &&Arc<ExtensionSpec>)| {
        let own = notes.extract_if(.., |(of, _)| of.extension == spec.name);
        let registrations = own.map(|(_, registration)| shared(registration, &spec.name)).collect();
        Arc::new(Attached::new(Arc::clone(spec), host, registrations))
    };
    (hosts.into_iter().zip(extensions).map(attach).collect(), outcome)
}

async fn register(
    extensions: &[&Arc<ExtensionSpec>],
    services: &Arc<Services>,
    notes: &Arc<Notes>,
    hosts: &mut Vec<Arc<ExtensionServices>>,
) -> Result<()> {
    for extension in extensions {
        let host = ExtensionServices::new(extension.name.clone(), Arc::clone(services), Arc::clone(notes));
        let api = ExtensionApi::new(Arc::new(Handle(Arc::clone(&host))));
        let register = (extension.descriptor.register)(api, extension.config.clone());
        let outcome = catch_panics(register).await.unwrap_or_else(Err);
        // What it subscribed to by hand would outlive it.
        let outcome = outcome.inspect_err(|_| host.unsubscribe_all());
        outcome.map_err(|error| init_error(error, &extension.name))?;
        hosts.push(host);
    }
    Ok(())
}

impl Registered {
    /// The whole of what `extensions` registered, in their order.
    fn of(extensions: Vec<Arc<Attached>>, shared: &SharedTools) -> Result<Self> {
        let mut layers = Layers::default();
        let mut tools = ToolRegistry::default();
        for attached in &extensions {
            let extension = attached.name();
            for registration in attached.registrations() {
                match registration.clone() {
                    AnyRegistration::Middleware(middleware, options) => layers.push(extension, middleware, options),
                    AnyRegistration::Tool(item, handler) => {
                        let name = item.name.clone();
                        let owner = Arc::clone(attached.host()) as Arc<dyn LogHost>;
                        let replaced = tools
                            .insert(item, handler, extension.clone(), owner, shared)
                            .map_err(|error| error.at(extension, format!("tool `{name}`")))?;
                        if let Some(other) = replaced.filter(|other| other != extension) {
                            // TOOL-03: the later one wins, but nobody should have to guess why.
                            tracing::warn!(tool = %name, %extension, replaced = %other, "a tool replaces that of another extension");
                        }
                    }
                    AnyRegistration::Subscription(..) | AnyRegistration::Cleanup(_) => {}
                }
            }
        }
        let names: Vec<_> = extensions.iter().map(|attached| attached.name().clone()).collect();
        Ok(Self {
            turn: chain(layers.turn, &names)?,
            step: chain(layers.step, &names)?,
            tool_call: chain(layers.tool_call, &names)?,
            tools,
            extensions,
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
