//! The requests that extensions make in a turn: to other agents, and to the models of this one.
// D-33

use std::sync::{Arc, OnceLock};

use goondan_core::host::PartExt;
use goondan_core::host::text_of;
use goondan_core::{
    AgentName, AgentRequest, AgentResponse, AgentsHost, BoxFuture, Conversation, Error, ErrorCode, ExtensionName,
    Message, ModelFinish, ModelName, Part, RequestTarget, RequestTicket, Result, Role, RuntimeEvent, Secret, Source,
    Span, SpanId, TokenUsage, ToolCallId, ToolCatalog, TurnInfo,
};
use goondan_lock::Lock;

use super::answer::{Answer, classify, cut_off_in};
use super::report::Reporter;
use super::valued::no_value;
use crate::awaited::AwaitedValue;
use crate::live::within;
use crate::peers::{Asked, Asks, Caller, Inbox, Place, Reach};
use crate::ports::model::{DeltaSink, Model, ModelRequest, ModelResponse, ValueBy};
use crate::spec::AgentSpec;

/// Makes the requests of one turn, step or tool call. Copies belong to the same turn.
#[derive(Clone, Copy)]
pub(crate) struct Requests<'a> {
    pub(super) caller: Caller<'a>,
    pub(super) reporter: &'a Reporter<'a>,
    pub(super) used: &'a RequestUsage,
    /// The extension whose tool asks; the context of a middleware knows its own.
    tool: Option<&'a ExtensionName>,
}

/// The tokens that the model requests of a turn used, and the requests to other agents. Without a request nothing is
/// allocated.
pub(crate) struct RequestUsage {
    tokens: OnceLock<Box<Lock<TokenUsage>>>,
    pub(crate) asked: Asked,
    /// Secret answers of persons, which are masked to the end of the turn.
    secrets: OnceLock<Box<Lock<Vec<Secret>>>>,
}

impl RequestUsage {
    pub(crate) fn new(asked: Asked) -> Self {
        Self { tokens: OnceLock::new(), asked, secrets: OnceLock::new() }
    }

    /// Masks the answer of a person, to the end of the turn.
    pub(super) fn keep_secrets(&self, secrets: impl IntoIterator<Item = Secret>) {
        let mut secrets = secrets.into_iter().peekable();
        if secrets.peek().is_some() {
            self.secrets.get_or_init(Box::default).lock().extend(secrets);
        }
    }

    fn add(&self, usage: TokenUsage) {
        self.asked.spend(usage);
        *self.tokens.get_or_init(Box::default).lock() += usage;
    }

    /// Returns the sum of `usage` and the requests.
    fn with(&self, usage: Option<TokenUsage>) -> Option<TokenUsage> {
        let Some(requests) = self.tokens.get() else { return usage };
        let mut sum = usage.unwrap_or_default();
        sum += *requests.lock();
        Some(sum)
    }
}

impl<'a> Requests<'a> {
    pub(crate) fn new(
        spec: &'a AgentSpec,
        turn: &'a Arc<TurnInfo>,
        inbox: &'a Arc<Inbox>,
        reach: &'a Reach,
        asks: &'a Asks<'a>,
        reporter: &'a Reporter<'a>,
        used: &'a RequestUsage,
    ) -> Self {
        let span = reporter.span.id;
        let caller = Caller { spec, turn, span, inbox, reach, asks, asked: &used.asked, place: Place::Turn };
        Self { caller, reporter, used, tool: None }
    }

    /// Returns the same for a step of another generation, whose span is `span`.
    pub(super) fn in_step(self, spec: &'a AgentSpec, index: u32, span: SpanId) -> Self {
        Self { caller: Caller { spec, place: Place::Step(index), ..self.caller }, ..self }.within(span)
    }

    /// Returns the same for a tool call, whose span is `span`.
    pub(super) fn in_call(self, call: &'a ToolCallId, span: SpanId) -> Self {
        Self { caller: Caller { place: Place::Call(call), ..self.caller }, ..self }.within(span)
    }

    /// Returns the same for another span.
    pub(super) fn within(self, span: SpanId) -> Self {
        Self { caller: self.caller.within(span), ..self }
    }

    /// Returns the same for a tool of `extension`.
    pub(super) fn of_tool(self, extension: &'a ExtensionName) -> Self {
        Self { tool: Some(extension), ..self }
    }

    /// Returns the tokens of a turn whose steps used `steps`.
    pub(super) fn total(&self, steps: Option<TokenUsage>) -> Option<TokenUsage> {
        self.used.with(steps)
    }

    /// Returns the tokens of such a turn and of the turns of other agents that it has waited for, if there are any.
    // WORK-02
    pub(super) fn whole(&self, steps: Option<TokenUsage>) -> Option<TokenUsage> {
        let mut whole = self.used.asked.spent()?;
        if let Some(own) = self.total(steps) {
            whole += own;
        }
        Some(whole)
    }

    /// Asks a model, and reports it.
    async fn ask(
        &self,
        name: Option<&ModelName>,
        request: &AgentRequest,
        extension: Option<&ExtensionName>,
    ) -> Result<AgentResponse> {
        let watch = self.reporter.stopwatch();
        let mut response = ModelResponse::default();
        let text = self.call_model(name, request, &mut response).await;
        let ModelResponse { content, usage, model, finish_reason, .. } = response;
        content.into_iter().for_each(Part::discard);
        let span = Span::of_turn(Some(self.caller.span));
        self.reporter.report("model.asked", span, |scope| RuntimeEvent::ModelAsked {
            scope,
            extension_name: extension.or(self.tool).cloned(),
            model_name: name.cloned(),
            model,
            duration: watch.elapsed(),
            token_usage: usage,
            error_message: text.as_ref().err().map(Error::to_string),
        });
        Ok(AgentResponse::new(request.target.clone(), text?, usage).with_finish_reason(finish_reason))
    }

    /// Asks a model, without tools, and returns the text of its answer. The response is kept in `response`, whatever it
    /// is worth, with the tokens of all requests.
    async fn call_model(
        &self,
        name: Option<&ModelName>,
        request: &AgentRequest,
        response: &mut ModelResponse,
    ) -> Result<String> {
        let model = match name {
            None => &*self.caller.spec.model,
            Some(name) => self.caller.spec.named_model(name.as_str())?,
        };
        let limit = request.limit();
        let asked = async {
            match &request.answer {
                None => {
                    self.ask_once(model, request, vec![Arc::new(Message::user(input(request)))], None, response).await
                }
                Some(format) => self.ask_for_value(model, request, &AwaitedValue::new(format)?, response).await,
            }
        };
        within(limit, None, asked).await.unwrap_or_else(|| {
            let message = format!("the model did not answer the request of an extension within {limit:?}");
            Err(Error::new(ErrorCode::MODEL_TIMEOUT, message)
                .suggest("ask for less at once, or give the request a longer timeout")
                .retryable(true))
        })
    }

    /// Asks a model until its answer is a value, as often as is allowed.
    // VALUE-01
    async fn ask_for_value(
        &self,
        model: &dyn Model,
        request: &AgentRequest,
        awaited: &AwaitedValue,
        response: &mut ModelResponse,
    ) -> Result<String> {
        let mut messages = vec![Arc::new(Message::user(input(request)))];
        let mut repeated = 0;
        loop {
            let text = self.ask_once(model, request, messages.clone(), Some(awaited), response).await?;
            let problem = match awaited.read(&text) {
                Ok(value) => return Ok(value),
                Err(_) if response.finish_reason == Some(ModelFinish::Length) => {
                    return Err(cut_off_in("in the middle of the value"));
                }
                Err(problem) if repeated == awaited.at_most() => return Err(no_value(&problem, &text)),
                Err(problem) => problem,
            };
            repeated += 1;
            messages.push(Arc::new(Message::new(Role::Assistant, text, Source::System)));
            messages.push(Arc::new(Message::new(Role::User, awaited.words(&problem), Source::System)));
        }
    }

    /// Asks a model once.
    async fn ask_once(
        &self,
        model: &dyn Model,
        request: &AgentRequest,
        mut messages: Vec<Arc<Message>>,
        awaited: Option<&AwaitedValue>,
        response: &mut ModelResponse,
    ) -> Result<String> {
        let (mut tools, mut options) = (ToolCatalog::default(), Some(Box::new(request.options.clone())));
        let mut by = None;
        if let Some(awaited) = awaited {
            let conversation = Conversation::from_base(messages.clone()).0;
            let question = ModelRequest::new(request.system.as_deref(), &conversation, &tools);
            let chosen = awaited.choose(model, &question.with_options(options.as_deref()));
            awaited.offer(chosen, &mut tools, &mut options)?;
            let words = AwaitedValue::instruction(chosen);
            messages.extend(words.map(|words| Arc::new(Message::new(Role::System, words, Source::System))));
            by = Some(chosen);
        }
        let conversation = Conversation::from_base(messages).0;
        let schema = awaited.filter(|_| by == Some(ValueBy::Schema)).map(AwaitedValue::object);
        let question = ModelRequest::new(request.system.as_deref(), &conversation, &tools)
            .with_options(options.as_deref())
            .with_value_schema(schema);
        let used = response.usage;
        let mut answer = model.generate(question, DeltaSink::none()).await;
        if let Err(error) = &answer
            && *error.code() == ErrorCode::MODEL_REQUEST
            && by.is_some_and(|by| by != ValueBy::Tool)
        {
            // The provider may have refused how the model is held to the value.
            let plain = question.with_value_schema(None).with_options(Some(&request.options));
            answer = model.generate(plain, DeltaSink::none()).await;
        }
        *response = answer?;
        if let Some(usage) = response.usage {
            self.used.add(usage);
        }
        if let Some(used) = used {
            *response.usage.get_or_insert_default() += used;
        }
        if by.is_some()
            && let Some(at) = AwaitedValue::take_call(&mut response.content, &mut response.finish_reason)
        {
            AwaitedValue::keep(&mut response.content, at);
        }
        text_answered(response, awaited.is_some())
    }
}

/// Returns the text that a model has answered. It may be empty if a value was asked for.
fn text_answered(response: &ModelResponse, may_be_empty: bool) -> Result<String> {
    let unusable = |problem: &str| {
        Error::new(ErrorCode::MODEL_ANSWER, format!("the answer to the request of an extension: {problem}"))
            .suggest("ask again, or ask another model")
    };
    match classify(&response.content, response.finish_reason, may_be_empty) {
        Answer::Refused(error) => return Err(error),
        Answer::Malformed(problem) => return Err(unusable(&problem)),
        Answer::Usable | Answer::Paused | Answer::NothingToAdd => {}
    }
    let text = text_of(&response.content);
    if text.trim().is_empty() && !may_be_empty { Err(unusable("it has no text")) } else { Ok(text.into_owned()) }
}

fn input(request: &AgentRequest) -> String {
    request.input.clone().unwrap_or_default()
}

impl AgentsHost for Requests<'_> {
    fn request<'a>(
        &'a self,
        request: AgentRequest,
        extension: Option<&'a ExtensionName>,
    ) -> BoxFuture<'a, Result<AgentResponse>> {
        Box::pin(async move {
            match &request.target {
                RequestTarget::Model(name) => self.ask(name.as_ref(), &request, extension).await,
                _ => self.caller.request(request).await,
            }
        })
    }

    fn request_later(&self, request: AgentRequest) -> Result<RequestTicket> {
        self.caller.request_later(request)
    }

    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<bool>> {
        Box::pin(self.caller.send(request))
    }

    fn list(&self) -> Vec<AgentName> {
        self.caller.list()
    }
}
