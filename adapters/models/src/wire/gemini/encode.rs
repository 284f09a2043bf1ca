//! Requests of Gemini.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use goondan_core::{MessageData, Part, Result, Role, ToolCallPart, ToolItem, ToolOutput};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::parts::{Kind, Piece, Signature, files};
use super::{OWN_ID, is_earlier, options, texts};
use crate::wire::tool::Schema;
use crate::wire::{Encoding, Settings};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(flatten)]
    settings: Settings,
    #[serde(skip_serializing_if = "Tools::is_empty")]
    tools: Tools<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<System<'a>>,
    contents: &'a Contents<'a>,
}

#[derive(Serialize)]
struct System<'a> {
    parts: Vec<Piece<'a>>,
}

const USER: &str = "user";
const MODEL: &str = "model";

/// Writes the body of a request.
pub(super) fn encode(request: &Encoding<'_>) -> Result<Vec<u8>> {
    let (system, mut contents) = Writer::new(request).conversation();
    contents.put_results_first();
    if !is_earlier(request.model()) {
        contents.waive_missing_signatures();
    }
    let (settings, of_provider) = options::settings(request)?;
    let tools = Tools { of_provider, of_step: request.tools().collect() };
    let system_instruction = (!system.is_empty()).then_some(System { parts: system });
    Ok(serde_json::to_vec(&Body { settings, tools, system_instruction, contents: &contents })?)
}

/// Turns messages into contents.
struct Writer<'a> {
    request: &'a Encoding<'a>,
    /// The provider's id of each call so far, by the conversation's, and its place.
    calls: HashMap<&'a str, (Option<&'a str>, usize)>,
}

impl<'a> Writer<'a> {
    fn new(request: &'a Encoding<'_>) -> Self {
        Self { request, calls: HashMap::new() }
    }

    /// Returns the instructions and the contents.
    fn conversation(mut self) -> (Vec<Piece<'a>>, Contents<'a>) {
        let mut system: Vec<_> = self.request.system().map(Piece::text).into_iter().collect();
        let mut contents = Contents::default();
        for message in self.request.messages() {
            let start = contents.pieces.len();
            match message.role {
                Role::System if start == 0 => self.add(message, &mut system),
                role => {
                    self.add(message, &mut contents.pieces);
                    if role == Role::System {
                        contents.pieces[start..].iter_mut().for_each(mark_as_system);
                    }
                    contents.added(if role == Role::Assistant { MODEL } else { USER }, start);
                }
            }
        }
        (system, contents)
    }

    /// Adds the parts of a message.
    fn add(&mut self, message: &'a MessageData, pieces: &mut Vec<Piece<'a>>) {
        message.content.parts().iter().for_each(|part| self.add_part(part, pieces));
    }

    fn add_part(&mut self, part: &'a Part, pieces: &mut Vec<Piece<'a>>) {
        let rest = self.request.rest(part);
        let same_model = part.provider().is_some_and(|data| self.request.replays(data));
        let kept = same_model && self.request.with_reasoning();
        let signature = if kept { Signature::Kept } else { Signature::LeftOut };
        let piece = |piece: Piece<'a>| Piece { rest, signature, ..piece };
        let mut add_texts = |text: &'a str| {
            let texts = texts::parts(text, rest).map(|(text, rest)| Piece { rest, signature, ..Piece::text(text) });
            // An empty text is there for its signature.
            pieces.extend(texts.filter(Piece::says_something));
        };
        match part {
            Part::Text(text) if rest.is_none() && text.text.is_empty() => {}
            Part::Text(text) if rest.is_none() => pieces.push(Piece::text(&*text.text)),
            Part::Text(text) => add_texts(&text.text),
            Part::Reasoning(thought) if kept => add_texts(thought.text()),
            Part::File(file) => pieces.push(piece(Piece::file(file))),
            Part::ToolCall(call) => pieces.push(piece(Piece::new(self.call(call, rest)))),
            Part::ToolResult(result) => {
                let known = self.calls.get(result.tool_call_id.as_str());
                let (id, place) = known.copied().unwrap_or((Some(result.tool_call_id.as_str()), usize::MAX));
                let name = legal_name(&result.tool_name);
                let with_files = !is_earlier(self.request.model());
                pieces.push(Piece::new(Kind::Result { id, name, output: &result.output, with_files, place }));
                if let ToolOutput::Content(parts) = &result.output {
                    let apart = files(parts).filter(|file| !(with_files && file.fits_result()));
                    pieces.extend(apart.map(|file| Piece::new(Kind::File(file))));
                }
            }
            Part::Provider(_) if same_model => pieces.push(piece(Piece::new(Kind::Whole))),
            _ => {}
        }
    }

    fn call(&mut self, call: &'a ToolCallPart, rest: Option<&'a Map<String, Value>>) -> Kind<'a> {
        let id = match rest.and_then(|rest| rest.get(OWN_ID)) {
            None => Some(call.tool_call_id.as_str()),
            Some(own) => own.as_str(),
        };
        self.calls.insert(call.tool_call_id.as_str(), (id, self.calls.len()));
        Kind::Call { id, name: legal_name(&call.tool_name), arguments: &call.input }
    }
}

/// Marks a text as instructions: there is no such role in the middle of a conversation.
fn mark_as_system(piece: &mut Piece<'_>) {
    if let Kind::Text(text) = &mut piece.kind {
        *text = format!("<system>\n{text}\n</system>").into();
    }
}

/// Returns a name as Gemini takes it. Models sometimes invent other ones.
fn legal_name(name: &str) -> Cow<'_, str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && name.len() <= 64 && name.chars().all(legal) {
        return name.into();
    }
    let prefix = if begins { "" } else { "_" };
    let name = name.chars().map(|c| if legal(c) { c } else { '_' });
    prefix.chars().chain(name).take(64).collect::<String>().into()
}

/// The contents of a request, whose roles alternate. All their parts are in one list.
#[derive(Default)]
struct Contents<'a> {
    pieces: Vec<Piece<'a>>,
    /// The role of each content, and where its parts begin.
    starts: Vec<(&'static str, usize)>,
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: &'a [Piece<'a>],
}

impl Contents<'_> {
    /// Notes that parts were added from `start` on. Without any, there is no content; those of the same role as before
    /// belong to that content.
    fn added(&mut self, role: &'static str, start: usize) {
        if self.pieces.len() == start {
            return;
        }
        match self.starts.last() {
            Some((last, _)) if *last == role => {}
            None if role == MODEL => {
                // A call must follow a content of the user.
                self.pieces.insert(0, Piece::text("[The beginning of the conversation is left out.]"));
                self.starts = vec![(USER, 0), (MODEL, 1)];
            }
            _ => self.starts.push((role, start)),
        }
    }

    /// Returns the role and the range of the parts of each content.
    fn ranges(&self) -> impl Iterator<Item = (&'static str, Range<usize>)> {
        let ends = self.starts.iter().skip(1).map(|(_, start)| *start).chain([self.pieces.len()]);
        self.starts.iter().zip(ends).map(|((role, start), end)| (*role, *start..end))
    }

    /// Returns the ranges of the contents of a role.
    fn ranges_of(&self, role: &str) -> Vec<Range<usize>> {
        self.ranges().filter(|(known, _)| *known == role).map(|(_, range)| range).collect()
    }

    /// Moves results to the beginning of their contents: those without an id are found by their order.
    fn put_results_first(&mut self) {
        for range in self.ranges_of(USER).into_iter().filter(|range| range.len() > 1) {
            self.pieces[range].sort_by_key(Piece::rank);
        }
    }

    /// Tells the model not to look for the signature of calls that have none, as those of another model: otherwise it
    /// refuses the request. Only the first call of a content needs one.
    fn waive_missing_signatures(&mut self) {
        for range in self.ranges_of(MODEL) {
            let first = self.pieces[range].iter_mut().find(|piece| piece.is_call());
            if let Some(call) = first.filter(|call| !call.has_signature()) {
                call.signature = Signature::Waived;
            }
        }
    }
}

impl Serialize for Contents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.ranges().map(|(role, range)| Content { role, parts: &self.pieces[range] }))
    }
}

/// The tools of the step, and those that run at the provider.
struct Tools<'a> {
    of_provider: Vec<Value>,
    of_step: Vec<&'a ToolItem>,
}

impl Tools<'_> {
    fn is_empty(&self) -> bool {
        self.of_provider.is_empty() && self.of_step.is_empty()
    }
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Functions<'a> {
            function_declarations: Vec<Function<'a>>,
        }

        let mut tools = serializer.serialize_seq(None)?;
        for tool in &self.of_provider {
            tools.serialize_element(tool)?;
        }
        if !self.of_step.is_empty() {
            let function_declarations = self.of_step.iter().copied().map(Function::new).collect();
            tools.serialize_element(&Functions { function_declarations })?;
        }
        tools.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<Schema<'a>>,
}

impl<'a> Function<'a> {
    fn new(item: &'a ToolItem) -> Self {
        let has_schema = item.parameters.as_ref().is_some_and(Value::is_object);
        Self {
            name: item.name.as_str(),
            description: item.description.as_deref(),
            parameters_json_schema: has_schema.then(|| Schema::of(item)),
        }
    }
}
