//! Test hosts that replace the runtime.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use goondan::conversation::{Message, ToolOutput};
use goondan::decision::{Decision, Question};
use goondan::event::{
    AgentDelegate, AgentEvent, AgentReload, AgentReloadAnswer, Event, EventHandler, EventPattern, Shown,
};
use goondan::extension::{
    AnyRegistration, CleanupHandler, Deliveries, Extension, ExtensionApi, ExtensionHost, ExtensionInfo, LogHost,
    LogLevel, Logger,
};
use goondan::middleware::{MiddlewareKind, MiddlewareOptions};
use goondan::name::{AgentName, ExtensionName, InstanceKey, ToolCallId, ToolName};
use goondan::tool::{ToolContext, ToolHandler, ToolItem};
use goondan::{BoxFuture, Error, Map, Result, Value};
use goondan_core::AgentsHost;
use goondan_core::host::AnyMiddleware;
use goondan_core::host::{ConversationHost, ReplySize, ToolHost, TurnInfo};

/// Records what an extension registers, emits and stores.
pub(crate) struct Recorder {
    name: ExtensionName,
    registrations: Mutex<Vec<AnyRegistration>>,
    state: Mutex<Option<Value>>,
    emitted: Mutex<Vec<Event>>,
}

impl ExtensionHost for Recorder {
    fn extension(&self) -> &ExtensionName {
        &self.name
    }

    fn register(&self, registration: AnyRegistration) -> Result<()> {
        self.registrations.lock().unwrap().push(registration);
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

    fn shared_state(&self) -> Result<Option<Value>> {
        panic!("attributes share no state")
    }

    fn update_shared_state(&self, _: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        panic!("attributes share no state")
    }

    fn subscribe(&self, _: EventPattern, _: Deliveries, _: Arc<dyn EventHandler>) -> u64 {
        panic!("attributes register subscriptions, and do not start them")
    }

    fn unsubscribe(&self, _: u64) {}

    fn emit(&self, event: Event) {
        self.emitted.lock().unwrap().push(event);
    }

    fn show(&self, _: Shown) {
        panic!("no extension shows anything")
    }

    fn delegate(&self, _: AgentDelegate) {
        panic!("no extension delegates")
    }

    fn reload(&self, _: AgentReload) -> BoxFuture<'static, AgentReloadAnswer> {
        panic!("no extension requests a reload")
    }

    fn info(&self) -> Result<ExtensionInfo> {
        Ok(ExtensionInfo {
            extension: self.name.clone(),
            agent: "assistant".parse()?,
            instance: "one".parse()?,
            workspace: None,
            bundle_root: None,
            inspect: false,
            conversation: 1,
            extensions: Vec::new(),
            bundle_files: Arc::default(),
            secret_variables: Arc::default(),
        })
    }

    fn state_dir(&self) -> Result<PathBuf> {
        panic!("attributes make no directories")
    }
}

impl LogHost for Recorder {
    fn log(&self, _: LogLevel, _: &str, _: &Map<String, Value>) {}
}

/// Runs the generated `register` function, and returns the recorder.
pub(crate) fn register<E: Extension>(config: Value) -> Result<Arc<Recorder>> {
    let descriptor = E::DESCRIPTOR;
    let name = ExtensionName::new(descriptor.name)?;
    let host = Arc::new(Recorder {
        name,
        registrations: Mutex::default(),
        state: Mutex::default(),
        emitted: Mutex::default(),
    });
    block_on((descriptor.register)(ExtensionApi::new(host.clone()), config))?;
    Ok(host)
}

impl Recorder {
    /// The registrations as text, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |registration: &AnyRegistration| match registration {
            AnyRegistration::Middleware(_, options) => format!("middleware {}", options.name),
            AnyRegistration::InputMasker(_) => "masker".to_owned(),
            AnyRegistration::Tool(item, _) => format!("tool {}", item.name),
            AnyRegistration::Subscription(pattern, _) => format!("on {pattern}"),
            AnyRegistration::Cleanup(_) => "cleanup".to_owned(),
        };
        self.registrations.lock().unwrap().iter().map(name).collect()
    }

    /// The registered middlewares.
    pub(crate) fn middlewares(&self) -> Vec<(AnyMiddleware, MiddlewareOptions)> {
        self.filtered(|registration| match registration {
            AnyRegistration::Middleware(middleware, options) => Some((middleware.clone(), options.clone())),
            _ => None,
        })
    }

    /// The registered tools.
    pub(crate) fn tools(&self) -> Vec<(ToolItem, Arc<dyn ToolHandler>)> {
        self.filtered(|registration| match registration {
            AnyRegistration::Tool(item, handler) => Some((ToolItem::clone(item), Arc::clone(handler))),
            _ => None,
        })
    }

    /// Calls the handler of every subscription that matches `event`.
    pub(crate) fn deliver(&self, event: &Event) -> Vec<Result<()>> {
        let handlers: Vec<Arc<dyn EventHandler>> = self.filtered(|registration| match registration {
            AnyRegistration::Subscription(pattern, handler) if pattern.matches(event.name()) => Some(handler.clone()),
            _ => None,
        });
        handlers.iter().map(|handler| block_on(handler.handle(event))).collect()
    }

    /// Calls the registered cleanups.
    pub(crate) fn clean_up(&self) -> Vec<Result<()>> {
        let handlers: Vec<Arc<dyn CleanupHandler>> = self.filtered(|registration| match registration {
            AnyRegistration::Cleanup(handler) => Some(handler.clone()),
            _ => None,
        });
        handlers.iter().map(|handler| block_on(handler.clean_up())).collect()
    }

    /// Calls the tool `name`.
    pub(crate) fn call(&self, name: &str, input: Value) -> Result<Value> {
        let (item, handler) = self.tools().into_iter().find(|(item, _)| item.name == *name).unwrap();
        let call = FakeToolCall { info: info(), id: "call-1".into(), tool: item.name, message: Message::user("hello") };
        block_on(handler.call(&ToolContext::new(&call), input)).map(|reply| match reply.into_output() {
            ToolOutput::Text(text) => text.into(),
            ToolOutput::Json(value) => value,
            other => panic!("{other:?}"),
        })
    }

    /// The names of the emitted events.
    pub(crate) fn emitted(&self) -> Vec<String> {
        self.emitted.lock().unwrap().iter().map(|event| event.name().to_owned()).collect()
    }

    fn filtered<T>(&self, filter: impl Fn(&AnyRegistration) -> Option<T>) -> Vec<T> {
        self.registrations.lock().unwrap().iter().filter_map(filter).collect()
    }
}

/// Runs the generated `register` function, and returns kind, name and priority of each middleware.
pub(crate) fn middlewares<E: Extension>(config: Value) -> Vec<(MiddlewareKind, String, i32)> {
    let all = register::<E>(config).unwrap().middlewares();
    all.into_iter()
        .map(|(middleware, options)| (middleware.kind(), options.name.into_owned(), options.priority))
        .collect()
}

/// The ids and the input of a turn, for hosts that run none.
pub(crate) fn info() -> TurnInfo {
    TurnInfo::new(AgentName::new("a").unwrap(), InstanceKey::new("k").unwrap(), AgentEvent::input("hello"))
}

/// A tool call without a turn around it.
struct FakeToolCall {
    info: TurnInfo,
    id: ToolCallId,
    tool: ToolName,
    message: Message,
}

impl ToolHost for FakeToolCall {
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

    fn conversation(&self) -> &dyn ConversationHost {
        panic!("these tools do not read the conversation")
    }

    fn workdir(&self) -> Result<&Path> {
        panic!("these tools use no workdir")
    }

    fn max_reply(&self) -> ReplySize {
        ReplySize::UNLIMITED
    }

    fn max_output(&self) -> u64 {
        u64::MAX
    }

    fn ask_live(&self, _: Question) -> BoxFuture<'_, Result<Value>> {
        Box::pin(async { Err(Error::msg("no person is asked")) })
    }

    fn decisions(&self) -> Result<Vec<Decision>> {
        Ok(Vec::new())
    }

    fn logger(&self) -> Logger<'_> {
        panic!("these tools do not log")
    }

    fn agents(&self) -> &dyn AgentsHost {
        panic!("these tools do not call other agents")
    }

    fn progress(&self, _: f64, _: Option<f64>, _: &str) {
        panic!("these tools do not say how far they are")
    }
}

/// Polls the future until it is ready. Only for futures that are ready soon: it spins.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
        std::thread::yield_now();
    }
}
