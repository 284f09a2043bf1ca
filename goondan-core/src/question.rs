//! Questions about tool calls, and the calls that wait for a decision.
// ASK-01

use std::time::Duration;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::conversation::Timestamp;
use crate::depth;
use crate::error::{Error, ErrorCode, Result};
use crate::name::{AgentName, ExtensionName, InstanceKey, LiveQuestionId, ToolCallId};
use crate::presentation::Presentation;
use crate::secret::{mask_members, mask_text};
use crate::shown::Shown;

/// A question about a tool call, which a layer sets by [`ToolCallContext::ask`](crate::ToolCallContext::ask): the call
/// does not run before a person, or a program, has decided.
///
/// ```
/// use std::time::Duration;
///
/// use goondan::decision::{OnInput, Question};
///
/// let day = Duration::from_secs(86_400);
/// let question = Question::new("Refund 49.00 EUR?").expires_after(7 * day).on_input(OnInput::Reject);
/// assert_eq!(question.text, "Refund 49.00 EUR?");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Question {
    /// The name that tells it from other questions of the same function about the same call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The text for the person.
    pub text: String,
    /// The JSON Schema of the value that is expected. `None` for any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The longest wait for a decision, in milliseconds; `None` without an end. Then the call is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after_ms: Option<u64>,
    /// The effect of another input of a person meanwhile.
    #[serde(default)]
    pub on_input: OnInput,
    /// The answer without a person to ask.
    #[serde(default, skip_serializing_if = "Unanswered::is_suspend")]
    pub unanswered: Unanswered,
    /// The address that the person is to open, if the question is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The longest text, schema and address of a question that a handler asks, in bytes.
const MAX_TEXT: usize = 16 * 1024;
const MAX_SCHEMA: usize = 64 * 1024;
const MAX_URL: usize = 8 * 1024;

/// The answer to a question without a person to ask. A front end without one, such as `goondan run` in a pipe, takes
/// it. A program decides itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unanswered {
    /// The call does not run.
    Reject,
    /// This value.
    Value(Value),
    /// None: the call waits on. Also for one that this version does not know.
    #[default]
    #[serde(other)]
    Suspend,
}

impl Unanswered {
    fn is_suspend(&self) -> bool {
        *self == Self::Suspend
    }
}

/// The kind of answer that a question expects: [`Question::kind`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnswerKind {
    /// Yes, or no, which rejects.
    Confirm,
    /// One of these.
    Choose(Vec<AnswerOption>),
    /// Any number of these.
    ChooseSeveral(Vec<AnswerOption>),
    /// A text.
    Text,
    /// A text that is shown to nobody and stored nowhere.
    Secret,
    /// Yes, once this address was opened.
    Address(String),
    /// A value of another type, which the schema describes.
    Form,
}

/// One of the answers that a person can choose.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AnswerOption {
    /// The value.
    pub value: Value,
    /// The text for the person.
    pub title: String,
}

/// Returns the answers of a schema that lists them: by `enum`, with `enumNames` if there are some, or by `oneOf` or
/// `anyOf` with `const` and `title`.
fn options(schema: &Value) -> Option<Vec<AnswerOption>> {
    let title = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array).filter(|names| names.len() == values.len());
        let named = values.iter().enumerate().map(|(index, value)| AnswerOption {
            value: value.clone(),
            title: title(names.map_or(value, |names| &names[index])),
        });
        return Some(named.collect());
    }
    let listed = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let option = |listed: &Value| {
        let value = listed.get("const")?.clone();
        Some(AnswerOption { title: listed.get("title").map_or_else(|| title(&value), title), value })
    };
    listed.iter().map(option).collect()
}

/// Returns the only type of a value that is not null.
fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::Array(types) => {
            let mut types = types.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            types.next().filter(|_| types.next().is_none())
        }
        name => name.as_str(),
    }
}

/// Whether a schema describes a secret.
fn is_secret(schema: &Value) -> bool {
    schema.get("format").is_some_and(|format| format == "password")
}

/// Whether a schema, or one within it, describes a secret.
fn has_secret(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => is_secret(schema) || members.values().any(has_secret),
        Value::Array(items) => items.iter().any(has_secret),
        _ => false,
    }
}

/// Adds all texts in a value.
fn add_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|member| add_texts(member, texts)),
        _ => {}
    }
}

fn texts(options: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    options.into_iter().map(Into::into).collect()
}

/// The effect of another input of a person while a call waits for a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OnInput {
    /// The calls of the turn are rejected, the turn is closed, and the input has the next turn. An input that was made
    /// before the question is refused nevertheless.
    Reject,
    /// The input is refused with `E_INSTANCE_SUSPENDED`, and the call waits on. Also one that this version does not
    /// know.
    #[default]
    #[serde(other)]
    Refuse,
}

impl Question {
    /// A question that any value answers, without an end.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            name: None,
            text: text.into(),
            schema: None,
            expires_after_ms: None,
            on_input: OnInput::default(),
            url: None,
            unanswered: Unanswered::default(),
        }
    }

    /// A question that one of these answers: the value is its text.
    ///
    /// ```
    /// use goondan::decision::{AnswerKind, Question};
    ///
    /// let question = Question::choose("Which carrier?", ["Post", "Express"]);
    /// let AnswerKind::Choose(options) = question.kind() else { panic!("it is a choice") };
    /// assert_eq!(options[1].title, "Express");
    /// ```
    // ASK-04
    pub fn choose(text: impl Into<String>, options: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::new(text).expecting_schema(json!({ "type": "string", "enum": texts(options) }))
    }

    /// A question that any number of these answers: the value is the list of their texts.
    // ASK-04
    pub fn choose_several(text: impl Into<String>, options: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let items = json!({ "type": "string", "enum": texts(options) });
        Self::new(text).expecting_schema(json!({ "type": "array", "items": items, "uniqueItems": true }))
    }

    /// A question that a text answers.
    // ASK-04
    pub fn for_text(text: impl Into<String>) -> Self {
        Self::new(text).expecting_schema(json!({ "type": "string" }))
    }

    /// A question that a secret text answers, which [`Secret`](crate::Secret) reads. It is not shown while it is typed,
    /// and stored nowhere: if the process ends before the call has run, the question is asked again. A secret of fewer
    /// than 8 characters cannot be masked elsewhere.
    // ASK-04
    pub fn for_secret(text: impl Into<String>) -> Self {
        Self::new(text).expecting_schema(json!({ "type": "string", "format": "password", "writeOnly": true }))
    }

    /// A question that lets the person open an address, and that is answered when they have done their part
    /// there.
    // ASK-04
    pub fn for_address(text: impl Into<String>, url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::new(text) }
    }

    /// Returns the kind of answer that is expected, as front ends ask for it: it follows from the schema.
    // ASK-04
    pub fn kind(&self) -> AnswerKind {
        if let Some(url) = &self.url {
            return AnswerKind::Address(url.clone());
        }
        let Some(schema) = &self.schema else { return AnswerKind::Confirm };
        if let Some(options) = options(schema) {
            return AnswerKind::Choose(options);
        }
        match type_of(schema) {
            Some("boolean") => AnswerKind::Confirm,
            Some("string") if is_secret(schema) => AnswerKind::Secret,
            Some("string") => AnswerKind::Text,
            Some("array") => match schema.get("items").and_then(options) {
                Some(options) => AnswerKind::ChooseSeveral(options),
                None => AnswerKind::Form,
            },
            _ => AnswerKind::Form,
        }
    }

    /// Returns whether the answer must be stored nowhere: it is a secret, or a form with one.
    #[doc(hidden)]
    pub fn is_secret(&self) -> bool {
        self.schema.as_ref().is_some_and(has_secret)
    }

    /// Returns the secrets in an answer.
    #[doc(hidden)]
    pub fn secrets_in<'v>(&self, value: &'v Value) -> Vec<&'v str> {
        let Some(schema) = self.schema.as_ref().filter(|schema| has_secret(schema)) else { return Vec::new() };
        let is_plain = |property: &Value| !has_secret(property) && property.get("$ref").is_none();
        let mut secrets = Vec::new();
        match (value, schema.get("properties").and_then(Value::as_object)) {
            // Of the deeper levels of a form, all texts.
            (Value::Object(members), Some(properties)) => {
                let of_secret = members.iter().filter(|(name, _)| !properties.get(*name).is_some_and(is_plain));
                of_secret.for_each(|(_, member)| add_texts(member, &mut secrets));
            }
            _ => add_texts(value, &mut secrets),
        }
        secrets
    }

    /// Fails if the question of a handler is too large to be asked, or if it lets a person open something else than a
    /// web page: a handler may pass on the words of a server.
    ///
    /// # Errors
    /// `E_TOOL_ASKS`, or `E_VALUE_DEPTH` with the place.
    // ASK-04
    #[doc(hidden)]
    pub fn check(&self) -> Result<()> {
        let schema = self.schema.as_ref().map_or(Ok(()), depth::check);
        schema.map_err(|error| error.refuse("the schema of a question"))?;
        let url = self.url.as_deref().unwrap_or_default();
        let schema = self.schema.as_ref().map_or(0, |schema| schema.to_string().len());
        let sizes =
            [("text", self.text.len(), MAX_TEXT), ("schema", schema, MAX_SCHEMA), ("address", url.len(), MAX_URL)];
        if let Some((part, size, most)) = sizes.into_iter().find(|(_, size, most)| size > most) {
            let message =
                format!("the question is too large: its {part} has {size} bytes, and at most {most} are asked");
            return Err(Error::new(ErrorCode::TOOL_ASKS, message).suggest("ask for less at once"));
        }
        let is_web = ["https://", "http://"].iter().any(|scheme| url.to_ascii_lowercase().starts_with(scheme));
        if self.url.is_some() && (!is_web || url.contains(|c: char| c.is_control() || c.is_whitespace())) {
            let message = "the address of the question is none of a web page";
            return Err(
                Error::new(ErrorCode::TOOL_ASKS, message).suggest("it begins with `https://`, and has no spaces")
            );
        }
        Ok(())
    }

    /// Sets the name, for a function that asks several questions about one call.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Expects a value of the type `T`, which
    /// [`ToolCallContext::decision`](crate::ToolCallContext::decision) returns.
    #[must_use]
    pub fn expecting<T: JsonSchema>(self) -> Self {
        let settings = SchemaSettings::default().with(|settings| settings.meta_schema = None);
        self.expecting_schema(settings.into_generator().into_root_schema_for::<T>().to_value())
    }

    /// Expects a value that fits a JSON Schema.
    #[must_use]
    pub fn expecting_schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Sets how long a decision is waited for.
    #[must_use]
    pub fn expires_after(mut self, time: Duration) -> Self {
        self.expires_after_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Sets the answer without a person to ask.
    ///
    /// ```
    /// use goondan::decision::{Question, Unanswered};
    ///
    /// let question = Question::choose("How fast?", ["slow", "fast"]).unanswered(Unanswered::Value("slow".into()));
    /// # _ = question;
    /// ```
    // ASK-04
    #[must_use]
    pub fn unanswered(mut self, unanswered: Unanswered) -> Self {
        self.unanswered = unanswered;
        self
    }

    /// Sets the effect of another input of a person meanwhile.
    #[must_use]
    pub fn on_input(mut self, on_input: OnInput) -> Self {
        self.on_input = on_input;
        self
    }
}

/// The layer, or the tool, that asks a question about a call, and the name of the question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QuestionId {
    /// The extension.
    pub extension: ExtensionName,
    /// Its function, empty if that was registered without a name; of a handler, the full name of the tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// The name of the question, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl QuestionId {
    /// The question called `name` of a function of an extension.
    pub fn new(extension: ExtensionName, function: impl Into<String>, name: Option<String>) -> Self {
        Self { extension, function: function.into(), name }
    }
}

/// A question, and the asker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AskedQuestion {
    /// The layer, or the tool.
    #[serde(flatten)]
    pub by: QuestionId,
    /// The question.
    pub question: Question,
    /// The number of decisions that the turn had when it was asked: those are about an earlier question.
    #[serde(default)]
    pub after: usize,
    /// Whether the handler of the tool has asked it, and not a layer.
    // ASK-04
    #[serde(default, skip_serializing_if = "is_false")]
    pub of_handler: bool,
}

impl AskedQuestion {
    /// The question of a layer, in a turn without decisions.
    pub fn new(by: QuestionId, question: Question) -> Self {
        Self { by, question, after: 0, of_handler: false }
    }

    /// The question of the handler of a tool, in a turn without decisions.
    pub fn of_handler(by: QuestionId, question: Question) -> Self {
        Self { of_handler: true, ..Self::new(by, question) }
    }

    /// Sets how many decisions the turn has.
    #[must_use]
    pub fn after(self, decisions: usize) -> Self {
        Self { after: decisions, ..self }
    }
}

/// A tool call that does not run before its questions are decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Wait {
    /// The call.
    pub call: ToolCallId,
    /// Its tool, by the full name.
    pub tool: String,
    /// The arguments with which it would run. The whole of them is approved.
    pub args: Map<String, Value>,
    /// The call as it is presented to people.
    #[serde(default)]
    pub presentation: Presentation,
    /// The questions about it.
    pub questions: Vec<AskedQuestion>,
    /// More about its effect, such as the difference of a file, in the order in which layers have
    /// [shown](crate::ToolCallContext::show) it. It is a part of the approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Shown>,
    /// When it was asked.
    pub since: Timestamp,
    /// When it is too late for a decision, and the call is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Whether it is asked again, because other arguments than those that were approved arrived.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
    /// Whether the handler of the call has started, and has asked instead of acting: a start that is recorded
    /// ([`Journal::start_call`]) does not count any more.
    ///
    /// [`Journal::start_call`]: https://docs.rs/goondan/latest/goondan/store/trait.Journal.html#tymethod.start_call
    #[serde(default, skip_serializing_if = "is_false")]
    pub withdrawn: bool,
}

/// A live question: the handler of a tool, or another agent that a handler has asked, waits for its answer now.
// ASK-04
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LiveWait {
    /// Its id: the call is not enough, because other conversations may have one with the same id.
    pub id: LiveQuestionId,
    /// The agent whose call it is, behind those that wait for it: the first is the one that the person talks to.
    pub agents: Vec<AgentName>,
    /// The conversation of that agent.
    pub instance: InstanceKey,
    /// The call, with one question.
    #[serde(flatten)]
    pub wait: Wait,
}

impl LiveWait {
    /// The question that `wait` has, of the last one of `agents`.
    pub fn new(agents: Vec<AgentName>, instance: InstanceKey, wait: Wait) -> Self {
        Self { id: LiveQuestionId::random(), agents, instance, wait }
    }

    /// Returns a copy for people who watch: secrets in its texts and arguments are masked.
    #[must_use]
    pub fn masked(&self) -> Self {
        Self { wait: self.wait.masked(), ..self.clone() }
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Wait {
    /// The call `call` of a tool, which was asked about now, and has no question yet.
    pub fn new(call: ToolCallId, tool: impl Into<String>, args: Map<String, Value>) -> Self {
        Self {
            call,
            tool: tool.into(),
            args,
            presentation: Presentation::default(),
            questions: Vec::new(),
            shown: Vec::new(),
            since: Timestamp::now(),
            expires: None,
            again: false,
            withdrawn: false,
        }
    }

    /// Adds a question. The call waits no longer than the one of its questions that expires first.
    #[must_use]
    pub fn question(mut self, asked: AskedQuestion) -> Self {
        let expires = asked.question.expires_after_ms.map(|millis| self.since.after(Duration::from_millis(millis)));
        self.expires = [self.expires, expires].into_iter().flatten().min();
        self.questions.push(asked);
        self
    }

    /// Returns a copy for people who watch: secrets in its texts and arguments are masked.
    #[must_use]
    pub fn masked(&self) -> Self {
        let mut masked = self.clone();
        mask_members(&mut masked.args);
        masked.questions.iter_mut().for_each(|asked| mask_text(&mut asked.question.text));
        masked.shown = masked.shown.into_iter().map(Shown::cleaned).collect();
        masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_of_a_handler_has_limits() {
        let refused = |question: Question| {
            let error = question.check().unwrap_err();
            format!("{}: {}", error.code(), error.message())
        };
        assert!(Question::for_address("?", "https://example.org/a?b=c").check().is_ok());
        for url in ["file:///etc/passwd", "javascript:alert(1)", "https://example.org/ a", "https://a\u{7}", ""] {
            assert!(refused(Question::for_address("?", url)).contains("E_TOOL_ASKS"), "{url}");
        }
        assert!(refused(Question::new("x".repeat(MAX_TEXT + 1))).contains("its text has 16385 bytes"));
        let long = Question::choose("?", [" ".repeat(1 << 20)]);
        assert!(refused(long).contains("its schema has"));
        assert!(
            refused(Question::for_address("?", format!("https://{}", "x".repeat(MAX_URL)))).contains("its address")
        );
        let deep = (0..100).fold(json!({}), |deep, _| json!({ "not": deep }));
        assert!(refused(Question::new("?").expecting_schema(deep)).contains("E_VALUE_DEPTH"));
    }

    #[test]
    fn secrets_are_found_at_any_depth_of_a_form() {
        let secret = json!({ "type": "string", "format": "password" });
        let card = json!({ "type": "object", "properties": { "pin": secret } });
        for properties in [
            json!({ "name": { "type": "string" }, "card": card }),
            json!({ "name": { "type": "string" }, "card": { "$ref": "#/$defs/Card" } }),
        ] {
            let schema = json!({ "type": "object", "properties": properties, "$defs": { "Card": card } });
            let question = Question::new("?").expecting_schema(schema);
            let value = json!({ "name": "Ada", "card": { "pin": "1234-5678" } });
            assert!(question.is_secret());
            assert_eq!(question.secrets_in(&value), ["1234-5678"]);
        }
        assert_eq!(Question::for_secret("?").secrets_in(&json!("1234-5678")), ["1234-5678"]);
        assert!(Question::for_text("?").secrets_in(&json!("Ada")).is_empty());
        assert!(!Question::choose("?", ["password"]).is_secret());
    }
}
