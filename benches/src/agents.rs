//! Agents to measure: layers that do nothing, a tool that does nothing, a model that answers by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goondan::prelude::*;
use goondan::{
    Agent, AgentBuilder, BoxFuture, Effect, Instance, Model, ModelRequest, ModelResponse, Options, ToolCallId,
    ToolHandler, ToolItem, ToolRequest, Value, json,
};

use crate::by_hand::{self, PlainModel, PlainTool, Request, plain};

/// Does nothing, in front of every kind.
#[derive(Debug)]
struct Plain;

macro_rules! plain {
    ($kind:ident, $context:ident, $output:ident) => {
        impl goondan::Middleware<$kind> for Plain {
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

plain!(Turn, TurnContext, TurnResult);
plain!(Step, StepContext, StepResult);
plain!(ToolCall, ToolCallContext, ToolCallResult);

/// How many layers an agent has.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Layers {
    /// Around the turn.
    pub turn: usize,
    /// Around each step.
    pub step: usize,
    /// Around each tool call.
    pub tool_call: usize,
    /// How many messages are kept after a turn; 0 keeps all.
    pub keep: usize,
    /// Whether somebody listens to all that happens.
    pub observed: bool,
}

/// The tool.
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
            api.pipeline().register(Turn, Plain, Options::default())?;
        }
        for _ in 0..layers.step {
            api.pipeline().register(Step, Plain, Options::default())?;
        }
        for _ in 0..layers.tool_call {
            api.pipeline().register(ToolCall, Plain, Options::default())?;
        }
        if layers.observed {
            api.events().on("*", |_| std::future::ready(Ok(())))?.detach();
        }
        api.tools().register(ToolItem::new(TOOL)?.effect(Effect::Read), Nothing)?;
        Ok(Self { keep: layers.keep })
    }

    /// Lets the oldest messages go, so that every turn starts with the same number.
    #[middleware(turn, priority = 1)]
    async fn trim(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await;
        if self.keep > 0 {
            let excess = ctx.conversation().len().saturating_sub(self.keep);
            let ids: Vec<_> = ctx.conversation().iter().take(excess).map(|message| message.id().to_owned()).collect();
            for id in ids {
                ctx.emit(MessageEvent::remove(id));
            }
        }
        result
    }
}

/// A tool that does nothing.
#[derive(Debug)]
pub struct Nothing;

impl ToolHandler for Nothing {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<Value>> {
        Box::pin(async { Ok(Value::Null) })
    }
}

impl PlainTool for Nothing {
    fn call(&self, _: Value) -> BoxFuture<'_, Result<Value>> {
        Box::pin(async { Ok(Value::Null) })
    }
}

/// A model that asks for the tool a number of times, and then says something.
#[derive(Debug)]
pub struct Asks {
    calls: usize,
    asked: AtomicUsize,
}

impl Asks {
    /// A model that asks for `calls` tool calls in every turn, one after another.
    pub fn new(calls: usize) -> Self {
        Self { calls, asked: AtomicUsize::new(0) }
    }

    fn next(&self) -> ModelResponse {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) % (self.calls + 1);
        if asked == self.calls {
            return ModelResponse::text("done");
        }
        let call = ToolRequest { id: ToolCallId::random(), name: TOOL.to_owned(), args: json!({}) };
        ModelResponse { tool_calls: vec![call], ..ModelResponse::default() }
    }
}

impl Model for Asks {
    fn generate<'a>(&'a self, _: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async { Ok(self.next()) })
    }
}

impl PlainModel for Asks {
    fn answer<'a>(&'a self, _: Request<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async { Ok(self.next()) })
    }
}

/// An open conversation, in memory, whose model asks for the tool `calls` times a turn.
pub async fn instance(layers: Layers, calls: usize) -> Instance {
    let agent = builder(layers, calls).build().await.expect("the agent is complete");
    agent.instance("bench").await.expect("it opens")
}

/// The same agent by hand.
pub fn by_hand(layers: Layers, calls: usize) -> Arc<by_hand::Agent> {
    Arc::new(by_hand::Agent {
        model: Box::new(Asks::new(calls)),
        catalog: vec![ToolItem::new(TOOL).expect("it is a name").effect(Effect::Read)],
        tools: vec![Box::new(Nothing)],
        turn: plain(layers.turn),
        step: plain(layers.step),
        call: plain(layers.tool_call),
    })
}

/// The agent of [`instance`], for other stores.
pub fn builder(layers: Layers, calls: usize) -> AgentBuilder {
    Agent::builder("bench").model(Asks::new(calls)).extension::<Bench>(json!(layers))
}
