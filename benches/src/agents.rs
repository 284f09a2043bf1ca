//! Agents to measure: with layers and a tool that do nothing, and a model that answers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goondan::agent::AgentBuilder;
use goondan::middleware::{AnswerVerdict, MiddlewareOptions, ModelAnswer, OnError, ToolRequest};
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::name::ToolCallId;
use goondan::prelude::*;
use goondan::tool::{Effect, ToolHandler, ToolItem};
use goondan::{Agent, BoxFuture, Instance, Value, json};

use crate::by_hand::{self, PlainModel, PlainTool, Request, noop_layers};
use crate::watching::{Counting, EVERYTHING};

/// A middleware of every kind that only calls `next`.
#[derive(Debug)]
struct NoopMiddleware;

macro_rules! noop_middleware {
    ($kind:ident, $context:ident, $output:ident) => {
        impl goondan::middleware::Middleware<$kind> for NoopMiddleware {
            fn handle<'a>(
                &'a self,
                ctx: &'a mut $context<'_>,
                next: Next<'a, $kind>,
            ) -> BoxFuture<'a, Result<$output>> {
                Box::pin(next.run(ctx))
            }
        }
    };
}

noop_middleware!(Turn, TurnContext, TurnResult);
noop_middleware!(Step, StepContext, StepResult);
noop_middleware!(ToolCall, ToolCallContext, ToolCallResult);

/// A step middleware that adds a message to what the model is sent.
#[derive(Debug)]
struct Projecting;

impl goondan::middleware::Middleware<Step> for Projecting {
    fn handle<'a>(&'a self, ctx: &'a mut StepContext<'_>, next: Next<'a, Step>) -> BoxFuture<'a, Result<StepResult>> {
        ctx.project(MessageEvent::append(Message::user("found")));
        Box::pin(next.run(ctx))
    }
}

/// A middleware that prepares the answer of a step, or the reply of a tool call.
#[derive(Debug)]
struct Preparing;

impl goondan::middleware::Middleware<Step> for Preparing {
    fn handle<'a>(&'a self, ctx: &'a mut StepContext<'_>, next: Next<'a, Step>) -> BoxFuture<'a, Result<StepResult>> {
        ctx.answer_with("prepared");
        Box::pin(next.run(ctx))
    }
}

impl goondan::middleware::Middleware<ToolCall> for Preparing {
    fn handle<'a>(
        &'a self,
        ctx: &'a mut ToolCallContext<'_>,
        next: Next<'a, ToolCall>,
    ) -> BoxFuture<'a, Result<ToolCallResult>> {
        ctx.answer_with("prepared");
        Box::pin(next.run(ctx))
    }
}

/// A step middleware whose reviewer keeps each answer.
#[derive(Debug)]
struct Reviewing;

impl goondan::middleware::Middleware<Step> for Reviewing {
    fn handle<'a>(&'a self, ctx: &'a mut StepContext<'_>, next: Next<'a, Step>) -> BoxFuture<'a, Result<StepResult>> {
        ctx.review_answer(|_: &ModelAnswer| AnswerVerdict::Keep);
        Box::pin(next.run(ctx))
    }
}

/// A step middleware whose transformer changes nothing.
#[derive(Debug)]
struct Transforming;

impl goondan::middleware::Middleware<Step> for Transforming {
    fn handle<'a>(&'a self, ctx: &'a mut StepContext<'_>, next: Next<'a, Step>) -> BoxFuture<'a, Result<StepResult>> {
        ctx.transform_pieces(|_: &str| None);
        Box::pin(next.run(ctx))
    }
}

/// The layers of an agent, and how it is measured. It is the config of the extension that registers them.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Layers {
    /// The number of layers around the turn.
    pub turn: usize,
    /// The number of layers around each step.
    pub step: usize,
    /// The number of layers around each tool call.
    pub tool_call: usize,
    /// The number of layers around each step that project a message.
    pub projecting: usize,
    /// The number of layers around each step that prepare its answer.
    pub preparing: usize,
    /// The number of layers around each tool call that prepare its reply.
    pub replying: usize,
    /// The number of layers around each step that review its answer.
    pub reviewing: usize,
    /// The number of layers around each step that transform its pieces.
    pub transforming: usize,
    /// The number of pieces of each answer; 0 for a model that does not stream.
    pub pieces: usize,
    /// The number of messages that are kept after a turn; 0 keeps all.
    pub keep: usize,
    /// Whether an extension listens to all events.
    pub observed: bool,
    /// Whether failures of the layers would be skipped.
    pub skipping: bool,
    /// Whether the program has an observer that wants nothing.
    pub asked: bool,
    /// Whether the program has an observer that wants everything.
    pub watched: bool,
}

/// The name of the tool.
pub const TOOL: &str = "bench__nothing";

#[derive(Debug)]
struct Bench {
    keep: usize,
}

#[goondan::extension(name = "bench")]
impl Bench {
    #[init]
    fn new(api: ExtensionApi, layers: Layers) -> Result<Self> {
        for _ in 0..layers.turn {
            api.pipeline().register(Turn, NoopMiddleware, MiddlewareOptions::default())?;
        }
        for _ in 0..layers.step {
            api.pipeline().register(Step, NoopMiddleware, MiddlewareOptions::default())?;
        }
        for _ in 0..layers.tool_call {
            api.pipeline().register(ToolCall, NoopMiddleware, MiddlewareOptions::default())?;
        }
        for _ in 0..layers.projecting {
            api.pipeline().register(Step, Projecting, MiddlewareOptions::default())?;
        }
        for _ in 0..layers.preparing {
            api.pipeline().register(Step, Preparing, MiddlewareOptions::default())?;
        }
        for _ in 0..layers.reviewing {
            api.pipeline().register(Step, Reviewing, MiddlewareOptions::default())?;
        }
        for _ in 0..layers.transforming {
            api.pipeline().register(Step, Transforming, MiddlewareOptions::default())?;
        }
        for _ in 0..layers.replying {
            api.pipeline().register(ToolCall, Preparing, MiddlewareOptions::default())?;
        }
        if layers.observed {
            api.events().on("*", |_| std::future::ready(Ok(())))?.detach();
        }
        api.tools().register(ToolItem::new(TOOL)?.effect(Effect::Read), NoopTool)?;
        Ok(Self { keep: layers.keep })
    }

    /// Removes the oldest messages, so that every turn starts with the same number.
    #[middleware(turn, priority = 1)]
    async fn trim(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await;
        if self.keep > 0 {
            let excess = ctx.conversation().len().saturating_sub(self.keep);
            let ids: Vec<_> = ctx.conversation().iter().take(excess).map(|message| message.to_id()).collect();
            for id in ids {
                ctx.emit(MessageEvent::remove(id));
            }
        }
        result
    }
}

/// A tool that does nothing.
#[derive(Debug)]
pub struct NoopTool;

impl ToolHandler for NoopTool {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async { Ok(Value::Null.into()) })
    }
}

impl PlainTool for NoopTool {
    fn call(&self, _: Value) -> BoxFuture<'_, Result<Value>> {
        Box::pin(async { Ok(Value::Null) })
    }
}

/// A model that requests a number of tool calls in each turn, one in a step, and then answers with text.
#[derive(Debug)]
pub struct ToolCallingModel {
    calls: usize,
    pieces: usize,
    requests: AtomicUsize,
}

/// A piece of an answer.
const PIECE: &str = "done ";

impl ToolCallingModel {
    /// A model that requests `calls` tool calls in every turn.
    pub fn new(calls: usize) -> Self {
        Self { calls, pieces: 0, requests: AtomicUsize::new(0) }
    }

    /// Sets the number of pieces in which answers are streamed.
    #[must_use]
    pub fn streaming(mut self, pieces: usize) -> Self {
        self.pieces = pieces;
        self
    }

    fn next(&self) -> ModelResponse {
        let step = self.requests.fetch_add(1, Ordering::Relaxed) % (self.calls + 1);
        if step == self.calls {
            return ModelResponse::text(PIECE.repeat(self.pieces.max(1)));
        }
        ModelResponse::tool_calls([ToolRequest::new(ToolCallId::random(), TOOL, json!({}))])
    }
}

impl Model for ToolCallingModel {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, deltas: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            (0..self.pieces).for_each(|_| deltas.send(ModelDelta::Text { part: 0, text: PIECE }));
            Ok(self.next())
        })
    }
}

impl PlainModel for ToolCallingModel {
    fn answer<'a>(&'a self, _: Request<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async { Ok(self.next()) })
    }
}

/// Opens an instance in memory, whose model requests `calls` tool calls in a turn.
pub async fn instance(layers: Layers, calls: usize) -> Instance {
    let agent = builder(layers, calls).build().expect("the agent is complete");
    agent.instance("bench").await.expect("an instance")
}

/// Makes the agent of [`instance`] by hand.
pub fn by_hand(layers: Layers, calls: usize) -> Arc<by_hand::Agent> {
    Arc::new(by_hand::Agent {
        model: Box::new(ToolCallingModel::new(calls)),
        catalog: vec![ToolItem::new(TOOL).expect("a legal name").effect(Effect::Read)],
        tools: vec![Box::new(NoopTool)],
        turn: noop_layers(layers.turn),
        step: noop_layers(layers.step),
        call: noop_layers(layers.tool_call),
    })
}

/// Describes the agent of [`instance`], so that it can be given another store.
pub fn builder(layers: Layers, calls: usize) -> AgentBuilder {
    let agent = Agent::builder("bench")
        .model(ToolCallingModel::new(calls).streaming(layers.pieces))
        .extension::<Bench>(json!(layers));
    let agent = if layers.asked { agent.observer(Counting::new([])) } else { agent };
    let agent = if layers.watched { agent.observer(Counting::new(EVERYTHING)) } else { agent };
    if layers.skipping { agent.on_error("bench", OnError::Skip) } else { agent }
}
