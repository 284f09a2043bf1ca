//! Why a request failed, and whether asking again may help.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::time::{Duration, SystemTime};

use goondan_core::secret::mask;
use goondan_core::{Error, ErrorCode};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::limits::Broken;

mod date;

/// The most characters of the provider's own message that are shown.
const SHOWN: usize = 500;

/// A failed request, from which an [`Error`] is made when it is not repeated.
#[derive(Debug)]
pub struct Failure {
    kind: FailureKind,
    status: Option<StatusCode>,
    provider_code: Option<String>,
    message: Cow<'static, str>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kinds of failures, each with an error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The key is refused or absent.
    Auth,
    /// The account has no credit left.
    Quota,
    /// Too many requests or tokens.
    RateLimit,
    /// The provider failed, or has too much to do.
    Overloaded,
    /// The provider cannot be reached, or the connection broke before the end of the answer.
    Network,
    /// A limit of time was exceeded.
    Timeout,
    /// The request does not fit into the context window of the model.
    ContextOverflow,
    /// The provider withholds the answer.
    Refused,
    /// The provider refuses the request for another reason.
    Request,
    /// The response is not an answer of this interface.
    Answer,
    /// The answer is larger than the model's config allows.
    TooLarge,
    /// The request is not in the cassette that is played, or the exchange cannot be recorded.
    Cassette,
}

impl FailureKind {
    /// Returns the error code.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Auth => ErrorCode::MODEL_AUTH,
            Self::Quota => ErrorCode::MODEL_QUOTA,
            Self::RateLimit => ErrorCode::MODEL_RATE_LIMIT,
            Self::Overloaded => ErrorCode::MODEL_OVERLOADED,
            Self::Network => ErrorCode::MODEL_NETWORK,
            Self::Timeout => ErrorCode::MODEL_TIMEOUT,
            Self::ContextOverflow => ErrorCode::MODEL_CONTEXT_OVERFLOW,
            Self::Refused => ErrorCode::MODEL_REFUSED,
            Self::Request => ErrorCode::MODEL_REQUEST,
            Self::Answer | Self::TooLarge => ErrorCode::MODEL_ANSWER,
            Self::Cassette => ErrorCode::MODEL_CASSETTE,
        }
    }

    /// Returns whether the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::RateLimit | Self::Overloaded | Self::Network | Self::Timeout | Self::Answer => true,
            Self::Auth | Self::Quota | Self::ContextOverflow | Self::Refused | Self::Request => false,
            Self::TooLarge | Self::Cassette => false,
        }
    }

    /// Returns the remedy for the reader of the error.
    fn remedy(self) -> &'static str {
        match self {
            Self::Auth => "set `apiKey` of the model to a key that the provider accepts for it",
            Self::Quota => "add credit, or raise the limit of the account, at the provider",
            Self::RateLimit => "wait, or raise the limit at the provider or `retries` of the model",
            Self::Overloaded => "try again later, or use another model",
            Self::Network => "check `baseUrl` of the model and the network",
            Self::Timeout => "try again later, or raise `timeouts` of the model",
            Self::ContextOverflow => "shorten the conversation, or use a model with a larger window",
            Self::Refused => "change the request, or use another model",
            Self::Request => "correct `model`, `baseUrl` or the options of the model",
            Self::Answer => "check that `baseUrl` of the model is the address of the provider's interface",
            Self::TooLarge => "raise the limit in `answer` of the model if such answers are expected",
            Self::Cassette => {
                "record the conversation anew (`goondan run --cassettes record`), undo what changed it, or begin it \
                 from its start, in a new instance"
            }
        }
    }
}

impl Failure {
    /// Returns a failure of this kind. The message is a sentence without its period.
    pub fn new(kind: FailureKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            status: None,
            provider_code: None,
            message: message.into(),
            request_id: None,
            retry_after: None,
            source: None,
        }
    }

    /// Returns the failure for an event that is not JSON of this wire.
    pub fn unreadable(error: serde_json::Error) -> Self {
        Self::new(FailureKind::Answer, "the provider sent an event that cannot be read").caused_by(error)
    }

    /// Returns the failure for an answer with more `parts`, such as bytes, than `max`, which is the limit `setting` of
    /// the model.
    pub(crate) fn too_large(parts: &str, setting: &str, max: usize) -> Self {
        Self::new(FailureKind::TooLarge, format!("the answer has more than {max} {parts} (`answer.{setting}`)"))
    }

    /// Returns whether this is the failure for an event that cannot be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is::<serde_json::Error>())
    }

    /// Returns the failure for an answer whose end did not arrive.
    pub fn cut_off() -> Self {
        Self::new(FailureKind::Network, "the answer ended before it was complete")
    }

    /// Returns the failure that a response without an answer reports.
    ///
    /// It knows the forms of all common providers: `{"error": {"message", "type" | "code" | "status"}}`,
    /// `{"error": "…"}`, `{"message": "…"}`, `{"detail": "…"}`, and a list with one such object.
    pub fn from_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let json = serde_json::from_str::<Value>(&text).unwrap_or_default();
        let mut failure = match reported(&json) {
            Some(report) => Self::from_report(Some(status), report),
            None => Self::of(Some(status), None, None, plain(&text)),
        };
        if status.is_redirection() {
            let host = headers.get(http::header::LOCATION).and_then(|location| location.to_str().ok());
            let host = host.and_then(|location| location.parse::<http::Uri>().ok()?.host().map(str::to_owned));
            let to = host.map(|host| format!(" to `{host}`")).unwrap_or_default();
            failure.message = format!("the provider redirects the request{to}, and keys do not follow").into();
        }
        failure.retry_after = retry_after(headers).or(failure.retry_after);
        failure.with_request_id(request_id(headers))
    }

    /// Returns the failure that an event in the middle of an answer reports: the object with its message and code.
    pub fn from_event(report: &Value) -> Self {
        Self::from_report(None, report)
    }

    fn from_report(status: Option<StatusCode>, report: &Value) -> Self {
        let text = |name: &str| report.get(name).and_then(Value::as_str);
        let message = report.as_str().or_else(|| ["message", "detail", "error"].into_iter().find_map(text));
        // Gateways that have begun to answer put the status of their provider into a number.
        let number = report.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let status = status.filter(|status| !status.is_success()).or_else(|| StatusCode::from_u16(number?).ok());
        // OpenAI's `code` is more precise than its `type`; Gemini's is a number, and its `status` the code.
        let mut codes: Vec<_> = ["code", "type", "status"].into_iter().filter_map(text).collect();
        let mut message = message.unwrap_or("").to_owned();
        let gateway = report.get("metadata").unwrap_or(&Value::Null);
        if let Some(upstream) = upstream(gateway) {
            message += &format!(": {upstream}");
        }
        let details = report.get("details").and_then(Value::as_array).into_iter().flatten();
        codes.extend(details.clone().filter_map(|detail| detail.get("reason")?.as_str()));
        let mut failure = Self::of(status, codes.first().copied(), codes.get(1).copied(), plain(&message));
        if gateway.get("flagged_input").is_some() || gateway.get("reasons").is_some() {
            failure.kind = FailureKind::Refused;
        }
        let delays = details.filter_map(|detail| detail.get("retryDelay")?.as_str()?.strip_suffix('s')?.parse().ok());
        failure.retry_after = delays.filter_map(|seconds| Duration::try_from_secs_f64(seconds).ok()).next();
        failure
    }

    fn of(status: Option<StatusCode>, code: Option<&str>, other: Option<&str>, message: String) -> Self {
        let codes = [code, other].into_iter().flatten();
        let kind = classify(status, codes, &message);
        let provider_code = code.map(str::to_owned);
        Self { status, provider_code, ..Self::new(kind, message) }
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// Sets the provider's id of the request, unless it is known.
    #[must_use]
    pub fn with_request_id(mut self, id: Option<String>) -> Self {
        self.request_id = self.request_id.or(id);
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the status, and the message of the provider or another cause.
    pub fn reason(&self) -> Cow<'_, str> {
        match self.status.map(|status| status.as_u16()) {
            None => Cow::Borrowed(&self.message),
            Some(status) if self.message.is_empty() => format!("status {status}").into(),
            Some(status) => format!("status {status}: {}", self.message).into(),
        }
    }

    /// Returns the provider's code of the failure.
    pub fn provider_code(&self) -> Option<&str> {
        self.provider_code.as_deref()
    }

    /// Returns how long the provider wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns whether the provider refused the request because of reasoning in it.
    pub fn is_about_reasoning(&self) -> bool {
        // OpenAI says "not persisted" of reasoning that came without its encrypted content.
        const WORDS: [&str; 5] = ["signature", "thinking", "reasoning", "encrypted", "not persisted"];
        let message = self.message.to_lowercase();
        self.kind == FailureKind::Request
            && matches!(self.status, Some(StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND))
            && WORDS.iter().any(|word| message.contains(word))
    }

    /// Returns whether the provider refused the container of an earlier answer, which may have expired.
    pub fn is_about_container(&self) -> bool {
        self.kind == FailureKind::Request
            && matches!(self.status, Some(StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND))
            && self.message.to_lowercase().contains("container")
    }

    /// Returns whether the provider refused how the request says which tools may be called.
    pub fn is_about_tool_choice(&self) -> bool {
        const WORDS: [&str; 3] = ["allowed_tools", "tool_choice", "tool choice"];
        let message = self.message.to_lowercase();
        self.kind == FailureKind::Request
            && self.status == Some(StatusCode::BAD_REQUEST)
            && WORDS.iter().any(|word| message.contains(word))
    }

    /// Returns the error that ends the call of a model of `provider` after `attempts` requests.
    pub fn into_error(self, provider: &str, attempts: u32) -> Error {
        let Self { kind, status, provider_code, message, request_id, retry_after, source } = self;
        let mut text = format!("{provider}: ");
        if let Some(status) = status {
            text += &format!("{}", status.as_u16());
            text += status.canonical_reason().map(|reason| format!(" {reason}")).as_deref().unwrap_or_default();
            text += if message.is_empty() { "" } else { ": " };
        }
        text += if message.is_empty() && status.is_none() { "the provider reported a failure" } else { &message };
        if let Some(id) = &request_id {
            text += &format!(" (request {id})");
        }
        let mut error = Error::new(kind.code(), text)
            .suggest(kind.remedy())
            .retryable(kind.is_retryable())
            .with_detail("attempts", attempts);
        if let Some(status) = status {
            error = error.with_detail("status", status.as_u16());
        }
        if let Some(code) = provider_code {
            error = error.with_detail("providerCode", code);
        }
        if let Some(id) = request_id {
            error = error.with_detail("requestId", id);
        }
        if let Some(after) = retry_after {
            error = error.with_detail("retryAfterMs", u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        }
        match source {
            Some(source) => error.caused_by(source),
            None => error,
        }
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        let message = broken.to_string();
        match broken {
            Broken::Silent { .. } => Self::new(FailureKind::Timeout, message),
            Broken::Connection(source) => Self::new(FailureKind::Network, message).caused_by(source),
        }
    }
}

/// Returns the object in a response that has the message.
fn reported(json: &Value) -> Option<&Value> {
    let json = json.as_array().and_then(|items| items.first()).unwrap_or(json);
    match json.get("error") {
        Some(error) if error.is_object() || error.is_string() => Some(error),
        _ => ["message", "detail"].iter().any(|name| json.get(name).is_some_and(Value::is_string)).then_some(json),
    }
}

/// Returns the report of the provider behind a gateway such as OpenRouter, with its name.
fn upstream(metadata: &Value) -> Option<String> {
    let name = metadata.get("provider_name").and_then(Value::as_str);
    let raw = metadata.get("raw").map(|raw| match raw {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| raw.clone()),
        raw => raw.clone(),
    });
    let message = raw.as_ref().and_then(|raw| {
        let report = reported(raw).unwrap_or(raw);
        report.as_str().or_else(|| report.get("message")?.as_str())
    });
    match (name, message) {
        (Some(name), Some(message)) => Some(format!("{name}: {message}")),
        (None, one) | (one, None) => one.map(str::to_owned),
    }
}

/// Returns the beginning of a text on one line, without control characters and secrets: servers repeat keys, and all
/// that is cut off in the middle of one would not be recognized later.
fn plain(text: &str) -> String {
    let text = mask(text);
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Phrases with which providers say that a request is too long for the model, in lower case.
const OVERFLOW: [&str; 25] = [
    // Anthropic
    "prompt is too long",
    "exceed context limit",
    // OpenAI, vLLM, DeepSeek, Mistral, OpenRouter
    "maximum context length",
    "context_length_exceeded",
    "exceeds the context window",
    // Gemini
    "exceeds the maximum number of tokens",
    "but model only supports up to",
    "request payload size exceeds the limit",
    // xAI
    "maximum prompt length",
    // Groq, Cerebras
    "reduce the length of the messages",
    // llama.cpp, LM Studio, Ollama
    "exceeds the available context size",
    "exceed context window",
    "greater than the context length",
    "exceeds context length",
    // Amazon Bedrock
    "input is too long",
    // Together
    "tokens exceed the",
    // Text Generation Inference
    "tokens + `max_new_tokens` must be",
    // vLLM, SGLang
    "longer than the maximum model length",
    "longer than the model's context length",
    // Ollama
    "exceeded max context length",
    // LM Studio
    "when context the overflows",
    // Moonshot, Z.ai, MiniMax
    "exceeded model token limit",
    "prompt exceeds max length",
    "context window exceeds limit",
    // GitHub
    "prompt token count of",
];

/// Decides the meaning of a status, the provider's codes and its message.
fn classify<'a>(
    status: Option<StatusCode>,
    mut codes: impl Iterator<Item = &'a str> + Clone,
    message: &str,
) -> FailureKind {
    let status = status.map(|status| status.as_u16());
    let message = message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
    let is = |known: &[&str]| codes.clone().any(|code| known.contains(&code));
    let too_long = is(&["context_length_exceeded", "request_too_large"]) || status == Some(413);
    if too_long || (status != Some(429) && says(&OVERFLOW)) {
        return FailureKind::ContextOverflow;
    }
    let quota = is(&["insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"])
        || is(&["ServiceQuotaExceededException"]);
    if quota
        || status == Some(402)
        || says(&["credit balance is too low", "insufficient balance", "used all available credits"])
    {
        return FailureKind::Quota;
    }
    let auth = is(&["authentication_error", "permission_error", "invalid_api_key"])
        || is(&["UNAUTHENTICATED", "PERMISSION_DENIED", "API_KEY_INVALID"])
        || is(&["IncompleteSignatureException", "ExpiredTokenException", "UnrecognizedClientException"]);
    if auth || matches!(status, Some(401 | 403)) || says(&["api key not valid", "incorrect api key"]) {
        return FailureKind::Auth;
    }
    if is(&["rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"]) || status == Some(429) {
        return FailureKind::RateLimit;
    }
    if is(&["content_filter", "content_policy_violation"]) {
        return FailureKind::Refused;
    }
    if is(&["tool_use_failed"]) {
        // Groq's models sometimes write calls that cannot be read.
        return FailureKind::Answer;
    }
    if is(&["ModelErrorException", "ModelStreamErrorException", "modelStreamErrorException"]) {
        // The status 424 of Amazon Bedrock: its model failed.
        return FailureKind::Overloaded;
    }
    match status {
        Some(408 | 409 | 500..) => FailureKind::Overloaded,
        Some(_) => FailureKind::Request,
        // In the middle of an answer, the request has been accepted already.
        None if codes
            .any(|code| code.starts_with("invalid") || code.contains("image") || code == "not_found_error") =>
        {
            FailureKind::Request
        }
        None => FailureKind::Overloaded,
    }
}

/// Returns the provider's id of the request.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let header = |name| headers.get(name)?.to_str().ok().map(plain);
    ["request-id", "x-request-id", "x-amzn-requestid"].into_iter().find_map(header)
}

/// Returns how long the provider wants to be left alone.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(after) =
        header("retry-after-ms").and_then(|ms| Duration::try_from_secs_f64(ms.parse::<f64>().ok()? / 1e3).ok())
    {
        return Some(after);
    }
    let after = header("retry-after")?;
    if let Ok(seconds) = after.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    // The clocks of the two sides may differ.
    let now = header("date").and_then(date::parse).unwrap_or_else(SystemTime::now);
    date::parse(after).map(|until| until.duration_since(now).unwrap_or_default())
}
