//! What somebody would write who has no framework: the yardsticks.

use std::sync::Arc;

use goondan::{BoxFuture, Error, Message, ModelResponse, Result, Role, Source, ToolRequest, Value};

/// What a layer of the chain by hand sees.
#[derive(Debug, Default)]
pub struct Context {
    /// How often the core ran.
    pub runs: u64,
}

/// A layer of the chain by hand: borrowed `Next`, boxed future.
pub trait Layer: Send + Sync {
    /// Runs the layer.
    fn handle<'a>(&'a self, ctx: &'a mut Context, next: Rest<'a>) -> BoxFuture<'a, Result<Box<u64>>>;
}

/// The rest of the chain by hand.
#[derive(Clone, Copy)]
pub struct Rest<'a>(&'a [Arc<dyn Layer>]);

impl std::fmt::Debug for Rest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rest({})", self.0.len())
    }
}

impl<'a> Rest<'a> {
    /// All layers.
    pub fn new(layers: &'a [Arc<dyn Layer>]) -> Self {
        Self(layers)
    }

    /// Runs the rest of the chain.
    pub fn run(self, ctx: &'a mut Context) -> BoxFuture<'a, Result<Box<u64>>> {
        match self.0.split_first() {
            Some((layer, rest)) => layer.handle(ctx, Self(rest)),
            None => Box::pin(async move {
                ctx.runs += 1;
                Ok(Box::new(ctx.runs))
            }),
        }
    }
}

/// Does nothing.
#[derive(Debug)]
pub struct Plain;

impl Layer for Plain {
    fn handle<'a>(&'a self, ctx: &'a mut Context, next: Rest<'a>) -> BoxFuture<'a, Result<Box<u64>>> {
        Box::pin(async move { next.run(ctx).await })
    }
}

/// A model as somebody would call it who has no framework.
pub trait PlainModel: Send + Sync {
    /// Answers.
    fn answer<'a>(&'a self, messages: &'a [Arc<Message>]) -> BoxFuture<'a, Result<ModelResponse>>;
}

/// A tool as somebody would call it who has no framework.
pub trait PlainTool: Send + Sync {
    /// Runs.
    fn call(&self, input: Value) -> BoxFuture<'_, Result<Value>>;
}

/// A turn as a plain loop: ask, run the tools that are asked for one after another, ask again.
///
/// # Errors
/// Those of the model, and a call of a tool that is not there.
pub async fn turn(
    messages: &mut Vec<Arc<Message>>,
    model: &dyn PlainModel,
    tools: &[(&str, &dyn PlainTool)],
) -> Result<String> {
    messages.push(Arc::new(Message::user("hi")));
    loop {
        let answer = model.answer(messages).await?;
        let calls = answer.tool_calls;
        if calls.is_empty() {
            let text = answer.text.unwrap_or_default();
            messages.push(Arc::new(Message::new(Role::Assistant, text.clone(), Source::System)));
            return Ok(text);
        }
        messages.push(Arc::new(Message::new(Role::Assistant, request_text(&calls), Source::System)));
        for call in calls {
            let tool = tools.iter().find(|(name, _)| *name == call.name);
            let (_, tool) = tool.ok_or_else(|| Error::msg("there is no such tool"))?;
            let output = tool.call(call.args).await?;
            messages.push(Arc::new(Message::new(Role::Tool, output.to_string(), Source::System)));
        }
    }
}

fn request_text(calls: &[ToolRequest]) -> String {
    calls.iter().map(|call| format!("{} {}", call.name, call.args)).collect()
}
