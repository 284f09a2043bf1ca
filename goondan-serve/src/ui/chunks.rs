//! From what a turn tells to the chunks of AI SDK UI.

use std::collections::HashSet;

use axum::response::sse::Event;
use goondan_core::{
    EventId, FinishReason, Message, MessageEvent, ModelFinish, Part, Role, RuntimeEvent, Source, ToolCallId,
    ToolOutput, ToolResultPart, Wait,
};
use goondan_wire::{Reported, TurnEnd, Update};
use serde_json::{Value, json};

use crate::calls::{Calls, Ended};
use crate::log::{End, Entry};
use crate::watch::{Frames, event_of};

/// Makes the chunks of one turn.
pub(super) struct Chunks {
    /// The id of the message of the page. After an approval the turn goes on with the same one.
    message: EventId,
    has_started: bool,
    in_step: bool,
    /// Set while what is told again before the first step is in the page already.
    skips: bool,
    /// The step of the newest answer that was told by its message.
    told: Option<String>,
    /// Set while that step goes on: its pieces tell the recorded answer again.
    repeats: bool,
    /// The part that is being streamed.
    open: Option<Open>,
    /// Set once a text or reasoning of this step was streamed since its answer began.
    was_streamed: bool,
    /// The number of answers that began again, so that parts get ids of their own.
    restarts: u32,
    calls: Calls,
    finish: Option<ModelFinish>,
}

struct Open {
    id: String,
    kind: &'static str,
}

impl Chunks {
    pub(super) fn new(event: &EventId) -> Self {
        Self {
            message: event.clone(),
            has_started: false,
            in_step: false,
            skips: false,
            told: None,
            repeats: false,
            open: None,
            was_streamed: false,
            restarts: 0,
            calls: Calls::default(),
            finish: None,
        }
    }

    /// Goes on with the message of a page, which has these calls.
    pub(super) fn going_on(self, calls: HashSet<ToolCallId>) -> Self {
        Self { skips: true, calls: Calls::told(calls), ..self }
    }

    fn start(&mut self, chunks: &mut Vec<Value>) {
        if !std::mem::replace(&mut self.has_started, true) {
            chunks.push(json!({ "type": "start", "messageId": self.message }));
        }
    }

    fn close(&mut self, chunks: &mut Vec<Value>) {
        if let Some(Open { id, kind }) = self.open.take() {
            chunks.push(json!({ "type": format!("{kind}-end"), "id": id }));
        }
    }

    /// Adds a piece of a text, or of reasoning.
    fn piece(&mut self, kind: &'static str, id: String, piece: &str, chunks: &mut Vec<Value>) {
        if self.open.as_ref().is_none_or(|open| open.id != id || open.kind != kind) {
            self.close(chunks);
            chunks.push(json!({ "type": format!("{kind}-start"), "id": id }));
            self.open = Some(Open { id: id.clone(), kind });
        }
        chunks.push(json!({ "type": format!("{kind}-delta"), "id": id, "delta": piece }));
        self.was_streamed = true;
    }

    fn end_step(&mut self, chunks: &mut Vec<Value>) {
        self.close(chunks);
        if std::mem::take(&mut self.in_step) {
            chunks.push(json!({ "type": "finish-step" }));
        }
    }

    fn event(&mut self, event: &RuntimeEvent, chunks: &mut Vec<Value>) {
        if let Some(call) = self.calls.event(event) {
            let called = self.calls.tell(call);
            self.called(call, called, chunks);
        }
        match event {
            RuntimeEvent::TurnStarted { .. } | RuntimeEvent::TurnResumed { .. } => self.start(chunks),
            RuntimeEvent::StepStarted { step, .. } => {
                self.repeats = self.told.as_ref() == Some(&step.step_id);
                self.start(chunks);
                self.end_step(chunks);
                (self.in_step, self.was_streamed, self.skips) = (true, false, false);
                chunks.push(json!({ "type": "start-step" }));
            }
            RuntimeEvent::StepCompleted { finish_reason, .. } => {
                self.finish = *finish_reason;
                self.end_step(chunks);
            }
            RuntimeEvent::StepFailed { .. } => self.end_step(chunks),
            RuntimeEvent::TurnSuspended { waits, .. } => waits.iter().for_each(|wait| self.ask(wait, chunks)),
            _ => {}
        }
    }

    fn called(&mut self, id: &ToolCallId, called: Option<(String, Value)>, chunks: &mut Vec<Value>) {
        if let Some((name, input)) = called {
            self.close(chunks);
            chunks.push(json!({
                "type": "tool-input-available", "toolCallId": id, "toolName": name, "input": input, "dynamic": true,
            }));
        }
    }

    fn ask(&mut self, wait: &Wait, chunks: &mut Vec<Value>) {
        if wait.questions.is_empty() {
            return;
        }
        let called = self.calls.wait(wait);
        self.called(&wait.call, called, chunks);
        chunks.push(json!({ "type": "tool-approval-request", "approvalId": wait.call, "toolCallId": wait.call }));
        let questions: Vec<_> = wait.questions.iter().map(|asked| asked.question.text.as_str()).collect();
        let data = json!({ "toolCallId": wait.call, "questions": questions, "presentation": wait.presentation });
        chunks.push(json!({ "type": "data-question", "id": wait.call, "data": data }));
    }

    fn appended(&mut self, message: &Message, chunks: &mut Vec<Value>) {
        match message.role() {
            Role::Assistant => self.answer(message, chunks),
            Role::Tool => message.content().parts().iter().for_each(|part| {
                if let Part::ToolResult(result) = part {
                    self.result(result, chunks);
                }
            }),
            _ => {}
        }
    }

    /// Tells an answer whose pieces were not streamed, and takes in its calls.
    fn answer(&mut self, message: &Message, chunks: &mut Vec<Value>) {
        self.start(chunks);
        self.close(chunks);
        self.calls.answer(message);
        if let Source::Assistant { step_id } = message.source() {
            self.told = Some(step_id.clone());
        }
        for (index, part) in message.content().parts().iter().enumerate() {
            let id = format!("{}-{index}", message.id());
            match part {
                Part::Text(text) if !self.was_streamed && !self.skips && !text.text.is_empty() => {
                    self.piece("text", id, &text.text, chunks);
                    self.close(chunks);
                    self.was_streamed = false;
                }
                Part::File(file) if !self.skips => {
                    chunks.push(json!({ "type": "file", "url": file.url, "mediaType": file.media_type }));
                }
                _ => {}
            }
        }
    }

    fn result(&mut self, result: &ToolResultPart, chunks: &mut Vec<Value>) {
        if self.skips {
            return;
        }
        self.close(chunks);
        let id = &result.tool_call_id;
        let called = self.calls.tell(id);
        self.called(id, called, chunks);
        chunks.push(match self.calls.ended(result) {
            Ended::Well => {
                let output = match &result.output {
                    ToolOutput::Json(value) => value.clone(),
                    other => Value::String(other.to_text().into_owned()),
                };
                json!({ "type": "tool-output-available", "toolCallId": id, "output": output, "dynamic": true })
            }
            Ended::Denied => json!({ "type": "tool-output-denied", "toolCallId": id }),
            Ended::Badly => {
                let text = result.output.to_text();
                json!({ "type": "tool-output-error", "toolCallId": id, "errorText": text, "dynamic": true })
            }
        });
    }

    fn end_of(&mut self, end: &TurnEnd, chunks: &mut Vec<Value>) {
        self.start(chunks);
        self.end_step(chunks);
        if let Some(error) =
            end.error.as_ref().filter(|_| end.finish_reason == FinishReason::Error && end.response.is_none())
        {
            chunks.push(json!({ "type": "error", "errorText": format!("{} ({})", error.message, error.code) }));
        }
        let reason = match (end.finish_reason, self.finish) {
            (FinishReason::Error, _) => "error",
            (FinishReason::Length, _) => "length",
            (FinishReason::Suspended, _) => "tool-calls",
            (_, Some(ModelFinish::ContentFilter)) => "content-filter",
            (FinishReason::TextResponse, _) => "stop",
            _ => "other",
        };
        chunks.push(json!({ "type": "finish", "finishReason": reason }));
    }
}

impl Frames for Chunks {
    fn update(&mut self, entry: &Entry) -> Vec<Event> {
        let mut chunks = Vec::new();
        match &*entry.update {
            Update::Text { .. } | Update::Reasoning { .. } if self.repeats => {}
            Update::Text { step_index, part, text, .. } => {
                let id = format!("{step_index}-{part}-{}", self.restarts);
                self.piece("text", id, text, &mut chunks);
            }
            Update::Reasoning { step_index, part, text, .. } => {
                let id = format!("{step_index}-{part}-{}", self.restarts);
                self.piece("reasoning", id, text, &mut chunks);
            }
            Update::Restart { reason, .. } => {
                self.close(&mut chunks);
                (self.was_streamed, self.restarts) = (false, self.restarts + 1);
                chunks.push(json!({ "type": "data-restart", "data": { "reason": reason }, "transient": true }));
            }
            Update::Progress { tool_call_id, done, total, text, .. } => {
                let data = json!({ "toolCallId": tool_call_id, "done": done, "total": total, "text": text });
                chunks.push(json!({ "type": "data-progress", "data": data, "transient": true }));
            }
            Update::Shown { extension, shown, .. } => {
                let data = json!({ "extension": extension, "shown": shown });
                chunks.push(json!({ "type": "data-shown", "data": data, "transient": true }));
            }
            Update::Event { event: Reported::Known(event) } => self.event(event, &mut chunks),
            Update::Message { event: MessageEvent::Append { message }, .. } => self.appended(message, &mut chunks),
            Update::Message { event, .. } => {
                chunks.push(json!({ "type": "data-conversation", "data": event, "transient": true }));
            }
            Update::Turn(end) => self.end_of(end, &mut chunks),
            _ => {}
        }
        chunks.iter().map(|chunk| event_of(&chunk.to_string())).collect()
    }

    fn end(&mut self, end: &End) -> Vec<Event> {
        let text = match end {
            End::Turn(_) => None,
            End::Refused(error) => Some(format!("{} ({})", error.message(), error.code())),
            End::Handover => Some("the server is ending: the turn goes on when it has started again".to_owned()),
        };
        let error = text.map(|text| event_of(&json!({ "type": "error", "errorText": text }).to_string()));
        error.into_iter().chain([Event::default().data("[DONE]")]).collect()
    }
}
