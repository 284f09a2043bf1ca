//! A step that does nothing, with layers from a library, linked ones, or layers that are written by hand.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use goondan_core::host::{AnyMiddleware, Chain, ConversationHost, LayerTimeout, TurnInfo};
use goondan_core::linkage::Crossing;
use goondan_core::{
    AgentDelegate, AgentEvent, AgentName, AgentReload, AgentReloadAnswer, AnyRegistration, BoxFuture, Conversation,
    Deliveries, Error, Event, EventHandler, EventPattern, ExtensionApi, ExtensionDescriptor, ExtensionHost,
    ExtensionInfo, ExtensionName, InstanceKey, LayerInfo, LogHost, LogLevel, Message, MiddlewareKind, ReloadEffect,
    Result, Shown, Step, StepResult,
};
use goondan_runtime::idle::{IdleRun, StepFields};
use serde_json::{Map, Value, json};

use crate::by_hand::{self, Stage};

/// A step that does nothing: the host of goondan's layers, and the context of layers by hand.
pub type IdleStep = IdleRun<fn(&StepFields) -> Result<StepResult>>;

fn result() -> StepResult {
    let fields =
        json!({ "status": "completed", "hasToolCalls": true, "toolCalls": [], "toolResults": [], "metadata": {} });
    StepResult::from_fields(fields.as_object().expect("an object").clone()).expect("the fields of a result")
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
    fn show(&self, _: Shown) {}
    fn delegate(&self, _: AgentDelegate) {}
    fn reload(&self, request: AgentReload) -> BoxFuture<'static, AgentReloadAnswer> {
        Box::pin(async { AgentReloadAnswer::new(request.id, ReloadEffect::None, None) })
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
    let scope = TurnInfo::new(
        AgentName::new("bench").expect("a legal name"),
        InstanceKey::new("one").expect("a legal key"),
        AgentEvent::input("hi"),
    );
    let core: fn(&StepFields) -> Result<StepResult> = |_| Ok(result());
    IdleStep { conversation: Conversation::from_base(all).0, ..IdleStep::new(scope, core) }
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
            result.set_continues(false);
            Ok(result)
        })
    }
}
