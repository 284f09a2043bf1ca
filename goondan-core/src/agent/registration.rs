//! Owns registration: running every extension's `register`, and making one whole of what they asked for.

use std::sync::{Arc, Mutex, PoisonError};

use super::builder::ExtensionSpec;
use crate::error::{Error, ErrorCode, Result};
use crate::extension::{AnyRegistration, ExtensionApi, ExtensionHost};
use crate::name::ExtensionName;
use crate::pipeline::{
    AnyMiddleware, Chain, LayerInfo, Middleware, Options, Step, ToolCall, Turn, catch_panics, in_order,
};
use crate::tool::ToolRegistry;

/// What the extensions of one instance registered.
pub(super) struct Registered {
    pub(super) turn: Chain<Turn>,
    pub(super) step: Chain<Step>,
    pub(super) tool_call: Chain<ToolCall>,
    pub(super) tools: ToolRegistry,
}

impl Registered {
    /// Runs `register` of every extension, one after another (ENTRY-02, ENTRY-03). It takes effect as a whole: after a
    /// failure nothing that was registered before stays (D-08).
    pub(super) async fn build(extensions: &[ExtensionSpec]) -> Result<Self> {
        let notes = Arc::new(Notes(Mutex::new(Some(Vec::new()))));
        for extension in extensions {
            let recorder = Recorder { extension: extension.name.clone(), notes: Arc::clone(&notes) };
            let api = ExtensionApi::new(Arc::new(recorder));
            let register = (extension.descriptor.register)(api, extension.config.clone());
            let outcome = catch_panics(register).await.unwrap_or_else(Err);
            outcome.map_err(|error| init_error(error, &extension.name))?;
        }
        let mut layers = Layers::default();
        let mut tools = ToolRegistry::default();
        for (extension, registration) in notes.close() {
            match registration {
                AnyRegistration::Middleware(middleware, options) => layers.push(extension, middleware, options),
                AnyRegistration::Tool(item, handler) => {
                    tools.insert(item, handler).map_err(|error| error.at(&extension, "tool registration"))?;
                }
            }
        }
        Ok(Self {
            turn: Chain::new(in_order(layers.turn)),
            step: Chain::new(in_order(layers.step)),
            tool_call: Chain::new(in_order(layers.tool_call)),
            tools,
        })
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

/// The middlewares of each kind, in registration order.
#[derive(Default)]
struct Layers {
    turn: Vec<(LayerInfo, Arc<dyn Middleware<Turn>>)>,
    step: Vec<(LayerInfo, Arc<dyn Middleware<Step>>)>,
    tool_call: Vec<(LayerInfo, Arc<dyn Middleware<ToolCall>>)>,
}

impl Layers {
    fn push(&mut self, extension: ExtensionName, middleware: AnyMiddleware, options: Options) {
        let kind = middleware.kind();
        let hook = match options.name.as_ref() {
            "" => format!("{kind} middleware"),
            name => format!("{kind} middleware `{name}`"),
        };
        let info = LayerInfo { extension, hook, priority: options.priority };
        match middleware {
            AnyMiddleware::Turn(middleware) => self.turn.push((info, middleware)),
            AnyMiddleware::Step(middleware) => self.step.push((info, middleware)),
            AnyMiddleware::ToolCall(middleware) => self.tool_call.push((info, middleware)),
        }
    }
}

/// What was registered so far, by whom; `None` once registration is over.
struct Notes(Mutex<Option<Vec<(ExtensionName, AnyRegistration)>>>);

impl Notes {
    fn close(&self) -> Vec<(ExtensionName, AnyRegistration)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

/// Behind the [`ExtensionApi`] of one extension.
struct Recorder {
    extension: ExtensionName,
    notes: Arc<Notes>,
}

impl ExtensionHost for Recorder {
    fn extension(&self) -> &ExtensionName {
        &self.extension
    }

    fn register(&self, registration: AnyRegistration) -> Result<()> {
        match &mut *self.notes.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(notes) => {
                notes.push((self.extension.clone(), registration));
                Ok(())
            }
            None => Err(Error::new(ErrorCode::EXT_INIT, "registration is over")
                .suggest("register in `#[init]`; what is registered later would change turns that run already")
                .at(&self.extension, "registration")),
        }
    }
}
