//! A step whose layers come out of a library, or are linked, or are written by hand.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use goondan_core::host::{ConversationHost, MessageHost, RunHost, StepHost, TurnInfo};
use goondan_core::linkage::{CoreRun, Crossing};
use goondan_core::pipeline::{AnyMiddleware, Chain};
use goondan_core::{
    AgentEvent, AgentName, AgentsHost, AnyRegistration, BoxFuture, Conversation, Deliveries, Event, EventHandler,
    EventPattern, ExtensionApi, ExtensionDescriptor, ExtensionHost, ExtensionName, InstanceKey, LayerInfo, LogHost,
    LogLevel, Message, MessageEvent, MiddlewareKind, Result, Step, StepResult, ToolCatalog, TraceId, TurnId,
};
use serde_json::{Map, Value, json};

/// Builds the library of the measured layers below `target`, as users build theirs, with these features.
pub fn library(target: &Path, features: &[&str]) -> PathBuf {
    let target = target.join(format!("library-{}", features.join("-")));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--package", "abi-fixture"]).args(["--features", &features.join(",")]);
    let status = cargo.arg("--target-dir").arg(&target).current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(status.expect("cargo runs").success());
    target.join("release/libabi_fixture.so")
}

/// A step that does nothing.
#[derive(Debug)]
pub struct Idle {
    scope: TurnInfo,
    conversation: Conversation,
    /// What the layers have left.
    pub metadata: Map<String, Value>,
    catalog: ToolCatalog,
}

impl RunHost for Idle {
    fn scope(&self) -> &TurnInfo {
        &self.scope
    }
    fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }
    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.metadata
    }
}

impl MessageHost for Idle {
    fn conversation(&self) -> &dyn ConversationHost {
        &self.conversation
    }
    fn agents(&self) -> &dyn AgentsHost {
        unreachable!("no layer here asks for agents")
    }
    fn emit(&mut self, _: MessageEvent) {}
}

fn result() -> StepResult {
    let fields =
        json!({ "status": "completed", "hasToolCalls": true, "toolCalls": [], "toolResults": [], "metadata": {} });
    StepResult::from_fields(fields.as_object().expect("it is there").clone()).expect("it is there")
}

impl StepHost for Idle {
    fn step_index(&self) -> u32 {
        0
    }
    fn tool_catalog(&self) -> &ToolCatalog {
        &self.catalog
    }
    fn tool_catalog_mut(&mut self) -> &mut ToolCatalog {
        &mut self.catalog
    }
    fn run_core(&mut self) -> CoreRun<'_, StepResult> {
        CoreRun::local(async { Ok(result()) })
    }
}

/// Collects what an extension registers.
struct Collect(ExtensionName, Mutex<Vec<AnyRegistration>>);

impl LogHost for Collect {
    fn log(&self, _: LogLevel, _: &str, _: &Map<String, Value>) {}
}

impl ExtensionHost for Collect {
    fn extension(&self) -> &ExtensionName {
        &self.0
    }
    fn register(&self, registration: AnyRegistration) -> Result<()> {
        self.1.lock().expect("it is there").push(registration);
        Ok(())
    }
    fn state(&self) -> Option<Value> {
        None
    }
    fn update_state(&self, _: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        Ok(())
    }
    fn subscribe(&self, _: EventPattern, _: Deliveries, _: Arc<dyn EventHandler>) -> u64 {
        0
    }
    fn unsubscribe(&self, _: u64) {}
    fn emit(&self, _: Event) {}
}

/// So many layers of an extension that registers step middlewares.
pub async fn chain(descriptor: &ExtensionDescriptor, depth: usize) -> Chain<Step> {
    chain_of([(descriptor, depth)]).await
}

/// The layers of several extensions, each so many times, outermost first.
pub async fn chain_of(extensions: impl IntoIterator<Item = (&ExtensionDescriptor, usize)>) -> Chain<Step> {
    let mut layers = Vec::new();
    for descriptor in extensions.into_iter().flat_map(|(descriptor, depth)| std::iter::repeat_n(descriptor, depth)) {
        let name = ExtensionName::new(descriptor.name).expect("it is there");
        let collect = Arc::new(Collect(name.clone(), Mutex::default()));
        (descriptor.register)(ExtensionApi::new(Arc::clone(&collect) as _), json!({})).await.expect("it is there");
        for registration in collect.1.lock().expect("it is there").drain(..) {
            if let AnyRegistration::Middleware(AnyMiddleware::Step(layer), options) = registration {
                let info = LayerInfo::new(name.clone(), MiddlewareKind::Step, options);
                layers.push((info, layer));
            }
        }
    }
    Chain::new(layers)
}

/// A step in a conversation of so many messages of 500 characters.
pub fn idle(messages: usize) -> Idle {
    let all = (0..messages).map(|_| Arc::new(Message::user("x".repeat(500))));
    Idle {
        scope: TurnInfo {
            agent: AgentName::new("bench").expect("it is there"),
            instance: InstanceKey::new("one").expect("it is there"),
            turn: TurnId::random(),
            trace: TraceId::random(),
            input: AgentEvent::input("hi"),
        },
        conversation: Conversation::from_base(all).0,
        metadata: Map::new(),
        catalog: ToolCatalog::default(),
    }
}

// ---- by hand -----------------------------------------------------------------------------------------------------

type Boxed<'a> = BoxFuture<'a, Result<StepResult>>;

/// A layer by hand.
pub trait ByHand: Send + Sync {
    /// Runs the layer.
    fn handle<'a>(&'a self, ctx: &'a mut Idle, next: HandNext<'a>) -> Boxed<'a>;
}

/// The rest of the chain by hand.
pub struct HandNext<'a>(pub &'a [Box<dyn ByHand>]);

impl std::fmt::Debug for HandNext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HandNext({})", self.0.len())
    }
}

impl<'a> HandNext<'a> {
    /// Runs it.
    pub fn run<'b>(self, ctx: &'b mut Idle) -> Boxed<'b>
    where
        'a: 'b,
    {
        match self.0.split_first() {
            Some((layer, rest)) => layer.handle(ctx, HandNext(rest)),
            None => Box::pin(async { Ok(result()) }),
        }
    }
}

/// Passes on.
#[derive(Debug)]
pub struct HandNoop;

/// Looks at the conversation, and leaves a value.
#[derive(Debug)]
pub struct HandLight;

impl ByHand for HandNoop {
    fn handle<'a>(&'a self, ctx: &'a mut Idle, next: HandNext<'a>) -> Boxed<'a> {
        Box::pin(async move { next.run(ctx).await })
    }
}

impl ByHand for HandLight {
    fn handle<'a>(&'a self, ctx: &'a mut Idle, next: HandNext<'a>) -> Boxed<'a> {
        Box::pin(async move {
            let last = ctx.conversation.newest().map_or(0, |message| message.text().len());
            let seen = ctx.conversation.message_count(goondan_core::host::Snapshot::Current) + last;
            ctx.metadata.insert("seen".to_owned(), seen.into());
            let mut result = next.run(ctx).await?;
            result.set_has_tool_calls(false);
            Ok(result)
        })
    }
}
