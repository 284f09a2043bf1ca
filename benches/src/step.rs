//! A step that does nothing, with layers from a library, linked ones, or layers that are written by hand.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use goondan_core::host::{
    AnswerHost, ConversationHost, LayerTimeout, MessageHost, RunHost, StepHost, StreamHost, TurnInfo,
};
use goondan_core::host::{AnyMiddleware, Chain};
use goondan_core::linkage::{CoreRun, Crossing};
use goondan_core::{
    AgentDelegate, AgentEvent, AgentName, AgentReload, AgentReloadAnswer, AgentsHost, AnyRegistration, BoxFuture,
    Content, Conversation, Deliveries, Error, Event, EventHandler, EventPattern, ExtensionApi, ExtensionDescriptor,
    ExtensionHost, ExtensionInfo, ExtensionName, InstanceKey, LayerInfo, LogHost, LogLevel, Message, MessageEvent,
    MiddlewareKind, ModelInfo, ModelName, ModelOptions, ReloadEffect, Result, Step, StepResult, ToolCatalog,
};
use serde_json::{Map, Value, json};

use crate::by_hand::{self, Stage};

/// Builds the library of the measured layers below `target` with these features, as users build theirs, and returns
/// its path.
pub fn library(target: &Path, features: &[&str]) -> PathBuf {
    let target = target.join(format!("library-{}", features.join("-")));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--package", "abi-fixture"]).args(["--features", &features.join(",")]);
    let status = cargo.arg("--target-dir").arg(&target).current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(status.expect("cargo runs").success());
    target.join("release/libabi_fixture.so")
}

/// A step that does nothing: the host of goondan's layers, and the context of layers by hand.
#[derive(Debug)]
pub struct IdleStep {
    scope: TurnInfo,
    conversation: Conversation,
    /// The values that the layers leave.
    pub metadata: Map<String, Value>,
    catalog: ToolCatalog,
    model: Option<ModelName>,
    options: ModelOptions,
}

impl RunHost for IdleStep {
    fn scope(&self) -> &TurnInfo {
        &self.scope
    }
    fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }
    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.metadata
    }
    fn refuse(&mut self, _: goondan::Error) {}
}

impl MessageHost for IdleStep {
    fn conversation(&self) -> &dyn ConversationHost {
        &self.conversation
    }
    fn agents(&self) -> &dyn AgentsHost {
        unreachable!("none of these layers uses agents")
    }
    fn emit(&mut self, _: MessageEvent) {}
}

fn result() -> StepResult {
    let fields =
        json!({ "status": "completed", "hasToolCalls": true, "toolCalls": [], "toolResults": [], "metadata": {} });
    StepResult::from_fields(fields.as_object().expect("an object").clone()).expect("the fields of a result")
}

impl StreamHost for IdleStep {
    fn hold_stream(&mut self) {}
}

impl AnswerHost for IdleStep {
    fn project(&mut self, _: MessageEvent, _: &ExtensionName) {}

    fn answer_with(&mut self, _: Content, _: &ExtensionName) {}
}

impl StepHost for IdleStep {
    fn step_index(&self) -> u32 {
        0
    }
    fn tool_catalog(&self) -> &ToolCatalog {
        &self.catalog
    }
    fn tool_catalog_mut(&mut self) -> &mut ToolCatalog {
        &mut self.catalog
    }
    fn model_name(&self) -> &Option<ModelName> {
        &self.model
    }
    fn model_name_mut(&mut self) -> &mut Option<ModelName> {
        &mut self.model
    }
    fn model_options(&self) -> &ModelOptions {
        &self.options
    }
    fn model_options_mut(&mut self) -> &mut ModelOptions {
        &mut self.options
    }
    fn model_info(&self) -> ModelInfo {
        ModelInfo::default()
    }
    fn token_estimate(&self) -> u64 {
        0
    }
    fn run_core(&mut self) -> CoreRun<'_, StepResult> {
        CoreRun::local(async { Ok(result()) })
    }
}

impl Stage for IdleStep {
    type Context = Self;
    type Output = StepResult;

    fn core(_: &mut Self) -> BoxFuture<'_, Result<StepResult>> {
        Box::pin(async { Ok(result()) })
    }
}

/// The host of an extension during its registration: it only collects what the extension registers.
struct Collector(ExtensionName, Mutex<Vec<AnyRegistration>>);

impl LogHost for Collector {
    fn log(&self, _: LogLevel, _: &str, _: &Map<String, Value>) {}
}

impl ExtensionHost for Collector {
    fn extension(&self) -> &ExtensionName {
        &self.0
    }
    fn register(&self, registration: AnyRegistration) -> Result<()> {
        self.1.lock().expect("no panic").push(registration);
        Ok(())
    }
    fn state(&self) -> Option<Value> {
        None
    }
    fn update_state(&self, _: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        Ok(())
    }
    fn shared_state(&self) -> Result<Option<Value>> {
        Err(Error::msg("a chain has none"))
    }
    fn update_shared_state(&self, _: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        Err(Error::msg("a chain has none"))
    }
    fn subscribe(&self, _: EventPattern, _: Deliveries, _: Arc<dyn EventHandler>) -> u64 {
        0
    }
    fn unsubscribe(&self, _: u64) {}
    fn emit(&self, _: Event) {}
    fn delegate(&self, _: AgentDelegate) {}
    fn reload(&self, request: AgentReload) -> BoxFuture<'static, AgentReloadAnswer> {
        Box::pin(async { AgentReloadAnswer { id: request.id, effect: ReloadEffect::None, reason: None } })
    }
    fn info(&self) -> Result<ExtensionInfo> {
        Err(Error::msg("a chain has none"))
    }
    fn state_dir(&self) -> Result<PathBuf> {
        Err(Error::msg("a chain has none"))
    }
}

/// Makes a chain of `depth` times the layers of an extension that registers step middlewares.
pub async fn chain(descriptor: &ExtensionDescriptor, depth: usize) -> Chain<Step> {
    chain_of([(descriptor, depth)]).await
}

/// Makes a chain of the layers of several extensions, each repeated a number of times, outermost first.
pub async fn chain_of(extensions: impl IntoIterator<Item = (&ExtensionDescriptor, usize)>) -> Chain<Step> {
    let mut layers = Vec::new();
    for descriptor in extensions.into_iter().flat_map(|(descriptor, depth)| std::iter::repeat_n(descriptor, depth)) {
        let name = ExtensionName::new(descriptor.name).expect("a legal name");
        let collector = Arc::new(Collector(name.clone(), Mutex::default()));
        (descriptor.register)(ExtensionApi::new(Arc::clone(&collector) as _), json!({})).await.expect("it registers");
        for registration in collector.1.lock().expect("no panic").drain(..) {
            if let AnyRegistration::Middleware(AnyMiddleware::Step(layer), options) = registration {
                let info = LayerInfo::new(name.clone(), MiddlewareKind::Step, options);
                layers.push((info, layer));
            }
        }
    }
    // No failure is skipped, so the timeout of layers does not count.
    Chain::new(layers, LayerTimeout::NONE)
}

/// Makes a step in a conversation of `messages` messages of 500 characters.
pub fn idle_step(messages: usize) -> IdleStep {
    let all = (0..messages).map(|_| Arc::new(Message::user("x".repeat(500))));
    IdleStep {
        scope: TurnInfo::new(
            AgentName::new("bench").expect("a legal name"),
            InstanceKey::new("one").expect("a legal key"),
            AgentEvent::input("hi"),
        ),
        conversation: Conversation::from_base(all).0,
        metadata: Map::new(),
        catalog: ToolCatalog::default(),
        model: None,
        options: ModelOptions::default(),
    }
}

/// The layer by hand that does what the extension `light` does: it reads the conversation, leaves a value and changes
/// the result.
#[derive(Debug)]
pub struct LightLayer;

impl by_hand::Layer<IdleStep> for LightLayer {
    fn handle<'a>(
        &'a self,
        ctx: &'a mut IdleStep,
        next: by_hand::Next<'a, IdleStep>,
    ) -> BoxFuture<'a, Result<StepResult>> {
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
