//! An answer while it arrives: parts that grow, and the pieces that watchers are sent.

use goondan_core::{
    FilePart, ModelFinish, Part, ProviderData, ProviderPart, ProviderTool, ReasoningPart, TextPart, TokenUsage,
    ToolCallId, ToolCallPart,
};
use goondan_runtime::{DeltaSink, ModelDelta, ModelRequest, ModelResponse};
use serde_json::{Map, Value};

use crate::http::Failure;
use crate::surrogates::mended;

mod limits;
mod merge;

pub use limits::AnswerLimits;
pub(crate) use limits::Measure;
pub(crate) use merge::merge;

/// An answer that a [`Wire`](crate::wire::Wire) builds from events.
///
/// # Parts
/// Each part has a [`Key`] that the wire chooses, so that later events find it: an index of the provider, or a constant
/// if the provider has only one part of a kind. A part is opened once, grows, and is never closed. Parts keep the order
/// in which they were opened.
///
/// | the provider sends | the wire calls |
/// | --- | --- |
/// | the start of a text | [`open_text`](Self::open_text) |
/// | the start of reasoning | [`open_reasoning`](Self::open_reasoning) |
/// | the start of a tool call | [`open_call`](Self::open_call) |
/// | the name of a call that was opened without one | [`name_call`](Self::name_call) |
/// | a file that the model made | [`open_file`](Self::open_file), [`become_file`](Self::become_file) |
/// | a block of a type that goondan does not know | [`open_block`](Self::open_block) |
/// | a piece of text, reasoning or arguments | [`grow`](Self::grow) |
/// | a member of a block, such as a signature | [`rest`](Self::rest), [`grow_member`](Self::grow_member) |
/// | notes about the answer as a whole | [`note`](Self::note) |
/// | counts of tokens | [`usage`](Self::usage) |
/// | why the model stopped | [`finish`](Self::finish) |
/// | the model that answers, and its id of the request | [`model`](Self::model), [`request_id`](Self::request_id) |
/// | the end of the answer | [`complete`](Self::complete) or [`end`](Self::end) |
///
/// # The rest of a block
/// `rest` has the members of the provider's block that the part has no field for. It is stored with the part, and the
/// next request writes `the part's members ∪ rest`, so that ids, signatures, citations and members that do not exist
/// yet return unchanged. A wire removes the members that the part holds itself (the text, the arguments, the type if
/// the kind of the part says it) and gives everything else to `rest`. The rest of a block of
/// [`open_block`](Self::open_block) is all of it.
///
/// # The end
/// An answer whose end did not arrive is a failure, and the request is sent again. A wire therefore tells when nothing
/// is missing any more: [`complete`](Self::complete) if more may follow (counts of tokens after the last piece), and
/// [`end`](Self::end) with the last event. Where a provider gives no reason for the end, counts of tokens tell a whole
/// answer from one that was cut off: [`end_without_reason`](Self::end_without_reason).
#[derive(Debug)]
pub struct Answer<'a> {
    deltas: DeltaSink<'a>,
    /// `None` in tools that have no conversation.
    request: Option<ModelRequest<'a>>,
    /// The interface that it arrives over.
    api: &'static str,
    parts: Vec<Growing>,
    /// The number of calls among the parts.
    calls: usize,
    /// The rest of a text that has not been opened.
    unopened: Option<(Key, Map<String, Value>)>,
    /// Members of the provider about the answer as a whole.
    notes: Map<String, Value>,
    finish: Option<ModelFinish>,
    /// Whether it was complete when something had arrived. Some gateways send the reason to stop before the answer.
    is_finished: bool,
    usage: Option<TokenUsage>,
    model: Option<String>,
    request_id: Option<String>,
    state: State,
    /// Whether the provider says why its answers end.
    says_reasons: bool,
    /// Whether ids that the provider leaves out are the same in each run.
    repeatable: bool,
}

/// Names a part while its answer arrives. Wires make it from a number, or from two, such as the index of an item and
/// the index of a part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64, u64);

impl From<u64> for Key {
    fn from(index: u64) -> Self {
        Self(index, 0)
    }
}

impl From<(u64, u64)> for Key {
    fn from((item, part): (u64, u64)) -> Self {
        Self(item, part)
    }
}

impl Key {
    /// Returns the first number.
    pub fn index(self) -> u64 {
        self.0
    }
}

/// The member of the rest of a call with the name by which the model called the tool, if the provider defines it.
pub(crate) const CALLED: &str = "calledAs";

/// The member of the rest of a part with the notes of its provider about the answer as a whole. A wire that notes such
/// things leaves it out of requests.
pub(crate) const NOTES: &str = "aboutAnswer";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Arriving,
    Complete,
    Ended,
}

#[derive(Debug)]
struct Growing {
    key: Key,
    kind: Kind,
    rest: Map<String, Value>,
}

#[derive(Debug)]
enum Kind {
    Text(String),
    Reasoning(String),
    Call {
        id: ToolCallId,
        name: String,
        arguments: String,
    },
    File {
        media_type: String,
        url: String,
    },
    Block,
    /// A call that arrived after the end of the answer, and is no part of it.
    LateCall,
}

impl<'a> Answer<'a> {
    /// Returns an empty answer to `request`, whose pieces are sent to `deltas`.
    pub fn new(request: ModelRequest<'a>, deltas: DeltaSink<'a>) -> Self {
        Self { request: Some(request), ..Self::detached(deltas) }
    }

    /// Returns an empty answer to a request that is not known, for tests of wires.
    pub fn detached(deltas: DeltaSink<'a>) -> Self {
        Self {
            deltas,
            request: None,
            api: "",
            parts: Vec::new(),
            calls: 0,
            unopened: None,
            notes: Map::new(),
            finish: None,
            is_finished: false,
            usage: None,
            model: None,
            request_id: None,
            state: State::Arriving,
            says_reasons: false,
            repeatable: false,
        }
    }

    /// Sets the interface over which the answer arrives. Calls of the provider's tools are then calls of the tools of
    /// the step that are these.
    #[must_use]
    pub fn over(self, api: &'static str) -> Self {
        Self { api, ..self }
    }

    /// Sets whether ids that the provider leaves out follow from the place in the conversation, so that recorded
    /// requests with them can be compared. Otherwise they are random, and occur in no other conversation.
    #[must_use]
    pub fn repeatable(self, repeatable: bool) -> Self {
        Self { repeatable, ..self }
    }

    /// Opens a text, which grows.
    pub fn open_text(&mut self, key: impl Into<Key>, rest: Map<String, Value>) {
        self.open(key, Kind::Text(String::new()), rest);
    }

    /// Opens reasoning, whose text grows.
    pub fn open_reasoning(&mut self, key: impl Into<Key>, rest: Map<String, Value>) {
        self.open(key, Kind::Reasoning(String::new()), rest);
    }

    /// Opens a tool call, whose arguments grow as JSON text.
    ///
    /// An id that is empty, or that another call of the conversation has, is replaced; the provider's own is then the
    /// member `id` of the rest. A name that is empty is expected later: [`name_call`](Self::name_call).
    ///
    /// A call after the end of the answer is left out: the model did not stop for it.
    pub fn open_call(&mut self, key: impl Into<Key>, id: &str, name: impl Into<String>, mut rest: Map<String, Value>) {
        if self.is_finished {
            if !matches!(self.parts.last(), Some(Growing { kind: Kind::LateCall, .. })) {
                tracing::warn!("the provider sent a tool call after the end of the answer, which is left out");
                self.open(key, Kind::LateCall, Map::new());
            }
            return;
        }
        let own = ToolCallId::from(id);
        let id = if id.trim().is_empty() || self.has_call(&own) {
            if !id.is_empty() {
                rest.insert("id".to_owned(), id.into());
            }
            self.made_up_id()
        } else {
            own
        };
        let mut name = name.into();
        if let Some(tool) = self.tool_of_step(|tool| tool.name == name) {
            rest.insert(CALLED.to_owned(), std::mem::replace(&mut name, tool.to_owned()).into());
        }
        if !name.is_empty() {
            self.deltas.send(ModelDelta::ToolCall { part: self.next(), id: id.as_str(), name: &name });
        }
        self.open(key, Kind::Call { id, name, arguments: String::new() }, rest);
    }

    /// Returns the name of the tool of the step that is a tool of the provider.
    pub fn tool_of_step(&self, is_it: impl Fn(&ProviderTool) -> bool) -> Option<&'a str> {
        let mut tools = self.request?.all_tools();
        tools.find(|item| item.provider_tool_of(self.api).is_some_and(&is_it)).map(|item| item.name.as_str())
    }

    /// Sets the name of a call that has none yet, and sends the part of the call that has arrived.
    pub fn name_call(&mut self, key: impl Into<Key>, name: &str) {
        let deltas = self.deltas;
        let Some((part, growing)) = self.at(key.into()) else { return };
        let Kind::Call { id, name: slot, arguments } = &mut growing.kind else { return };
        if name.is_empty() || !slot.is_empty() {
            return;
        }
        slot.push_str(name);
        deltas.send(ModelDelta::ToolCall { part, id: id.as_str(), name });
        if !arguments.is_empty() {
            deltas.send(ModelDelta::Arguments { part, json: arguments });
        }
    }

    /// Returns the id of a call as the provider sent it.
    pub fn call_id(&self, key: impl Into<Key>) -> Option<&str> {
        let key = key.into();
        let part = self.parts.iter().rev().find(|part| part.key == key)?;
        let Kind::Call { id, .. } = &part.kind else { return None };
        Some(part.rest.get("id").and_then(Value::as_str).unwrap_or(id.as_str()))
    }

    /// Opens a file, which arrives whole.
    pub fn open_file(
        &mut self,
        key: impl Into<Key>,
        media_type: impl Into<String>,
        url: impl Into<String>,
        rest: Map<String, Value>,
    ) {
        self.open(key, Kind::File { media_type: media_type.into(), url: url.into() }, rest);
    }

    /// Makes a block, which was opened before its content arrived, a file.
    pub fn become_file(&mut self, key: impl Into<Key>, media_type: impl Into<String>, url: impl Into<String>) {
        if let Some((_, growing)) = self.at(key.into()) {
            growing.kind = Kind::File { media_type: media_type.into(), url: url.into() };
        }
    }

    /// Opens a block of a type that goondan does not know. All of it is in `block`, its type included.
    pub fn open_block(&mut self, key: impl Into<Key>, block: Map<String, Value>) {
        self.open(key, Kind::Block, block);
    }

    fn open(&mut self, key: impl Into<Key>, kind: Kind, mut rest: Map<String, Value>) {
        let key = key.into();
        if let Some((_, early)) = self.unopened.take_if(|(unopened, _)| *unopened == key) {
            rest.extend(early);
        }
        self.calls += usize::from(matches!(kind, Kind::Call { .. }));
        self.parts.push(Growing { key, kind, rest });
    }

    /// Returns an id for a call that no other call has.
    #[cold]
    fn made_up_id(&self) -> ToolCallId {
        if !self.repeatable {
            return ToolCallId::random();
        }
        let before = self.request.map_or(0, |request| request.messages().count());
        let mut ids = (self.parts.len()..).map(|part| ToolCallId::from(format!("call-{before}-{part}")));
        ids.find(|id| !self.has_call(id)).unwrap_or_else(ToolCallId::random)
    }

    /// Whether a call of the conversation or of this answer has the id.
    fn has_call(&self, id: &ToolCallId) -> bool {
        self.request.is_some_and(|request| request.has_call(id))
            || self.parts.iter().any(|part| matches!(&part.kind, Kind::Call { id: other, .. } if other == id))
    }

    /// The index of the part that is opened next.
    fn next(&self) -> u32 {
        u32::try_from(self.parts.len()).unwrap_or(u32::MAX)
    }

    /// Returns the index and the part. The newest is nearly always the one that grows.
    fn at(&mut self, key: Key) -> Option<(u32, &mut Growing)> {
        let index = self.parts.iter().rposition(|part| part.key == key)?;
        Some((u32::try_from(index).unwrap_or(u32::MAX), self.parts.get_mut(index)?))
    }

    /// Returns the key of the part that was opened last.
    pub fn newest(&self) -> Option<Key> {
        Some(self.parts.last()?.key)
    }

    /// Returns the key of the newest part whose key begins with this number.
    pub fn newest_of(&self, index: u64) -> Option<Key> {
        self.parts.iter().rev().map(|part| part.key).find(|key| key.0 == index)
    }

    /// Returns the key of the newest part with this id: the member `id` of its rest, or the id of its call.
    pub fn find(&self, id: &str) -> Option<Key> {
        let has_id = |part: &&Growing| {
            part.rest.get("id").is_some_and(|known| known == id)
                || matches!(&part.kind, Kind::Call { id: known, .. } if known.as_str() == id)
        };
        Some(self.parts.iter().rev().find(has_id)?.key)
    }

    /// Returns how many parts were opened: a number for the key of the next one, if the provider has none.
    pub fn count(&self) -> u64 {
        u64::from(self.next())
    }

    /// Returns whether a part has this key.
    pub fn has(&self, key: impl Into<Key>) -> bool {
        let key = key.into();
        self.parts.iter().rev().any(|part| part.key == key)
    }

    /// Returns whether the part is a block that [`open_block`](Self::open_block) opened.
    pub fn is_block(&self, key: impl Into<Key>) -> bool {
        let key = key.into();
        self.parts.iter().rev().find(|part| part.key == key).is_some_and(|part| matches!(part.kind, Kind::Block))
    }

    /// Appends to the text, the reasoning or the arguments of a part, and sends the piece. Files, blocks, and parts
    /// that were not opened, have nothing that grows.
    pub fn grow(&mut self, key: impl Into<Key>, piece: &str) {
        let deltas = self.deltas;
        let Some((part, growing)) = self.at(key.into()) else { return };
        if piece.is_empty() {
            return;
        }
        let (text, delta) = match &mut growing.kind {
            Kind::Call { name, arguments, .. } if name.is_empty() => {
                arguments.push_str(piece);
                return;
            }
            Kind::Text(text) => (text, ModelDelta::Text { part, text: piece }),
            Kind::Reasoning(text) => (text, ModelDelta::Reasoning { part, text: piece }),
            Kind::Call { arguments, .. } => (arguments, ModelDelta::Arguments { part, json: piece }),
            Kind::File { .. } | Kind::Block | Kind::LateCall => return,
        };
        text.push_str(piece);
        deltas.send(delta);
    }

    /// Replaces the text, the reasoning or the arguments of a part by the whole of it, as some providers send it in the
    /// end. Nothing is sent: pieces are a preview.
    pub fn set(&mut self, key: impl Into<Key>, whole: impl Into<String>) {
        match self.at(key.into()).map(|(_, growing)| &mut growing.kind) {
            Some(Kind::Text(text) | Kind::Reasoning(text) | Kind::Call { arguments: text, .. }) => *text = whole.into(),
            Some(Kind::File { .. } | Kind::Block | Kind::LateCall) | None => {}
        }
    }

    /// Returns the text, the reasoning or the arguments of a part so far.
    pub fn text(&mut self, key: impl Into<Key>) -> Option<&str> {
        match &self.at(key.into())?.1.kind {
            Kind::Text(text) | Kind::Reasoning(text) | Kind::Call { arguments: text, .. } => Some(text),
            Kind::File { .. } | Kind::Block | Kind::LateCall => None,
        }
    }

    /// Returns the rest of a part.
    pub fn rest(&mut self, key: impl Into<Key>) -> Option<&mut Map<String, Value>> {
        self.at(key.into()).map(|(_, growing)| &mut growing.rest)
    }

    /// Returns the rest of a text, which may be opened later. If it never is, it is an empty text in the end.
    pub fn rest_of_text(&mut self, key: impl Into<Key>) -> &mut Map<String, Value> {
        let key = key.into();
        match self.parts.iter().rposition(|part| part.key == key) {
            Some(index) => &mut self.parts[index].rest,
            None => &mut self.unopened.get_or_insert_with(|| (key, Map::new())).1,
        }
    }

    /// Keeps the notes of the provider about the answer as a whole, such as its sources: with the last part, in the
    /// member `aboutAnswer` of its rest, which goes into no request. Some providers send the new items of a list, and
    /// some the whole list again.
    pub fn note(&mut self, name: String, value: Value) {
        merge(self.notes.entry(name).or_insert(Value::Null), value);
    }

    /// Appends to a member of the rest that is a text, such as a signature. Another value is replaced, unless the piece
    /// is empty.
    pub fn grow_member(&mut self, key: impl Into<Key>, member: &str, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let Some(rest) = self.rest(key) else { return };
        match rest.get_mut(member) {
            Some(Value::String(text)) => text.push_str(piece),
            _ => {
                rest.insert(member.to_owned(), piece.into());
            }
        }
    }

    /// Returns the counts of tokens. `total_tokens` is their sum in the end, unless it is set.
    pub fn usage(&mut self) -> &mut TokenUsage {
        self.usage.get_or_insert_default()
    }

    /// Sets why the model stopped.
    pub fn finish(&mut self, reason: ModelFinish) {
        // Nothing after the end of an answer changes why it ended.
        if !self.is_finished {
            self.finish = Some(reason);
        }
    }

    /// Returns whether the answer has a tool call. Some providers report the same end with and without one.
    pub fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// Returns whether no part was opened.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Sets the model that answers, as the provider names it.
    pub fn model(&mut self, name: &str) {
        replace(&mut self.model, name);
    }

    /// Sets the provider's id of the request, where the response has no header for it.
    pub fn request_id(&mut self, id: &str) {
        replace(&mut self.request_id, id);
    }

    /// Discards the answer so far: the provider begins again within the same response.
    pub fn restart(&mut self, reason: &str) {
        if !self.parts.is_empty() {
            self.deltas.send(ModelDelta::Restart { reason, wait: None });
        }
        let (request, api, repeatable) = (self.request, self.api, self.repeatable);
        *self = Self { request, api, repeatable, ..Self::detached(self.deltas) };
    }

    /// Notes that nothing of the answer is missing. More events may follow.
    pub fn complete(&mut self) {
        if self.state == State::Arriving {
            self.state = State::Complete;
        }
        self.is_finished |= !self.parts.is_empty();
    }

    /// Notes that this was the last event, and that nothing of the answer is missing.
    pub fn end(&mut self) {
        self.state = State::Ended;
    }

    /// Notes that the provider says why its answers end. One whose reason is missing was cut off.
    pub fn expect_reason(&mut self) {
        self.says_reasons = true;
    }

    /// Notes that the response ended without a reason. The answer is whole if it has counts of tokens, text or calls,
    /// and no half call; and if the end is `explicit`, or the provider never says reasons.
    pub fn end_without_reason(&mut self, explicit: bool) {
        let is_half = |part: &Growing| match &part.kind {
            Kind::Call { arguments, .. } => !parsed(arguments.clone()).is_object(),
            _ => false,
        };
        let says = |part: &Growing| match &part.kind {
            Kind::Text(text) => !text.is_empty(),
            Kind::Call { .. } => true,
            Kind::Reasoning(_) | Kind::File { .. } | Kind::Block | Kind::LateCall => false,
        };
        let is_whole = self.usage.is_some() && self.parts.iter().any(says) && !self.parts.iter().any(is_half);
        if is_whole && (explicit || !self.says_reasons) && !self.is_complete() {
            self.finish = self.finish.or(Some(ModelFinish::Unknown));
            self.end();
        }
    }

    /// Returns whether nothing of the answer is missing.
    pub fn is_complete(&self) -> bool {
        self.state != State::Arriving
    }

    /// Returns whether the last event has arrived.
    pub fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Returns the response. Its parts were made by `model` over the interface `api`.
    ///
    /// # Errors
    /// When the end of the answer did not arrive.
    pub fn into_response(mut self, api: &str, model: &str) -> Result<ModelResponse, Failure> {
        if !self.is_complete() {
            return Err(Failure::cut_off());
        }
        if let Some((key, rest)) = self.unopened.take() {
            self.open(key, Kind::Text(String::new()), rest);
        }
        let mut kept = self.parts.iter_mut().filter(|part| !matches!(part.kind, Kind::LateCall));
        if let Some(last) = kept.next_back().filter(|_| !self.notes.is_empty()) {
            last.rest.insert(NOTES.to_owned(), self.notes.into());
        }
        let data = |rest: Map<String, Value>| ProviderData::new(api, model, rest);
        let part = |Growing { kind, rest, .. }| {
            Some(match (kind, rest.is_empty()) {
                (Kind::Text(text), true) => TextPart::new(text).into(),
                (Kind::Text(text), false) => TextPart::new(text).with_provider(data(rest)).into(),
                (Kind::Reasoning(text), plain) => ReasoningPart::new(text, (!plain).then(|| data(rest))).into(),
                (Kind::Call { id, name, arguments }, plain) => {
                    let call = ToolCallPart::new(id, name, parsed(arguments));
                    if plain { call } else { call.with_provider(data(rest)) }.into()
                }
                (Kind::File { media_type, url }, plain) => {
                    let file = FilePart::new(media_type, url);
                    if plain { file } else { file.with_provider(data(rest)) }.into()
                }
                (Kind::Block, _) => ProviderPart::new(data(rest)).into(),
                (Kind::LateCall, _) => return None,
            })
        };
        let content: Vec<Part> = self.parts.into_iter().filter_map(part).collect();
        let mut response = ModelResponse::content(content);
        response.finish_reason = self.finish;
        response.usage = self.usage.map(|mut usage| {
            if usage.total_tokens == 0 {
                usage.total_tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
            }
            usage
        });
        response.model = self.model;
        response.request_id = self.request_id;
        Ok(response)
    }
}

/// Replaces a text, which some providers repeat in each event.
fn replace(known: &mut Option<String>, text: &str) {
    if known.as_deref() != Some(text) {
        *known = Some(text.to_owned());
    }
}

/// Returns the arguments of a call. Arguments that are not JSON are kept as text, and judged by the runtime. Some
/// models write nothing or `null` for no arguments.
fn parsed(arguments: String) -> Value {
    if ["", "null"].contains(&arguments.trim()) {
        return Value::Object(Map::new());
    }
    let read = serde_json::from_str(&arguments);
    read.or_else(|error| mended(&arguments).map_or(Err(error), |mended| serde_json::from_str(&mended)))
        .unwrap_or(Value::String(arguments))
}
