//! Input events, which start turns.
// F-EVT

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::AnswerFormat;
use super::SpanId;
use crate::conversation::{Content, FilePart, Part, PartExt, Timestamp, text_of};
use crate::depth::{self, MAX_DEPTH, TooDeep};
use crate::error::{Error, ErrorCode, Result};
use crate::name::{AgentName, EventId, ExtensionName, TraceId};

/// The input of an agent; each event starts one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentEvent {
    /// The id of the event.
    pub id: EventId,
    /// The kind of the event, such as `message`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When the event was created.
    pub created_at: Timestamp,
    /// The text for the model. `None` is an event without text, as of a timer: extensions read its other members. A
    /// blank text is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The parts of the message for the model, if it has files. `input` is then the text of these parts.
    /// [`AgentEvent::to_content`] returns the parts in both cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Part>,
    /// The origin of the event.
    pub source: EventSource,
    /// The id of the trace, which is shared by everything that one input event causes; generated when it is `None`.
    // F-TRACE
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
    /// The span of the agent that sent the event; the parent of the turn's span.
    // F-TRACE
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<SpanId>,
    /// Values for extensions.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// On whose behalf the event was sent; passed on unchanged to other agents.
    // F-AGENTS
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// The agent that waits for the answer, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<ReplyTo>,
    /// The chain of agents that called one another before this one, the first caller first; without this agent.
    // F-AGENTS
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<AgentName>,
    /// The value that is expected as the answer, if it is not to be a text.
    // VALUE-01
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<AnswerFormat>>,
    /// The guards of the agents that have asked, which cover the agents that they ask: an agent without one of them
    /// refuses the event.
    // GUARD-01
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guards: Vec<ExtensionName>,
    /// The number of delegations that have led to this event, one out of the turn of the one before.
    // WAKE-01
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wakings: u32,
}

fn is_zero(wakings: &u32) -> bool {
    *wakings == 0
}

/// On whose behalf an event was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Auth {
    /// The person or program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// Other members, set by the source.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Auth {
    /// The authentication of `principal`.
    pub fn new(principal: Principal) -> Self {
        Self { principal: Some(principal), other: Map::new() }
    }
}

/// A person or program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Principal {
    /// The kind of principal, such as `user`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its id.
    pub id: String,
}

impl Principal {
    /// A principal of a kind, such as `user`.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

/// The agent that waits for the answer to an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReplyTo {
    /// The agent that sent the request.
    pub target: AgentName,
    /// The id that connects the request and the answer.
    pub correlation_id: String,
}

impl ReplyTo {
    /// A request of the agent `target` whose answer has this id.
    pub fn new(target: AgentName, correlation_id: impl Into<String>) -> Self {
        Self { target, correlation_id: correlation_id.into() }
    }
}

/// The origin of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventSource {
    /// `agent` or `connector`.
    pub kind: String,
    /// The name of the agent or connector.
    pub name: String,
    /// Other members, set by the source.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl EventSource {
    /// A source of the kind `agent` or `connector`.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.into(), name: name.into(), other: Map::new() }
    }
}

impl AgentEvent {
    /// Returns an event with a text for the model, from the embedding program.
    pub fn input(text: impl Into<String>) -> Self {
        Self {
            id: EventId::random(),
            kind: "message".to_owned(),
            created_at: Timestamp::now(),
            input: Some(text.into()),
            content: Vec::new(),
            source: EventSource { kind: "connector".to_owned(), name: "local".to_owned(), other: Map::new() },
            trace_id: None,
            parent_span_id: None,
            metadata: Map::new(),
            auth: None,
            reply_to: None,
            callers: Vec::new(),
            guards: Vec::new(),
            answer: None,
            wakings: 0,
        }
    }
}

impl AgentEvent {
    /// The largest file that an event can hold, in bytes.
    pub const MAX_FILE: usize = FilePart::MAX_INLINE;

    /// Returns an event with text and files for the model, from the embedding program.
    ///
    /// ```
    /// use goondan::conversation::{FilePart, TextPart};
    /// use goondan::event::AgentEvent;
    ///
    /// let picture = FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named("dot.png");
    /// let event = AgentEvent::content([TextPart::new("What is this?").into(), picture.into()]);
    /// assert_eq!(event.input.as_deref(), Some("What is this?"));
    /// ```
    pub fn content(parts: impl IntoIterator<Item = Part>) -> Self {
        let content: Vec<_> = parts.into_iter().collect();
        let text = text_of(&content).into_owned();
        let input = (!text.is_empty()).then_some(text);
        Self { input, content, ..Self::input("") }
    }

    /// Sets the id of the event, by which it is answered once: a program that sends a request again gives it the id of
    /// the first time.
    ///
    /// ```
    /// use goondan::event::AgentEvent;
    ///
    /// let event = AgentEvent::input("Refund order 1183.").with_id("request-7f3a");
    /// ```
    // ONCE-01
    #[must_use]
    pub fn with_id(self, id: impl Into<EventId>) -> Self {
        Self { id: id.into(), ..self }
    }

    /// Expects a value as the answer. The model is asked again if its answer is no such value, and the turn fails with
    /// `E_ANSWER_SCHEMA` if it gives none.
    // VALUE-01
    #[must_use]
    pub fn expecting(self, answer: AnswerFormat) -> Self {
        Self { answer: Some(Box::new(answer)), ..self }
    }

    /// Returns the content of the message that starts the turn: the files and texts, or the text, which is one text
    /// part. `None` is an event without input.
    pub fn to_content(&self) -> Option<Content> {
        if self.content.is_empty() {
            return self.input.clone().map(Content::from);
        }
        Some(self.content.clone().into())
    }

    fn empty_input() -> Error {
        Error::new(ErrorCode::INPUT, "the input is empty")
            .suggest("pass a text, or an event without input for extensions that handle it")
    }
}

impl From<&str> for AgentEvent {
    fn from(text: &str) -> Self {
        Self::input(text)
    }
}

impl From<String> for AgentEvent {
    fn from(text: String) -> Self {
        Self::input(text)
    }
}

/// The members of an [`AgentEvent`] for the runtime.
pub trait AgentEventExt {
    /// Returns a message of another agent.
    fn from_agent(agent: &AgentName, input: Option<String>) -> Self;
    /// # Errors
    /// `E_INPUT` when the event has a blank text and no file: models refuse an empty message.
    /// `E_INPUT_FILE` when a file cannot be used: see [`FilePart::check`]. `E_MESSAGE_PART` when a part is neither text
    /// nor a file.
    fn check_input(&self) -> Result<()>;
    /// Checks the values in the event.
    ///
    /// # Errors
    /// The place of the first that is too deep.
    fn check_depth(&self) -> std::result::Result<(), TooDeep>;
    /// Drops the event, in which a value is too deep, and returns the error.
    fn refuse(self, error: TooDeep) -> Error;
}

impl AgentEventExt for AgentEvent {
    fn from_agent(agent: &AgentName, input: Option<String>) -> Self {
        Self { input, source: EventSource::new("agent", agent.as_str()), ..Self::input("") }
    }

    fn check_input(&self) -> Result<()> {
        let has_file = self.content.iter().any(|part| matches!(part, Part::File(_)));
        match &self.input {
            Some(input) if !has_file && input.chars().all(char::is_whitespace) => return Err(Self::empty_input()),
            _ => {}
        }
        self.content.iter().try_for_each(|part| match part {
            Part::File(file) if part.provider().is_none() => file.check(),
            Part::Text(_) if part.provider().is_none() => Ok(()),
            _ => {
                let message = "an input can hold text and files, and no other part";
                Err(Error::new(ErrorCode::MESSAGE_PART, message).suggest("leave the part out"))
            }
        })
    }

    fn check_depth(&self) -> std::result::Result<(), TooDeep> {
        let within = |place: &'static str| move |error: TooDeep| error.within(place);
        depth::check_map(&self.metadata).map_err(within("/metadata"))?;
        depth::check_map(&self.source.other).map_err(within("/source"))?;
        if let Some(auth) = &self.auth {
            depth::check_map(&auth.other).map_err(within("/auth"))?;
        }
        if let Some(answer) = &self.answer {
            depth::check(&answer.schema).map_err(within("/answer/schema"))?;
        }
        let mut parts = self.content.iter().enumerate();
        parts.try_for_each(|(index, part)| {
            part.check_depth(MAX_DEPTH).map_err(|error| error.within(format_args!("/content/{index}")))
        })
    }

    #[cold]
    fn refuse(self, error: TooDeep) -> Error {
        let maps = [self.metadata, self.source.other].into_iter().chain(self.auth.map(|auth| auth.other));
        depth::discard(maps.flat_map(Map::into_values).chain(self.answer.map(|answer| answer.schema)));
        self.content.into_iter().for_each(Part::discard);
        error.refuse("a value in the input event")
    }
}
