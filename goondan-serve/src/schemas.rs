//! The JSON of types of other crates, for `/openapi.json`. Tests check responses against it.
#![expect(dead_code, reason = "these types are read by schemars alone")]

use std::collections::HashMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// A problem with a request (RFC 9457).
#[derive(JsonSchema)]
pub(crate) struct Problem {
    /// The page about the code.
    r#type: String,
    title: String,
    status: u16,
    detail: String,
    /// The stable code, such as `E_SERVE_REQUEST`.
    code: String,
    suggestion: Option<String>,
}

/// The end of a turn.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct TurnEnd {
    turn_id: Option<String>,
    finish_reason: FinishReason,
    /// The text of the answer.
    response: Option<String>,
    /// The value that the answer is, if one was expected.
    #[schemars(default)]
    value: Value,
    steps: u32,
    tool_calls: Vec<ToolCall>,
    #[schemars(default)]
    usage: Option<Usage>,
    /// The tokens with those of the turns of other agents that it has waited for.
    #[schemars(default)]
    whole_usage: Option<Usage>,
    /// The calls that wait for decisions, if it is suspended.
    #[schemars(default)]
    waits: Vec<Wait>,
    #[schemars(default)]
    error: Option<TurnError>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
enum FinishReason {
    TextResponse,
    MaxSteps,
    Length,
    Error,
    Suspended,
    Other,
}

#[derive(JsonSchema)]
#[schemars(inline)]
struct ToolCall {
    id: String,
    name: String,
    status: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", inline)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", inline)]
struct TurnError {
    message: String,
    /// The stable code, such as `E_MODEL`.
    code: String,
    #[schemars(default)]
    suggestion: Option<String>,
    #[schemars(default)]
    help_url: Option<String>,
}

/// A call that waits for a person.
#[derive(JsonSchema)]
pub(crate) struct Wait {
    /// The live question, if the turn runs while it waits.
    #[schemars(default)]
    id: Option<String>,
    call: String,
    tool: String,
    args: Map<String, Value>,
    questions: Vec<Asked>,
    since: String,
    /// When it is answered without the person.
    #[schemars(default)]
    expires: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(inline)]
struct Asked {
    #[schemars(flatten)]
    id: QuestionId,
    question: Question,
}

/// The extension and the function that ask, which tell the questions about one call apart.
#[derive(JsonSchema)]
#[schemars(inline)]
struct QuestionId {
    extension: String,
    function: String,
    #[schemars(default)]
    name: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(inline)]
struct Question {
    text: String,
    /// The JSON Schema of the value that it expects; without it, `true` or `false`.
    #[schemars(default)]
    schema: Value,
    /// A page that the person opens to answer.
    #[schemars(default)]
    url: Option<String>,
}

/// A decision. Without `value`, `args` and `reject`, it says yes.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Decision {
    /// The live question that is answered.
    #[schemars(default)]
    id: Option<String>,
    call: String,
    /// The question, if the call has several.
    #[schemars(default)]
    question: Option<QuestionId>,
    /// The value that the question expects.
    #[schemars(default)]
    value: Value,
    /// The arguments that the call has instead of those of the model.
    #[schemars(default)]
    args: Option<Map<String, Value>>,
    /// The reason for which the call does not run.
    #[schemars(default)]
    reject: Option<String>,
}

/// A message of a conversation.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Message {
    id: String,
    data: MessageData,
    metadata: HashMap<String, Value>,
    created_at: String,
    source: Value,
    /// The turn that made it.
    #[schemars(default)]
    turn: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(inline)]
struct MessageData {
    role: String,
    content: Content,
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of a content: its members are those of its type.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Part {
    /// `text`, `file`, `reasoning`, `tool-call`, `tool-result`, or a type of a provider.
    r#type: String,
    /// Of `text` and `reasoning`.
    #[schemars(default)]
    text: Option<String>,
    /// Of `file`, such as `image/png`.
    #[schemars(default)]
    media_type: Option<String>,
    /// Of `file`: a `data:` URL or an address.
    #[schemars(default)]
    url: Option<String>,
}

/// A value that is expected as an answer.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct AnswerFormat {
    /// Its JSON Schema.
    schema: Value,
    /// The most times that the model is asked again.
    #[schemars(default)]
    at_most: Option<u32>,
}

/// A conversation.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Instance {
    agent: String,
    key: String,
    created_at: String,
    updated_at: String,
    status: InstanceStatus,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
enum InstanceStatus {
    Idle,
    Interrupted,
    Suspended,
    Open,
    Unreadable,
}
