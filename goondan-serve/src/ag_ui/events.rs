//! From what a turn tells to the events of AG-UI.

use std::collections::HashSet;

use axum::response::sse::Event;
use goondan_core::{
    ErrorCode, FinishReason, Message, MessageEvent, Part, Role, RuntimeEvent, Source, ToolCallId, ToolResultPart, Wait,
};
use goondan_wire::{Reported, TurnEnd, Update};
use serde_json::{Value, json};

use crate::calls::Calls;
use crate::log::{End, Entry};
use crate::watch::{Frames, event_of};

/// Makes the events of one run.
pub(super) struct Events {
    thread: String,
    run: String,
    has_started: bool,
    /// The number of the step that runs.
    step: Option<u32>,
    /// The message that is being streamed.
    open: Option<Open>,
    /// The newest message of the model: its calls belong to it.
    parent: Option<String>,
    was_streamed: bool,
    restarts: u32,
    calls: Calls,
    /// Set while what is told again before the first step is in the front end already.
    skips: bool,
    /// The step of the newest answer that was told by its message.
    told: Option<String>,
    /// Set while that step goes on: its pieces tell the recorded answer again.
    repeats: bool,
    waits: Vec<Value>,
}

struct Open {
    id: String,
    is_reasoning: bool,
}

impl Events {
    pub(super) fn new(thread: &str, run: &str) -> Self {
        Self {
            thread: thread.to_owned(),
            run: run.to_owned(),
            has_started: false,
            step: None,
            open: None,
            parent: None,
            was_streamed: false,
            restarts: 0,
            calls: Calls::default(),
            skips: false,
            told: None,
            repeats: false,
            waits: Vec::new(),
        }
    }

    /// Goes on in a front end that has been told of these calls.
    pub(super) fn going_on(self, calls: HashSet<ToolCallId>) -> Self {
        Self { skips: true, calls: Calls::told(calls), ..self }
    }

    fn start(&mut self, events: &mut Vec<Value>) {
        if !std::mem::replace(&mut self.has_started, true) {
            events.push(json!({ "type": "RUN_STARTED", "threadId": self.thread, "runId": self.run }));
        }
    }

    fn close(&mut self, events: &mut Vec<Value>) {
        match self.open.take() {
            Some(Open { id, is_reasoning: true }) => {
                events.push(json!({ "type": "REASONING_MESSAGE_END", "messageId": id }));
                events.push(json!({ "type": "REASONING_END", "messageId": id }));
            }
            Some(Open { id, .. }) => events.push(json!({ "type": "TEXT_MESSAGE_END", "messageId": id })),
            None => {}
        }
    }

    /// Adds a piece of a text, or of reasoning.
    fn piece(&mut self, id: String, is_reasoning: bool, piece: &str, events: &mut Vec<Value>) {
        if self.open.as_ref().is_none_or(|open| open.id != id) {
            self.close(events);
            if is_reasoning {
                events.push(json!({ "type": "REASONING_START", "messageId": id }));
                events.push(json!({ "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning" }));
            } else {
                events.push(json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }));
                self.parent = Some(id.clone());
            }
            self.open = Some(Open { id: id.clone(), is_reasoning });
        }
        let kind = if is_reasoning { "REASONING_MESSAGE_CONTENT" } else { "TEXT_MESSAGE_CONTENT" };
        events.push(json!({ "type": kind, "messageId": id, "delta": piece }));
        self.was_streamed = true;
    }

    fn end_step(&mut self, events: &mut Vec<Value>) {
        self.close(events);
        if let Some(step) = self.step.take() {
            events.push(json!({ "type": "STEP_FINISHED", "stepName": step.to_string() }));
        }
    }

    fn event(&mut self, event: &RuntimeEvent, events: &mut Vec<Value>) {
        if let Some(call) = self.calls.event(event) {
            let called = self.calls.tell(call);
            self.called(call, called, events);
        }
        match event {
            RuntimeEvent::TurnStarted { .. } | RuntimeEvent::TurnResumed { .. } => self.start(events),
            RuntimeEvent::StepStarted { step, .. } => {
                self.repeats = self.told.as_ref() == Some(&step.step_id);
                self.start(events);
                self.end_step(events);
                (self.step, self.was_streamed, self.skips, self.parent) = (Some(step.step_index), false, false, None);
                events.push(json!({ "type": "STEP_STARTED", "stepName": step.step_index.to_string() }));
            }
            RuntimeEvent::StepCompleted { .. } | RuntimeEvent::StepFailed { .. } => self.end_step(events),
            RuntimeEvent::TurnSuspended { waits, .. } => waits.iter().for_each(|wait| self.ask(wait, events)),
            _ => {}
        }
    }

    fn called(&mut self, id: &ToolCallId, called: Option<(String, Value)>, events: &mut Vec<Value>) {
        let Some((name, input)) = called else { return };
        self.close(events);
        let parent = self.parent.get_or_insert_with(|| format!("{}-{id}", self.run));
        events.push(json!({
            "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, "parentMessageId": parent,
        }));
        events.push(json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": input.to_string() }));
        events.push(json!({ "type": "TOOL_CALL_END", "toolCallId": id }));
    }

    fn ask(&mut self, wait: &Wait, events: &mut Vec<Value>) {
        let Some(asked) = wait.questions.first() else { return };
        let called = self.calls.wait(wait);
        self.called(&wait.call, called, events);
        let mut interrupt = json!({
            "id": wait.call, "reason": "approval", "message": asked.question.text, "toolCallId": wait.call,
        });
        if let Some(expires) = &wait.expires {
            interrupt["expiresAt"] = json!(expires);
        }
        self.waits.push(interrupt);
    }

    fn appended(&mut self, message: &Message, events: &mut Vec<Value>) {
        match message.role() {
            Role::Assistant => self.answer(message, events),
            Role::Tool if !self.skips => message.content().parts().iter().for_each(|part| {
                if let Part::ToolResult(result) = part {
                    self.result(message, result, events);
                }
            }),
            _ => {}
        }
    }

    /// Tells an answer whose pieces were not streamed, and takes in its calls.
    fn answer(&mut self, message: &Message, events: &mut Vec<Value>) {
        self.start(events);
        self.close(events);
        self.calls.answer(message);
        if let Source::Assistant { step_id } = message.source() {
            self.told = Some(step_id.clone());
        }
        if self.was_streamed || self.skips {
            return;
        }
        for (index, part) in message.content().parts().iter().enumerate() {
            if let Part::Text(text) = part
                && !text.text.is_empty()
            {
                self.piece(format!("{}-{index}", message.id()), false, &text.text, events);
                self.close(events);
            }
        }
        self.was_streamed = false;
    }

    fn result(&mut self, message: &Message, result: &ToolResultPart, events: &mut Vec<Value>) {
        self.close(events);
        let id = &result.tool_call_id;
        let called = self.calls.tell(id);
        self.called(id, called, events);
        let content = result.output.to_text();
        events.push(json!({
            "type": "TOOL_CALL_RESULT", "messageId": message.id(), "toolCallId": id, "content": content, "role": "tool",
        }));
    }

    fn end_of(&mut self, end: &TurnEnd, events: &mut Vec<Value>) {
        self.start(events);
        self.end_step(events);
        let (thread, run) = (&self.thread, &self.run);
        let finished =
            |outcome: Value| json!({ "type": "RUN_FINISHED", "threadId": thread, "runId": run, "outcome": outcome });
        events.push(match &end.error {
            Some(error) if error.code == ErrorCode::TURN_CANCELLED.as_str() => finished(json!({ "type": "cancelled" })),
            Some(error) if end.response.is_none() => {
                json!({ "type": "RUN_ERROR", "message": error.message, "code": error.code })
            }
            _ if end.finish_reason == FinishReason::Suspended && !self.waits.is_empty() => {
                finished(json!({ "type": "interrupt", "interrupts": self.waits }))
            }
            _ => {
                let mut finished = finished(json!({ "type": "success" }));
                if let Some(value) = &end.value {
                    finished["result"] = value.clone();
                }
                finished
            }
        });
    }
}

impl Frames for Events {
    fn update(&mut self, entry: &Entry) -> Vec<Event> {
        let mut events = Vec::new();
        let custom = |name: &str, value: Value| json!({ "type": "CUSTOM", "name": name, "value": value });
        match &*entry.update {
            Update::Text { .. } | Update::Reasoning { .. } if self.repeats => {}
            Update::Text { step_index, part, text, .. } => {
                let id = format!("{}-{step_index}-{part}-{}", self.run, self.restarts);
                self.piece(id, false, text, &mut events);
            }
            Update::Reasoning { step_index, part, text, .. } => {
                let id = format!("{}-{step_index}-{part}-{}", self.run, self.restarts);
                self.piece(id, true, text, &mut events);
            }
            Update::Restart { reason, .. } => {
                self.close(&mut events);
                (self.was_streamed, self.restarts) = (false, self.restarts + 1);
                events.push(custom("restart", json!({ "reason": reason })));
            }
            Update::Progress { tool_call_id, done, total, text, .. } => {
                let value = json!({ "toolCallId": tool_call_id, "done": done, "total": total, "text": text });
                events.push(custom("progress", value));
            }
            Update::Shown { extension, shown, .. } => {
                events.push(custom("shown", json!({ "extension": extension, "shown": shown })));
            }
            Update::Event { event: Reported::Known(event) } => self.event(event, &mut events),
            Update::Message { event: MessageEvent::Append { message }, .. } => self.appended(message, &mut events),
            Update::Message { event, .. } => events.push(custom("conversation", json!(event))),
            Update::Turn(end) => self.end_of(end, &mut events),
            _ => {}
        }
        events.iter().map(|event| event_of(&event.to_string())).collect()
    }

    fn end(&mut self, end: &End) -> Vec<Event> {
        let (message, code) = match end {
            End::Turn(_) => return Vec::new(),
            End::Refused(error) => (error.message().into_owned(), error.code().as_str().to_owned()),
            End::Handover => {
                let message = "the server is ending: the turn goes on when it has started again".to_owned();
                (message, ErrorCode::SERVE_DRAINING.as_str().to_owned())
            }
        };
        let mut events = Vec::new();
        self.start(&mut events);
        events.push(json!({ "type": "RUN_ERROR", "message": message, "code": code }));
        events.iter().map(|event| event_of(&event.to_string())).collect()
    }
}
