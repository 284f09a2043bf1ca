//! Owns what the tests put in the place of the runtime.

use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use goondan::{
    AgentEvent, AgentName, AnyRegistration, CleanupHandler, Deliveries, Event, EventHandler, EventPattern, Extension,
    ExtensionApi, ExtensionHost, ExtensionName, InstanceKey, LogHost, LogLevel, Logger, Map, Message, MiddlewareKind,
    Options, Result, ToolCallId, ToolContext, ToolHandler, ToolItem, ToolName, TraceId, TurnId, Value,
};
use goondan_core::AgentsHost;
use goondan_core::host::{ToolHost, TurnInfo};
use goondan_core::pipeline::AnyMiddleware;

/// Notes what an extension registers and does.
pub(crate) struct Recorder {
    name: ExtensionName,
    noted: Mutex<Vec<AnyRegistration>>,
    state: Mutex<Option<Value>>,
    emitted: Mutex<Vec<Event>>,
}

impl ExtensionHost for Recorder {
    fn extension(&self) -> &ExtensionName {
        &self.name
    }

    fn register(&self, registration: AnyRegistration) -> Result<()> {
        self.noted.lock().unwrap().push(registration);
        Ok(())
    }

    fn state(&self) -> Option<Value> {
        self.state.lock().unwrap().clone()
    }

    fn update_state(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        *state = Some(change(state.clone())?);
        Ok(())
    }

    fn subscribe(&self, _: EventPattern, _: Deliveries, _: Arc<dyn EventHandler>) -> u64 {
        panic!("attributes register subscriptions, and start none")
    }

    fn unsubscribe(&self, _: u64) {}

    fn emit(&self, event: Event) {
        self.emitted.lock().unwrap().push(event);
    }
}

impl LogHost for Recorder {
    fn log(&self, _: LogLevel, _: &str, _: &Map<String, Value>) {}
}

/// Runs the generated `register`.
pub(crate) fn attached<E: Extension>(config: Value) -> Result<Arc<Recorder>> {
    let descriptor = E::DESCRIPTOR;
    let name = ExtensionName::new(descriptor.name)?;
    let host = Arc::new(Recorder { name, noted: Mutex::default(), state: Mutex::default(), emitted: Mutex::default() });
    ready((descriptor.register)(ExtensionApi::new(host.clone()), config))?;
    Ok(host)
}

impl Recorder {
    /// What was registered, in words.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |registration: &AnyRegistration| match registration {
            AnyRegistration::Middleware(_, options) => format!("middleware {}", options.name),
            AnyRegistration::Tool(item, _) => format!("tool {}", item.name),
            AnyRegistration::Subscription(pattern, _) => format!("on {pattern}"),
            AnyRegistration::Cleanup(_) => "cleanup".to_owned(),
        };
        self.noted.lock().unwrap().iter().map(name).collect()
    }

    /// The middlewares.
    pub(crate) fn layers(&self) -> Vec<(AnyMiddleware, Options)> {
        self.found(|registration| match registration {
            AnyRegistration::Middleware(middleware, options) => Some((middleware.clone(), options.clone())),
            _ => None,
        })
    }

    /// The tools.
    pub(crate) fn tools(&self) -> Vec<(ToolItem, Arc<dyn ToolHandler>)> {
        self.found(|registration| match registration {
            AnyRegistration::Tool(item, handler) => Some((ToolItem::clone(item), Arc::clone(handler))),
            _ => None,
        })
    }

    /// Hands `event` to every subscription that it fits.
    pub(crate) fn deliver(&self, event: &Event) -> Vec<Result<()>> {
        let handlers: Vec<Arc<dyn EventHandler>> = self.found(|registration| match registration {
            AnyRegistration::Subscription(pattern, handler) if pattern.matches(event.name()) => Some(handler.clone()),
            _ => None,
        });
        handlers.iter().map(|handler| ready(handler.handle(event))).collect()
    }

    /// Runs the cleanups.
    pub(crate) fn clean_up(&self) -> Vec<Result<()>> {
        let handlers: Vec<Arc<dyn CleanupHandler>> = self.found(|registration| match registration {
            AnyRegistration::Cleanup(handler) => Some(handler.clone()),
            _ => None,
        });
        handlers.iter().map(|handler| ready(handler.clean_up())).collect()
    }

    /// Calls the tool `name`.
    pub(crate) fn call(&self, name: &str, input: Value) -> Result<Value> {
        let (item, handler) = self.tools().into_iter().find(|(item, _)| item.name == *name).unwrap();
        let call = ToolRun { info: info(), id: "call-1".into(), tool: item.name, message: Message::user("hello") };
        ready(handler.call(&ToolContext::new(&call), input))
    }

    /// The names of the events that were emitted.
    pub(crate) fn emitted(&self) -> Vec<String> {
        self.emitted.lock().unwrap().iter().map(|event| event.name().to_owned()).collect()
    }

    fn found<T>(&self, what: impl Fn(&AnyRegistration) -> Option<T>) -> Vec<T> {
        self.noted.lock().unwrap().iter().filter_map(what).collect()
    }
}

/// Runs the generated `register`, and gives the middlewares.
pub(crate) fn registered<E: Extension>(config: Value) -> Result<Vec<(AnyMiddleware, Options)>> {
    Ok(attached::<E>(config)?.layers())
}

/// The same, as kind, name and priority.
pub(crate) fn layers<E: Extension>(config: Value) -> Vec<(MiddlewareKind, String, i32)> {
    let all = registered::<E>(config).unwrap();
    all.into_iter().map(|(layer, options)| (layer.kind(), options.name.into_owned(), options.priority)).collect()
}

/// A turn that does not run.
pub(crate) fn info() -> TurnInfo {
    TurnInfo {
        agent: AgentName::new("a").unwrap(),
        instance: InstanceKey::new("k").unwrap(),
        turn: TurnId::random(),
        trace: TraceId::random(),
        input: AgentEvent::input("hello"),
    }
}

/// A call of a tool.
struct ToolRun {
    info: TurnInfo,
    id: ToolCallId,
    tool: ToolName,
    message: Message,
}

impl ToolHost for ToolRun {
    fn scope(&self) -> &TurnInfo {
        &self.info
    }

    fn call_id(&self) -> &ToolCallId {
        &self.id
    }

    fn tool_name(&self) -> &ToolName {
        &self.tool
    }

    fn message(&self) -> &Message {
        &self.message
    }

    fn workdir(&self) -> Result<&Path> {
        panic!("these tools work nowhere")
    }

    fn logger(&self) -> Logger<'_> {
        panic!("these tools write no log")
    }

    fn agents(&self) -> &dyn AgentsHost {
        panic!("these tools ask nobody")
    }
}

/// The value of a future that is never pending for long.
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
        std::thread::yield_now();
    }
}
