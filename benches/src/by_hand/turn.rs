//! A turn by hand, as a competent engineer would write it for one program.
//!
//! It makes the calls that a turn of goondan makes: it calls the model with all messages and tools, the tools, and
//! the layers around the turn, each step and each tool call. It keeps the conversation: messages with an id and a
//! time, with tool calls and their results as parts.
//!
//! It does nothing else. It validates no arguments, limits no time, catches no panic, stores nothing and reports
//! nothing. Layers get plain references: nothing checks that `next` runs once, and an error does not name its layer.
//! Calls without a result go to the model.

use std::fmt;
use std::sync::Arc;

use goondan::conversation::{Message, Part, Role, Source, ToolCallPart, ToolOutput, ToolResultPart};
use goondan::middleware::ToolRequest;
use goondan::model::ModelResponse;
use goondan::tool::ToolItem;
use goondan::{BoxFuture, Error, Result, Value};

use super::{Layer, Next, Stage};

/// A request to a model.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The conversation.
    pub messages: &'a [Arc<Message>],
    /// The tools that it may call.
    pub tools: &'a [ToolItem],
}

/// A model, as a program without a framework would call it.
pub trait PlainModel: Send + Sync {
    /// Answers a request.
    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<ModelResponse>>;
}

/// A tool, as a program without a framework would call it.
pub trait PlainTool: Send + Sync {
    /// Runs the tool.
    fn call(&self, input: Value) -> BoxFuture<'_, Result<Value>>;
}

/// The model, the tools and the layers, which conversations share.
pub struct Agent {
    /// The model.
    pub model: Box<dyn PlainModel>,
    /// The descriptions of the tools, which the model gets.
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

/// A conversation: an agent and its messages.
#[derive(Debug)]
pub struct Conversation {
    agent: Arc<Agent>,
    /// The messages, oldest first.
    pub messages: Vec<Arc<Message>>,
}

/// A running tool call.
#[derive(Debug)]
pub struct Call {
    agent: Arc<Agent>,
    request: ToolRequest,
}

/// The stage of a whole turn.
#[derive(Debug)]
pub struct TurnStage;

/// The stage of one model call and the tool calls that it requests.
#[derive(Debug)]
pub struct StepStage;

/// The stage of one tool call.
#[derive(Debug)]
pub struct CallStage;

impl Conversation {
    /// A conversation without messages.
    pub fn new(agent: Arc<Agent>) -> Self {
        Self { agent, messages: Vec::new() }
    }

    /// Runs a turn with all layers and returns its answer.
    ///
    /// # Errors
    /// When the model fails, or requests a tool that does not exist.
    pub async fn turn(&mut self, input: &str) -> Result<String> {
        self.push(Message::user(input));
        let agent = Arc::clone(&self.agent);
        Next::<TurnStage>::new(&agent.turn).run(self).await
    }

    /// Runs the same turn as a bare loop: without layers, in one function.
    ///
    /// # Errors
    /// As [`Conversation::turn`].
    pub async fn turn_without_layers(&mut self, input: &str) -> Result<String> {
        self.push(Message::user(input));
        loop {
            let answer = self.agent.ask(&self.messages).await?;
            let calls = requests(&answer);
            if calls.is_empty() {
                return Ok(self.push_answer(&answer));
            }
            self.push(Message::new(Role::Assistant, answer.content, Source::System));
            for call in calls {
                let output = self.agent.call(&call.name, call.args).await?;
                self.push(result_message(call.id, call.name, output));
            }
        }
    }

    fn push(&mut self, message: Message) {
        self.messages.push(Arc::new(message));
    }

    /// Appends the text of `answer` and returns it.
    fn push_answer(&mut self, answer: &ModelResponse) -> String {
        let text = answer.to_text().into_owned();
        self.push(Message::new(Role::Assistant, text.clone(), Source::System));
        text
    }
}

impl Stage for TurnStage {
    type Context = Conversation;
    type Output = String;

    fn core(conversation: &mut Conversation) -> BoxFuture<'_, Result<String>> {
        Box::pin(async move {
            let agent = Arc::clone(&conversation.agent);
            loop {
                if let Some(text) = Next::<StepStage>::new(&agent.step).run(conversation).await? {
                    return Ok(text);
                }
            }
        })
    }
}

impl Stage for StepStage {
    type Context = Conversation;
    /// The answer, if this step ends the turn.
    type Output = Option<String>;

    fn core(conversation: &mut Conversation) -> BoxFuture<'_, Result<Option<String>>> {
        Box::pin(async move {
            let answer = conversation.agent.ask(&conversation.messages).await?;
            let calls = requests(&answer);
            if calls.is_empty() {
                return Ok(Some(conversation.push_answer(&answer)));
            }
            conversation.push(Message::new(Role::Assistant, answer.content, Source::System));
            let agent = Arc::clone(&conversation.agent);
            for request in calls {
                let (id, name) = (request.id.clone(), request.name.clone());
                let mut call = Call { agent: Arc::clone(&agent), request };
                let output = Next::<CallStage>::new(&agent.call).run(&mut call).await?;
                conversation.push(result_message(id, name, output));
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

/// Returns the tool calls that the model requests.
fn requests(answer: &ModelResponse) -> Vec<ToolRequest> {
    let request =
        |call: &ToolCallPart| ToolRequest::new(call.tool_call_id.clone(), call.tool_name.clone(), call.input.clone());
    answer.calls().map(request).collect()
}

/// Returns the message with the result of a tool call.
fn result_message(tool_call_id: goondan::name::ToolCallId, tool_name: String, output: Value) -> Message {
    let part = ToolResultPart::new(tool_call_id, tool_name, ToolOutput::Json(output));
    Message::new(Role::Tool, Part::from(part), Source::System)
}
