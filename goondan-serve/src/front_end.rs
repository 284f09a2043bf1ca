//! The parts of a turn that front ends are told of, in an order that they understand, and each once.

use std::collections::{HashMap, HashSet};
use std::mem::take;

use axum::body::Bytes;
use goondan_core::{
    Error, ErrorCode, FilePart, Message, MessageEvent, MessageId, ModelFinish, Part, Role, RuntimeEvent, Source,
    ToolCallId, ToolResultPart, Wait,
};
use goondan_wire::{Reported, TurnEnd, Update};
use serde_json::Value;

use crate::calls::{Calls, Ended};
use crate::log::{End, Entry};
use crate::sse::Event;
use crate::watch::Frames;

/// The protocol of a front end.
pub(crate) trait FrontEnd: Send + 'static {
    /// Set if pieces of arguments stay: they are taken back then if the call becomes another one.
    const KEEPS_ARGUMENTS: bool;

    /// Adds the events that tell this.
    fn tell(&mut self, told: Told<'_>, events: &mut Vec<Value>);

    /// Returns the last event of a stream, if there is one.
    fn last(&self) -> Option<Bytes> {
        None
    }
}

/// Something that a front end is told.
pub(crate) enum Told<'u> {
    /// The turn begins, or goes on.
    Started,
    StepStarted(u32),
    StepEnded,
    /// A part of an answer begins. One part ends before the next thing is told.
    PartStarted(&'u Streamed),
    Piece(&'u Streamed, &'u str),
    PartEnded(&'u Streamed),
    File(&'u FilePart),
    /// The answer of the step begins again, for this reason: the part that was told is void.
    Restarted(&'u str),
    /// A call runs, or a person is asked about it.
    Called {
        id: &'u ToolCallId,
        tool: &'u str,
        input: &'u Value,
    },
    Result {
        message: &'u Message,
        result: &'u ToolResultPart,
        ended: Ended,
    },
    Asked(&'u Wait),
    /// Something that pages may show while it lasts: its name and its value.
    Passing(&'static str, Value),
    Ended {
        end: &'u TurnEnd,
        /// Why the model ended its newest answer.
        model: Option<ModelFinish>,
    },
    /// The stream ends without an end of the turn.
    Failed {
        message: &'u str,
        code: &'u ErrorCode,
    },
}

/// A part that is being streamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Streamed {
    pub(crate) id: String,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Reasoning,
    /// The arguments of a call.
    Call {
        id: ToolCallId,
        tool: String,
    },
}

/// Tells a front end of one turn.
pub(crate) struct Teller<F> {
    front_end: F,
    /// The beginning of the ids of parts.
    prefix: String,
    has_started: bool,
    in_step: bool,
    /// Set while the updates that are told again before the first step are in the front end already.
    skips: bool,
    /// The step of the newest answer that was told by its message, and that message.
    told: Option<String>,
    message: Option<MessageId>,
    /// Set while that step goes on: its pieces tell the recorded answer again.
    repeats: bool,
    answer: Answer,
    /// The number of answers that began again, so that their parts get ids of their own.
    restarts: u32,
    calls: Calls,
    /// Those that a person was asked about.
    asked: HashSet<ToolCallId>,
    finish: Option<ModelFinish>,
}

/// The parts of an answer that have been streamed.
#[derive(Default)]
struct Answer {
    open: Option<Streamed>,
    text: String,
    reasons: bool,
    /// The calls that the model has begun, by the index of the part.
    begun: HashMap<u32, Streamed>,
    /// The arguments that were streamed.
    calls: HashMap<ToolCallId, String>,
}

impl Answer {
    /// Returns whether the text has become another one since it was streamed.
    fn has_other_text(&self, message: &Message) -> bool {
        !self.text.is_empty() && self.text.trim() != message.text().trim()
    }

    /// Returns whether a call has become another one, or was taken out, since it was streamed.
    fn has_other_calls(&self, message: &Message) -> bool {
        let calls: HashMap<_, _> = message.content().parts().iter().filter_map(call_of).collect();
        let is_same = |(id, arguments): (&ToolCallId, &String)| {
            let told: Option<Value> = serde_json::from_str(arguments).ok();
            told.as_ref().is_some_and(|told| calls.get(id) == Some(&told))
        };
        !self.calls.iter().all(is_same)
    }
}

fn call_of(part: &Part) -> Option<(&ToolCallId, &Value)> {
    match part {
        Part::ToolCall(call) => Some((&call.tool_call_id, &call.input)),
        _ => None,
    }
}

fn is_call(part: &Part) -> bool {
    call_of(part).is_some()
}

impl<F: FrontEnd> Teller<F> {
    pub(crate) fn new(front_end: F, prefix: String) -> Self {
        Self {
            front_end,
            prefix,
            has_started: false,
            in_step: false,
            skips: false,
            told: None,
            message: None,
            repeats: false,
            answer: Answer::default(),
            restarts: 0,
            calls: Calls::default(),
            asked: HashSet::new(),
            finish: None,
        }
    }

    /// Goes on in a front end that has been told of these calls.
    pub(crate) fn going_on(self, calls: HashSet<ToolCallId>) -> Self {
        Self { skips: true, calls: Calls::told(calls), ..self }
    }

    fn start(&mut self, events: &mut Vec<Value>) {
        if !std::mem::replace(&mut self.has_started, true) {
            self.front_end.tell(Told::Started, events);
        }
    }

    fn tell(&mut self, told: Told<'_>, events: &mut Vec<Value>) {
        self.start(events);
        if let Some(open) = self.answer.open.take() {
            self.front_end.tell(Told::PartEnded(&open), events);
        }
        self.front_end.tell(told, events);
    }

    /// Begins a part, unless it is the one that is being streamed.
    fn open(&mut self, part: Streamed, events: &mut Vec<Value>) {
        if self.answer.open.as_ref() != Some(&part) {
            self.tell(Told::PartStarted(&part), events);
            self.answer.open = Some(part);
        }
    }

    fn piece(&mut self, piece: &str, events: &mut Vec<Value>) {
        let Some(open) = &self.answer.open else { return };
        match &open.kind {
            Kind::Text => self.answer.text += piece,
            Kind::Reasoning => self.answer.reasons = true,
            Kind::Call { id, .. } => *self.answer.calls.entry(id.clone()).or_default() += piece,
        }
        self.front_end.tell(Told::Piece(open, piece), events);
    }

    fn id(&self, step: u32, part: u32) -> String {
        format!("{}{step}-{part}-{}", self.prefix, self.restarts)
    }

    /// Takes back the part of the answer that was told.
    fn restart(&mut self, reason: &str, events: &mut Vec<Value>) {
        self.tell(Told::Restarted(reason), events);
        self.answer = Answer::default();
        self.restarts += 1;
    }

    fn end_step(&mut self, events: &mut Vec<Value>) {
        if take(&mut self.in_step) {
            self.tell(Told::StepEnded, events);
        }
    }

    fn event(&mut self, event: &RuntimeEvent, events: &mut Vec<Value>) {
        if let Some(id) = self.calls.event(event) {
            let called = self.calls.tell(id);
            self.called(id, called, events);
        }
        match event {
            RuntimeEvent::StepStarted { step, .. } => {
                self.end_step(events);
                self.repeats = self.told.as_ref() == Some(&step.step_id);
                self.tell(Told::StepStarted(step.step_index), events);
                (self.in_step, self.skips, self.answer) = (true, false, Answer::default());
            }
            RuntimeEvent::StepCompleted { finish_reason, .. } => {
                self.finish = *finish_reason;
                self.end_step(events);
            }
            RuntimeEvent::StepFailed { .. } => self.end_step(events),
            RuntimeEvent::TurnSuspended { waits, .. } => self.ask(waits, events),
            RuntimeEvent::TurnStarted { .. } | RuntimeEvent::TurnResumed { .. } => self.start(events),
            _ => {}
        }
    }

    fn ask(&mut self, waits: &[Wait], events: &mut Vec<Value>) {
        for wait in waits.iter().filter(|wait| !wait.questions.is_empty()) {
            if self.asked.insert(wait.call.clone()) {
                let called = self.calls.wait(wait);
                self.called(&wait.call, called, events);
                self.tell(Told::Asked(wait), events);
            }
        }
    }

    fn called(&mut self, id: &ToolCallId, called: Option<(String, Value)>, events: &mut Vec<Value>) {
        if let Some((tool, input)) = called {
            self.tell(Told::Called { id, tool: &tool, input: &input }, events);
        }
    }

    fn appended(&mut self, message: &Message, events: &mut Vec<Value>) {
        match message.role() {
            Role::Assistant => self.answered(message, events),
            Role::Tool if !self.skips => {
                for part in message.content().parts() {
                    if let Part::ToolResult(result) = part {
                        let id = &result.tool_call_id;
                        let called = self.calls.tell(id);
                        self.called(id, called, events);
                        let ended = self.calls.ended(result);
                        self.tell(Told::Result { message, result, ended }, events);
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes in the calls of an answer, and tells the part of it that was not streamed.
    fn answered(&mut self, message: &Message, events: &mut Vec<Value>) {
        self.calls.answer(message);
        if let Source::Assistant { step_id } = message.source() {
            self.told = Some(step_id.clone());
        }
        self.message = Some(message.id().clone());
        if self.skips {
            return;
        }
        let has_other_calls = || F::KEEPS_ARGUMENTS && self.answer.has_other_calls(message);
        if self.answer.has_other_text(message) || has_other_calls() {
            self.restart("the answer was changed", events);
        }
        let (was_told, was_reasoned) = (!self.answer.text.is_empty(), self.answer.reasons);
        for (index, part) in message.content().parts().iter().enumerate() {
            let (kind, text) = match part {
                Part::Text(text) if !was_told => (Kind::Text, text.text.as_str()),
                Part::Reasoning(reasoning) if !was_reasoned => (Kind::Reasoning, reasoning.text()),
                Part::File(file) => {
                    self.tell(Told::File(file), events);
                    continue;
                }
                _ => continue,
            };
            if !text.is_empty() {
                self.open(Streamed { id: format!("{}-{index}", message.id()), kind }, events);
                self.piece(text, events);
            }
        }
    }

    /// Tells an answer again that a layer has changed after it was stored.
    fn replaced(&mut self, message: &Message, events: &mut Vec<Value>) {
        self.restart("the answer was changed", events);
        self.answered(message, events);
    }

    fn next(&mut self, update: &Update, events: &mut Vec<Value>) {
        let passing = |value| serde_json::to_value(value).unwrap_or_default();
        match update {
            Update::Text { .. } | Update::Reasoning { .. } | Update::ToolCall { .. } | Update::Arguments { .. }
                if self.repeats => {}
            Update::Text { step_index, part, text, .. } => {
                self.open(Streamed { id: self.id(*step_index, *part), kind: Kind::Text }, events);
                self.piece(text, events);
            }
            Update::Reasoning { step_index, part, text, .. } => {
                self.open(Streamed { id: self.id(*step_index, *part), kind: Kind::Reasoning }, events);
                self.piece(text, events);
            }
            Update::ToolCall { step_index, part, tool_call_id, tool_name, .. } => {
                let kind = Kind::Call { id: tool_call_id.clone(), tool: tool_name.clone() };
                self.answer.begun.insert(*part, Streamed { id: self.id(*step_index, *part), kind });
            }
            // Not before: many providers send a call whole, and it is told when it runs.
            Update::Arguments { part, json, .. } => {
                if let Some(part) = self.answer.begun.remove(part) {
                    self.open(part, events);
                }
                if matches!(&self.answer.open, Some(Streamed { kind: Kind::Call { .. }, .. })) {
                    self.piece(json, events);
                }
            }
            Update::Restart { reason, .. } => self.restart(reason, events),
            Update::Event { event: Reported::Known(event) } => self.event(event, events),
            Update::Message { event: MessageEvent::Append { message }, .. } => self.appended(message, events),
            Update::Message { event: MessageEvent::Replace { target_id, message }, .. }
                if self.message.as_ref() == Some(target_id) && !message.content().parts().iter().any(is_call) =>
            {
                self.replaced(message, events);
            }
            Update::Progress { .. } => self.tell(Told::Passing("progress", passing(update)), events),
            Update::Shown { .. } => self.tell(Told::Passing("shown", passing(update)), events),
            Update::Child { .. } => self.tell(Told::Passing("child", passing(update)), events),
            Update::Asked(_) => self.tell(Told::Passing("asked", passing(update)), events),
            Update::Gone { .. } => self.tell(Told::Passing("gone", passing(update)), events),
            Update::Message { .. } => self.tell(Told::Passing("conversation", passing(update)), events),
            Update::Turn(end) => {
                // Of a turn that waited before, nothing else tells them.
                self.ask(&end.waits, events);
                self.end_step(events);
                self.tell(Told::Ended { end, model: self.finish }, events);
            }
            _ => {}
        }
    }

    fn failed(&mut self, error: &Error, events: &mut Vec<Value>) {
        self.tell(Told::Failed { message: &error.message(), code: error.code() }, events);
    }
}

impl<F: FrontEnd> Frames for Teller<F> {
    fn update(&mut self, entry: &Entry) -> Vec<Bytes> {
        let mut events = Vec::new();
        self.next(&entry.update, &mut events);
        events.iter().map(|event| Event::new(&event.to_string()).bytes()).collect()
    }

    fn end(&mut self, end: &End) -> Vec<Bytes> {
        let mut events = Vec::new();
        match end {
            End::Turn(_) => {}
            End::Refused(error) => self.failed(error, &mut events),
            End::Handover => {
                let message = "the server is ending: the turn goes on when it has started again";
                self.failed(&Error::new(ErrorCode::SERVE_DRAINING, message), &mut events);
            }
        }
        events.iter().map(|event| Event::new(&event.to_string()).bytes()).chain(self.front_end.last()).collect()
    }
}
