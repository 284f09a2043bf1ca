//! Owns the agent by hand: a turn as a competent engineer would write it for one program.
//!
//! It makes the calls that a turn of goondan makes: those of the model, with the messages and the tools that there are;
//! those of the tools; and those of the layers around the turn, each step and each tool call. It keeps the conversation:
//! messages with an id and a time, tool calls and their results as such.
//!
//! It does nothing else. No arguments are validated, no time is limited, no panic is caught. Nothing is stored, and nothing
//! is told to anybody. Layers get what they see as it is: nothing keeps them from running `next` twice, or says whose
//! failure it was. Orphaned calls go to the model.

use std::fmt;
use std::sync::Arc;

use goondan::{
    BoxFuture, Error, Message, ModelResponse, Part, Result, Role, Source, ToolCallPart, ToolItem, ToolOutput,
    ToolRequest, ToolResultPart, Value,
};

use super::{Layer, Rest, Stage};

/// What a model is asked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The conversation.
    pub messages: &'a [Arc<Message>],
    /// The tools that it may call.
    pub tools: &'a [ToolItem],
}

/// A model as somebody would call it who has no framework.
pub trait PlainModel: Send + Sync {
    /// Answers.
    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<ModelResponse>>;
}

/// A tool as somebody would call it who has no framework.
pub trait PlainTool: Send + Sync {
    /// Runs.
    fn call(&self, input: Value) -> BoxFuture<'_, Result<Value>>;
}

/// What conversations share.
pub struct Agent {
    /// Who answers.
    pub model: Box<dyn PlainModel>,
    /// What the model is told of the tools.
    pub catalog: Vec<ToolItem>,
    /// The tools, in the order of the catalog.
    pub tools: Vec<Box<dyn PlainTool>>,
    /// The layers around a turn.
    pub turn: Vec<Arc<dyn Layer<TurnStage>>>,
    /// The layers around a step.
    pub step: Vec<Arc<dyn Layer<StepStage>>>,
    /// The layers around a tool call.
    pub call: Vec<Arc<dyn Layer<CallStage>>>,
}

/// A conversation.
#[derive(Debug)]
pub struct Talk {
    agent: Arc<Agent>,
    /// What was said.
    pub messages: Vec<Arc<Message>>,
}

/// A tool call on its way.
#[derive(Debug)]
pub struct Call {
    agent: Arc<Agent>,
    request: ToolRequest,
}

/// A whole turn.
#[derive(Debug)]
pub struct TurnStage;

/// A model call and the tool calls that it asks for.
#[derive(Debug)]
pub struct StepStage;

/// A tool call.
#[derive(Debug)]
pub struct CallStage;

impl Talk {
    /// A conversation in which nothing was said.
    pub fn new(agent: Arc<Agent>) -> Self {
        Self { agent, messages: Vec::new() }
    }

    /// A turn, with all layers.
    ///
    /// # Errors
    /// Those of the model, and a call of a tool that is not there.
    pub async fn turn(&mut self, input: &str) -> Result<String> {
        self.say(Message::user(input));
        let agent = Arc::clone(&self.agent);
        Rest::<TurnStage>::new(&agent.turn).run(self).await
    }

    /// A turn as a bare loop: the same without any layers, in one function.
    ///
    /// # Errors
    /// As above.
    pub async fn turn_without_layers(&mut self, input: &str) -> Result<String> {
        self.say(Message::user(input));
        loop {
            let answer = self.agent.ask(&self.messages).await?;
            if answer.tool_calls.is_empty() {
                return Ok(self.answer(answer));
            }
            self.say(asked(&answer.tool_calls));
            for call in answer.tool_calls {
                let output = self.agent.call(&call.name, call.args).await?;
                self.say(answered(call.id, call.name, output));
            }
        }
    }

    fn say(&mut self, message: Message) {
        self.messages.push(Arc::new(message));
    }

    /// Ends the turn with the text of `answer`.
    fn answer(&mut self, answer: ModelResponse) -> String {
        let text = answer.text.unwrap_or_default();
        self.say(Message::new(Role::Assistant, text.clone(), Source::System));
        text
    }
}

impl Stage for TurnStage {
    type Context = Talk;
    type Output = String;

    fn core(talk: &mut Talk) -> BoxFuture<'_, Result<String>> {
        Box::pin(async move {
            let agent = Arc::clone(&talk.agent);
            loop {
                if let Some(text) = Rest::<StepStage>::new(&agent.step).run(talk).await? {
                    return Ok(text);
                }
            }
        })
    }
}

impl Stage for StepStage {
    type Context = Talk;
    /// The answer, once there is one.
    type Output = Option<String>;

    fn core(talk: &mut Talk) -> BoxFuture<'_, Result<Option<String>>> {
        Box::pin(async move {
            let answer = talk.agent.ask(&talk.messages).await?;
            if answer.tool_calls.is_empty() {
                return Ok(Some(talk.answer(answer)));
            }
            talk.say(asked(&answer.tool_calls));
            let agent = Arc::clone(&talk.agent);
            for request in answer.tool_calls {
                let (id, name) = (request.id.clone(), request.name.clone());
                let mut call = Call { agent: Arc::clone(&agent), request };
                let output = Rest::<CallStage>::new(&agent.call).run(&mut call).await?;
                talk.say(answered(id, name, output));
            }
            Ok(None)
        })
    }
}

impl Stage for CallStage {
    type Context = Call;
    type Output = Value;

    fn core(call: &mut Call) -> BoxFuture<'_, Result<Value>> {
        Box::pin(async move { call.agent.call(&call.request.name, call.request.args.take()).await })
    }
}

impl Agent {
    fn ask<'a>(&'a self, messages: &'a [Arc<Message>]) -> BoxFuture<'a, Result<ModelResponse>> {
        self.model.answer(Request { messages, tools: &self.catalog })
    }

    async fn call(&self, name: &str, input: Value) -> Result<Value> {
        let tool = self.catalog.iter().position(|item| item.name == *name).and_then(|at| self.tools.get(at));
        tool.ok_or_else(|| Error::msg("there is no such tool"))?.call(input).await
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Agent({} tools)", self.tools.len())
    }
}

/// The message with which the model asks for tools.
fn asked(calls: &[ToolRequest]) -> Message {
    let part = |call: &ToolRequest| {
        let (tool_call_id, tool_name, input) = (call.id.clone(), call.name.clone(), call.args.clone());
        Part::ToolCall(ToolCallPart { tool_call_id, tool_name, input })
    };
    Message::new(Role::Assistant, calls.iter().map(part).collect::<Vec<_>>(), Source::System)
}

/// The message with which a tool answers.
fn answered(tool_call_id: goondan::ToolCallId, tool_name: String, output: Value) -> Message {
    let part = ToolResultPart { tool_call_id, tool_name, output: ToolOutput::Json(output) };
    Message::new(Role::Tool, vec![Part::ToolResult(part)], Source::System)
}
