//! Owns the measurement of one layer: what it costs in a library, linked, and written by hand. Ratios of one run, because
//! machines differ; the slope between two depths, because the core costs too.
//!
//! `cargo run --release -p goondan-abi --features host --example layer_cost -- path/to/libabi_fixture.so`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::unimplemented, reason = "a measurement ends by panicking")]

use std::hint::black_box;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use goondan_abi::Library;
use goondan_core::host::{ConversationHost, MessageHost, RunHost, StepHost, TurnInfo};
use goondan_core::linkage::{CoreRun, Crossing};
use goondan_core::pipeline::{AnyMiddleware, Chain};
use goondan_core::{
    AgentEvent, AgentName, AgentsHost, AnyRegistration, Conversation, Deliveries, Event, EventHandler, EventPattern,
    Extension, ExtensionApi, ExtensionDescriptor, ExtensionHost, ExtensionName, InstanceKey, LayerInfo, LogHost,
    LogLevel, Message, MessageEvent, MiddlewareKind, Result, Step, StepResult, ToolCatalog, TraceId, TurnId,
};
use serde_json::{Map, Value, json};

/// A step that does nothing.
struct Bench {
    scope: TurnInfo,
    conversation: Conversation,
    metadata: Map<String, Value>,
    catalog: ToolCatalog,
}

impl RunHost for Bench {
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

impl MessageHost for Bench {
    fn conversation(&self) -> &dyn ConversationHost {
        &self.conversation
    }
    fn agents(&self) -> &dyn AgentsHost {
        unimplemented!("no layer here asks for agents")
    }
    fn emit(&mut self, _: MessageEvent) {}
}

fn result() -> StepResult {
    let fields =
        json!({ "status": "completed", "hasToolCalls": true, "toolCalls": [], "toolResults": [], "metadata": {} });
    StepResult::from_fields(fields.as_object().unwrap().clone()).unwrap()
}

impl StepHost for Bench {
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
        CoreRun::here(async { Ok(result()) })
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
        self.1.lock().unwrap().push(registration);
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

async fn chain(descriptor: &ExtensionDescriptor, depth: usize) -> Chain<Step> {
    let mut layers = Vec::new();
    for _ in 0..depth {
        let name = ExtensionName::new(descriptor.name).unwrap();
        let collect = Arc::new(Collect(name.clone(), Mutex::default()));
        (descriptor.register)(ExtensionApi::new(Arc::clone(&collect) as _), json!({})).await.unwrap();
        for registration in collect.1.lock().unwrap().drain(..) {
            if let AnyRegistration::Middleware(AnyMiddleware::Step(layer), options) = registration {
                let info = LayerInfo::new(name.clone(), MiddlewareKind::Step, options);
                layers.push((info, layer));
            }
        }
    }
    Chain::new(layers)
}

fn bench(messages: usize) -> Bench {
    let all = (0..messages).map(|_| Arc::new(Message::user("x".repeat(500))));
    Bench {
        scope: TurnInfo {
            agent: AgentName::new("bench").unwrap(),
            instance: InstanceKey::new("one").unwrap(),
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

type Boxed<'a> = Pin<Box<dyn Future<Output = Result<StepResult>> + Send + 'a>>;

trait ByHand: Send + Sync {
    fn handle<'a>(&'a self, ctx: &'a mut Bench, next: HandNext<'a>) -> Boxed<'a>;
}

struct HandNext<'a>(&'a [Box<dyn ByHand>]);

impl<'a> HandNext<'a> {
    fn run<'b>(self, ctx: &'b mut Bench) -> Boxed<'b>
    where
        'a: 'b,
    {
        match self.0.split_first() {
            Some((layer, rest)) => layer.handle(ctx, HandNext(rest)),
            None => Box::pin(async { Ok(result()) }),
        }
    }
}

struct HandNoop;
struct HandLight;

impl ByHand for HandNoop {
    fn handle<'a>(&'a self, ctx: &'a mut Bench, next: HandNext<'a>) -> Boxed<'a> {
        Box::pin(async move { next.run(ctx).await })
    }
}

impl ByHand for HandLight {
    fn handle<'a>(&'a self, ctx: &'a mut Bench, next: HandNext<'a>) -> Boxed<'a> {
        Box::pin(async move {
            let last = ctx.conversation.newest().map_or(0, |message| message.text().len());
            let seen = ctx.conversation.message_count(goondan_core::host::Snapshot::Next) + last;
            ctx.metadata.insert("seen".to_owned(), seen.into());
            let mut result = next.run(ctx).await?;
            result.set_has_tool_calls(false);
            Ok(result)
        })
    }
}

// ---- measuring ---------------------------------------------------------------------------------------------------

/// Short, so that many samples are not interrupted.
const ROUNDS: u32 = 20;
const SAMPLES: u32 = 1_500;

/// Nanoseconds of one run, the best of several.
async fn best(mut run: impl AsyncFnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            run().await;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
    }
    best
}

async fn slope(descriptor: &ExtensionDescriptor, messages: usize) -> f64 {
    let mut times = [0.0; 2];
    for (time, depth) in times.iter_mut().zip([16, 64]) {
        let (chain, mut host) = (chain(descriptor, depth).await, bench(messages));
        *time = best(async || drop(black_box(chain.run(&mut host).await.unwrap()))).await;
    }
    (times[1] - times[0]) / 48.0
}

async fn slope_by_hand(layer: fn() -> Box<dyn ByHand>, messages: usize) -> f64 {
    let mut times = [0.0; 2];
    for (time, depth) in times.iter_mut().zip([16, 64]) {
        let (layers, mut host): (Vec<_>, _) = ((0..depth).map(|_| layer()).collect(), bench(messages));
        *time = best(async || drop(black_box(HandNext(&layers).run(&mut host).await.unwrap()))).await;
    }
    (times[1] - times[0]) / 48.0
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let path = std::env::args().nth(1).expect("the path of the library");
    let start = Instant::now();
    let library = Library::inspect(path).unwrap().load().unwrap();
    println!("inspecting and loading: {:?}", start.elapsed());
    println!("{:<8} {:>8}  {:>8}  {:>8}  {:>8}  {:>6}", "layer", "messages", "by hand", "linked", "library", "ratio");
    type Row = (&'static str, &'static ExtensionDescriptor, fn() -> Box<dyn ByHand>);
    let rows: [Row; 2] = [
        ("noop", abi_fixture::Noop::DESCRIPTOR, || Box::new(HandNoop)),
        ("light", abi_fixture::Light::DESCRIPTOR, || Box::new(HandLight)),
    ];
    for (name, linked, by_hand) in rows {
        for messages in [0, 100] {
            let hand = slope_by_hand(by_hand, messages).await;
            let linked = slope(linked, messages).await;
            let library = slope(library.extension(Some(name)).unwrap(), messages).await;
            println!(
                "{name:<8} {messages:>8}  {hand:>5.0} ns  {linked:>5.0} ns  {library:>5.0} ns  {:>5.1}×",
                library / hand
            );
        }
    }
}
