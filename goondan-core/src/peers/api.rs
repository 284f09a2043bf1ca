//! The API through which extensions and tools reach other agents, and models.
// AGENTS-01, D-17, D-33

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::RequestTarget;
use crate::BoxFuture;
use crate::conversation::FilePart;
use crate::depth::Unchecked;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{AnswerFormat, TokenUsage, value_of};
use crate::model_call::ModelOptions;
use crate::model_call::ModelOptionsExt;
use crate::name::{AgentName, ExtensionName, InstanceKey};
use crate::outcome::ModelFinish;

/// Sends requests and notices to other agents, and requests to models. Returned by
/// [`TurnContext::agents`](crate::TurnContext::agents), [`StepContext::agents`](crate::StepContext::agents) and
/// [`ToolContext::agents`](crate::ToolContext::agents).
#[derive(Clone, Copy)]
pub struct AgentsApi<'a> {
    host: &'a dyn AgentsHost,
    extension: Option<&'a ExtensionName>,
}

/// The host behind an [`AgentsApi`].
pub trait AgentsHost: Send + Sync {
    /// Sends a request to another agent or a model and waits for the answer. `extension` is the one whose middleware
    /// asks, if the caller knows it.
    fn request<'a>(
        &'a self,
        request: AgentRequest,
        extension: Option<&'a ExtensionName>,
    ) -> BoxFuture<'a, Result<AgentResponse>>;
    /// Sends a request to another agent; the answer is appended as a message before a later step.
    ///
    /// # Errors
    /// When the request cannot be sent.
    fn request_later(&self, request: AgentRequest) -> Result<RequestTicket>;
    /// Sends a notice to another agent, and returns whether it was accepted.
    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<bool>>;
    /// Returns the other agents that can be reached.
    fn list(&self) -> Vec<AgentName>;
}

/// A request, or a notice, to another agent, or a request to a model.
///
/// ```
/// use std::time::Duration;
/// use goondan::agent::AgentRequest;
/// let request = AgentRequest::new("researcher").input("who wrote this?").timeout(Duration::from_secs(60));
/// let title = AgentRequest::model(Some("small")).system("Answer with a title.").input("how do I bake bread?");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AgentRequest {
    /// Whom the request asks.
    pub target: RequestTarget,
    /// The text for the other agent: none, or one that is not blank. A model needs one.
    pub input: Option<String>,
    /// Files for the other agent.
    pub files: Vec<FilePart>,
    /// The instance of the other agent; defaults to the one with the caller's key.
    pub instance_key: Option<InstanceKey>,
    /// Whether the other agent has a conversation of its own for this request: see [`AgentRequest::ephemeral`].
    pub ephemeral: bool,
    /// The longest wait for an answer; defaults to [`DEFAULT_TIMEOUT`](Self::DEFAULT_TIMEOUT), and for a model to
    /// [`DEFAULT_MODEL_TIMEOUT`](Self::DEFAULT_MODEL_TIMEOUT). Zero is the default too.
    pub timeout: Duration,
    /// Values for the extensions of the other agent.
    pub metadata: Map<String, Value>,
    /// The instructions for the model.
    pub system: Option<String>,
    /// The options of the model call.
    pub options: ModelOptions,
    /// The value that is expected as the answer, if it is not to be a text.
    // VALUE-01
    pub answer: Option<Box<AnswerFormat>>,
}

impl AgentRequest {
    /// The default of the longest wait of a request to an agent: 15 seconds.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

    /// The default of the longest wait of a request to a model: 60 seconds.
    pub const DEFAULT_MODEL_TIMEOUT: Duration = Duration::from_secs(60);

    /// Returns a request to the agent `target`.
    pub fn new(target: impl Into<String>) -> Self {
        Self::to(RequestTarget::Agent(target.into()), Self::DEFAULT_TIMEOUT)
    }

    /// Returns a request to a model that the running agent may call, or to its own if `name` is `None`.
    ///
    /// The model is asked once, without tools. It reads the [`system`](Self::system) and the [`input`](Self::input) of
    /// the request, not those of the agent, and its answer is not in the conversation nor in the stream of the turn.
    /// The tokens count in the usage of the turn, and the runtime event `model.asked` reports the request. No router is
    /// needed. Dropping the future of the request, or the turn, cancels the model call.
    // D-33
    pub fn model(name: Option<&str>) -> Self {
        Self::to(RequestTarget::Model(name.map(Into::into)), Self::DEFAULT_MODEL_TIMEOUT)
    }

    fn to(target: RequestTarget, timeout: Duration) -> Self {
        Self {
            target,
            input: None,
            files: Vec::new(),
            instance_key: None,
            ephemeral: false,
            timeout,
            metadata: Map::new(),
            system: None,
            options: ModelOptions::default(),
            answer: None,
        }
    }

    /// Sets the text for the other agent, or for the model. A blank text is refused with `E_INPUT` when the request is
    /// sent.
    #[must_use]
    pub fn input(mut self, input: impl Into<String>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Adds a file for the other agent, which can have a text beside it.
    ///
    /// ```
    /// use goondan::agent::AgentRequest;
    /// use goondan::conversation::FilePart;
    ///
    /// let chart = FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named("chart.png");
    /// let request = AgentRequest::new("analyst").input("What does it show?").file(chart);
    /// ```
    #[must_use]
    pub fn file(mut self, file: FilePart) -> Self {
        self.files.push(file);
        self
    }

    /// Sets the instance of the other agent.
    #[must_use]
    pub fn instance(mut self, key: InstanceKey) -> Self {
        self.instance_key = Some(key);
        self
    }

    /// Gives the other agent a conversation of its own for this request: it knows nothing of earlier ones. The
    /// conversation is kept until the turn that asks is committed or closed, so that both can go on after an
    /// interruption, and then it is gone. For [`AgentsApi::request`] alone. An agent may ask itself so.
    ///
    /// ```
    /// use goondan::agent::AgentRequest;
    /// let task = AgentRequest::new("researcher").ephemeral().input("Who wrote this?");
    /// ```
    // D-40
    #[must_use]
    pub fn ephemeral(mut self) -> Self {
        self.ephemeral = true;
        self
    }

    /// Sets how long to wait for an answer. Zero is the default, [`DEFAULT_TIMEOUT`](Self::DEFAULT_TIMEOUT) or
    /// [`DEFAULT_MODEL_TIMEOUT`](Self::DEFAULT_MODEL_TIMEOUT).
    // F-AGENTS
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Adds a value for the extensions of the other agent.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Sets the instructions for the model. Other agents have instructions of their own.
    #[must_use]
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Sets the options of the model call. They go before those that the model was made with.
    #[must_use]
    pub fn options(mut self, options: ModelOptions) -> Self {
        self.options = options;
        self
    }

    /// Expects a value as the answer: see [`AgentsApi::request_as`].
    // VALUE-01
    #[must_use]
    pub fn expecting(mut self, answer: AnswerFormat) -> Self {
        self.answer = Some(Box::new(answer));
        self
    }
}

impl AgentRequest {
    /// Returns how long to wait for an answer.
    #[doc(hidden)]
    pub fn limit(&self) -> Duration {
        match &self.target {
            _ if !self.timeout.is_zero() => self.timeout,
            RequestTarget::Agent(_) => Self::DEFAULT_TIMEOUT,
            RequestTarget::Model(_) => Self::DEFAULT_MODEL_TIMEOUT,
        }
    }

    /// Returns the request if no value in it is too deep and its members fit its target, and drops it otherwise.
    fn checked(mut self) -> Result<Self> {
        let metadata = Unchecked::from(std::mem::take(&mut self.metadata)).into_checked();
        let options = std::mem::take(&mut self.options).checked();
        if let Some(answer) = self.answer.take() {
            self.answer = Some(Box::new(answer.checked()?));
        }
        self.metadata = metadata.map_err(|error| error.refuse("a value in the metadata of the request"))?;
        self.options = options?;
        let to_model = matches!(self.target, RequestTarget::Model(_));
        if self.input.as_ref().map_or(to_model, |input| input.trim().is_empty()) {
            return Err(Error::new(ErrorCode::INPUT, "the input is empty").suggest("pass a text"));
        }
        let of_agents =
            self.instance_key.is_some() || self.ephemeral || !self.metadata.is_empty() || !self.files.is_empty();
        let of_models = self.system.is_some() || self.options != ModelOptions::default();
        if to_model && of_agents {
            let message = "a request to a model has files, an instance or metadata, which only agents read";
            return Err(Error::new(ErrorCode::INPUT, message)
                .suggest("leave them out, or put what the model should know into the input"));
        }
        if self.ephemeral && self.instance_key.is_some() {
            let message = "a request for a conversation of its own names the instance of another one";
            return Err(Error::new(ErrorCode::INPUT, message).suggest("leave out `instance` or `ephemeral`"));
        }
        if !to_model && of_models {
            let message = "a request to an agent has `system` or `options`, which only models read";
            return Err(Error::new(ErrorCode::INPUT, message).suggest("leave them out: the other agent has its own"));
        }
        Ok(self)
    }
}

impl AgentRequest {
    /// Returns the request, unless its conversation would end with this turn, which does not wait for it.
    fn kept(self) -> Result<Self> {
        if self.ephemeral {
            return Err(Error::new(ErrorCode::INPUT, "a conversation that ends with this turn is asked for later")
                .suggest("use `request`, or leave out `ephemeral`"));
        }
        Ok(self)
    }
}

/// The answer of another agent, or of a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AgentResponse {
    /// Who answered.
    pub target: RequestTarget,
    /// The text of the answer.
    pub response: String,
    /// The files in the answer of another agent.
    pub files: Vec<FilePart>,
    /// The tokens that the model call used, if the model reports them. They are part of the usage of this turn. `None`
    /// for another agent, whose turn has a usage of its own.
    pub usage: Option<TokenUsage>,
    /// Why the model stopped, if it says so. [`ModelFinish::Length`] is an answer that a limit of tokens cut off.
    /// `None` for another agent.
    // CUT-01
    pub finish_reason: Option<ModelFinish>,
}

impl AgentResponse {
    #[doc(hidden)]
    pub fn new(target: RequestTarget, response: String, usage: Option<TokenUsage>) -> Self {
        Self { target, response, files: Vec::new(), usage, finish_reason: None }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn with_files(self, files: Vec<FilePart>) -> Self {
        Self { files, ..self }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn with_finish_reason(self, finish_reason: Option<ModelFinish>) -> Self {
        Self { finish_reason, ..self }
    }
}

/// The receipt of a request whose answer arrives later; returned by [`AgentsApi::request_later`].
// F-AGENTS
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTicket {
    /// The id that connects the request and the answer: `requestId` in the metadata of the message with the answer.
    pub correlation_id: String,
}

impl<'a> AgentsApi<'a> {
    /// Returns an API that uses `host`.
    #[doc(hidden)]
    pub fn new(host: &'a dyn AgentsHost, extension: Option<&'a ExtensionName>) -> Self {
        Self { host, extension }
    }

    /// Sends a request to another agent, or to a model, and waits for the answer. The instance of an agent is opened if
    /// it is not running.
    ///
    /// The turn of the other agent belongs to this one. It is cancelled when this one is, when the future is dropped
    /// while this turn runs on, and when the time of the request is over; its usage is in
    /// [`TurnResult::whole_usage`](crate::TurnResult::whole_usage). If this turn is interrupted, that one stays open,
    /// and goes on when this one asks again.
    ///
    /// # Errors
    /// `E_INPUT` when the input is blank or the request has members that are not for its target; `E_VALUE_DEPTH` for
    /// metadata or options that are nested too deeply.
    ///
    /// Of another agent: `AGENT_REQUEST_TIMEOUT`, `AGENT_NOT_FOUND`, `CIRCULAR_CALL_DETECTED` with the chain of
    /// callers, or the error of its turn.
    ///
    /// Of a model: `E_MODEL_NOT_FOUND`, `E_MODEL_TIMEOUT`, `E_MODEL_REFUSED`, `E_MODEL_CONTEXT_OVERFLOW`,
    /// `E_MODEL_ANSWER` for an answer without text or with a value that is nested too deeply, or another error of the
    /// model.
    pub async fn request(&self, request: AgentRequest) -> Result<AgentResponse> {
        self.host.request(request.checked()?, self.extension).await
    }

    /// Sends a request like [`request`](Self::request), and returns its answer as a value of the type `T`. The schema
    /// comes from the type, unless the request [has one](AgentRequest::expecting). The model that answers is asked
    /// again with the fault of its answer, twice at most, unless the request says another number.
    ///
    /// ```
    /// use goondan::agent::AgentRequest;
    /// use goondan::prelude::*;
    ///
    /// # struct Moods;
    /// # #[goondan::extension(name = "moods")]
    /// # impl Moods {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Notes for other layers whether the user is angry.
    /// #[middleware(turn)]
    /// async fn mood(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
    ///     let text = ctx.input().input.clone().unwrap_or_default();
    ///     let request = AgentRequest::model(None).system("Is the user angry?").input(text);
    ///     let is_angry: bool = ctx.agents().request_as(request).await?;
    ///     ctx.metadata_mut().insert("isAngry".to_owned(), is_angry.into());
    ///     next.run(ctx).await
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`request`](Self::request), and `E_ANSWER_SCHEMA` when there is no such value.
    // VALUE-01
    pub async fn request_as<T: DeserializeOwned + JsonSchema>(&self, mut request: AgentRequest) -> Result<T> {
        request.answer.get_or_insert_with(|| Box::new(AnswerFormat::of::<T>()));
        value_of(&self.request(request).await?.response)
    }

    /// Sends a request to another agent without waiting. The answer is appended as a message before the next step that
    /// starts after its arrival, with `__goondanInterAgentResponse` in its metadata. The turn of the other agent
    /// belongs to no other turn: it is not cancelled with this one, and its usage does not count here.
    ///
    /// # Errors
    /// `AGENT_NOT_FOUND`, `CIRCULAR_CALL_DETECTED`, `E_INPUT`, also for a request to a model, or when too many answers
    /// are outstanding.
    // F-AGENTS
    pub fn request_later(&self, request: AgentRequest) -> Result<RequestTicket> {
        self.host.request_later(request.checked()?.kept()?)
    }

    /// Sends a notice to another agent without waiting for its turn. Returns false when no agent accepts it; the log
    /// names the first time why.
    ///
    /// # Errors
    /// `E_INPUT` when the input is blank or the request is to a model, or when the router fails.
    pub async fn send(&self, request: AgentRequest) -> Result<bool> {
        self.host.send(request.checked()?.kept()?).await
    }

    /// Returns the other agents that can be reached: all that the router knows, without the caller.
    pub fn list(&self) -> Vec<AgentName> {
        self.host.list()
    }
}
