//! The events of AG-UI.

use std::collections::HashSet;

use goondan_core::{ErrorCode, FinishReason, ToolCallId, Wait};
use goondan_wire::TurnEnd;
use serde_json::{Value, json};

use crate::front_end::{FrontEnd, Kind, Streamed, Told};

/// A run of a thread.
pub(super) struct Run {
    thread: String,
    run: String,
    /// The messages that the front end has sent.
    history: Vec<Value>,
    /// The messages that it was told of since.
    messages: Vec<Value>,
    /// The number of them before the answer of the step.
    before: usize,
    /// The step that runs.
    step: Option<u32>,
    /// The message that the calls of the answer belong to.
    parent: Option<String>,
    /// The calls of the answer whose arguments were streamed.
    streamed: HashSet<ToolCallId>,
    interrupts: Vec<Value>,
}

impl Run {
    pub(super) fn new(thread: &str, run: &str, history: Vec<Value>) -> Self {
        Self {
            thread: thread.to_owned(),
            run: run.to_owned(),
            history,
            messages: Vec::new(),
            before: 0,
            step: None,
            parent: None,
            streamed: HashSet::new(),
            interrupts: Vec::new(),
        }
    }

    fn start_part(&mut self, part: &Streamed, events: &mut Vec<Value>) {
        let id = part.id.as_str();
        match &part.kind {
            Kind::Text => {
                events.push(json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }));
                self.messages.push(json!({ "id": id, "role": "assistant", "content": "" }));
                self.parent = Some(id.to_owned());
            }
            Kind::Reasoning => {
                events.push(json!({ "type": "REASONING_START", "messageId": id }));
                events.push(json!({ "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning" }));
                self.messages.push(json!({ "id": id, "role": "reasoning", "content": "" }));
            }
            Kind::Call { id, tool } => {
                self.streamed.insert(id.clone());
                self.start_call(id, tool, events);
            }
        }
    }

    fn start_call(&mut self, id: &ToolCallId, tool: &str, events: &mut Vec<Value>) {
        let parent = self.parent.get_or_insert_with(|| format!("{}-{id}", self.run));
        events.push(json!({
            "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": tool, "parentMessageId": parent,
        }));
        let call = json!({ "id": id, "type": "function", "function": { "name": tool, "arguments": "" } });
        let is_parent = |message: &&mut Value| message["id"] == parent.as_str();
        match self.messages.iter_mut().rev().find(is_parent) {
            Some(message) => match message["toolCalls"].as_array_mut() {
                Some(calls) => calls.push(call),
                None => message["toolCalls"] = json!([call]),
            },
            None => self.messages.push(json!({ "id": parent, "role": "assistant", "toolCalls": [call] })),
        }
    }

    fn add_arguments(&mut self, id: &ToolCallId, piece: &str, events: &mut Vec<Value>) {
        events.push(json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": piece }));
        let calls = self.messages.iter_mut().rev().filter_map(|message| message["toolCalls"].as_array_mut()).flatten();
        let mut calls = calls.filter(|call| call["id"] == id.as_str());
        if let Some(Value::String(arguments)) = calls.next().map(|call| &mut call["function"]["arguments"]) {
            *arguments += piece;
        }
    }

    fn add_piece(&mut self, part: &Streamed, piece: &str, events: &mut Vec<Value>) {
        let kind = match &part.kind {
            Kind::Text => "TEXT_MESSAGE_CONTENT",
            Kind::Reasoning => "REASONING_MESSAGE_CONTENT",
            Kind::Call { id, .. } => return self.add_arguments(id, piece, events),
        };
        events.push(json!({ "type": kind, "messageId": part.id, "delta": piece }));
        if let Some(Value::String(content)) = self.messages.last_mut().map(|message| &mut message["content"]) {
            *content += piece;
        }
    }

    /// Takes back the messages of the answer: the front end is told those that stay.
    fn restart(&mut self, reason: &str, events: &mut Vec<Value>) {
        self.messages.truncate(self.before);
        self.streamed.clear();
        self.parent = None;
        let messages: Vec<_> = self.history.iter().chain(&self.messages).collect();
        events.push(json!({ "type": "MESSAGES_SNAPSHOT", "messages": messages }));
        events.push(custom("restart", &json!({ "reason": reason })));
    }

    fn ask(&mut self, wait: &Wait) {
        let Some(asked) = wait.questions.first() else { return };
        let mut interrupt = json!({
            "id": wait.call, "reason": "approval", "message": asked.question.text, "toolCallId": wait.call,
        });
        if let Some(expires) = &wait.expires {
            interrupt["expiresAt"] = json!(expires);
        }
        self.interrupts.push(interrupt);
    }

    /// Returns the event of the end.
    fn finished(&self, end: &TurnEnd) -> Value {
        let (thread, run) = (&self.thread, &self.run);
        let finished =
            |outcome: Value| json!({ "type": "RUN_FINISHED", "threadId": thread, "runId": run, "outcome": outcome });
        match &end.error {
            Some(error) if error.code == ErrorCode::TURN_CANCELLED.as_str() => finished(json!({ "type": "cancelled" })),
            Some(error) if end.response.is_none() => {
                json!({ "type": "RUN_ERROR", "message": error.message, "code": error.code })
            }
            _ if end.finish_reason == FinishReason::Suspended && !self.interrupts.is_empty() => {
                finished(json!({ "type": "interrupt", "interrupts": self.interrupts }))
            }
            _ => {
                let mut finished = finished(json!({ "type": "success" }));
                if let Some(value) = &end.value {
                    finished["result"] = value.clone();
                }
                finished
            }
        }
    }
}

impl FrontEnd for Run {
    const KEEPS_ARGUMENTS: bool = true;

    fn tell(&mut self, told: Told<'_>, events: &mut Vec<Value>) {
        match told {
            Told::Started => {
                events.push(json!({ "type": "RUN_STARTED", "threadId": self.thread, "runId": self.run }));
            }
            Told::StepStarted(step) => {
                (self.step, self.parent, self.before) = (Some(step), None, self.messages.len());
                self.streamed.clear();
                events.push(json!({ "type": "STEP_STARTED", "stepName": step.to_string() }));
            }
            Told::StepEnded => {
                let step = self.step.take().unwrap_or_default();
                events.push(json!({ "type": "STEP_FINISHED", "stepName": step.to_string() }));
            }
            Told::PartStarted(part) => self.start_part(part, events),
            Told::Piece(part, piece) => self.add_piece(part, piece, events),
            Told::PartEnded(Streamed { id, kind }) => match kind {
                Kind::Text => events.push(json!({ "type": "TEXT_MESSAGE_END", "messageId": id })),
                Kind::Reasoning => {
                    events.push(json!({ "type": "REASONING_MESSAGE_END", "messageId": id }));
                    events.push(json!({ "type": "REASONING_END", "messageId": id }));
                }
                Kind::Call { id, .. } => events.push(json!({ "type": "TOOL_CALL_END", "toolCallId": id })),
            },
            // The protocol has none in a message of the assistant.
            Told::File(_) => {}
            Told::Restarted(reason) => self.restart(reason, events),
            Told::Called { id, .. } if self.streamed.contains(id) => {}
            Told::Called { id, tool, input } => {
                self.start_call(id, tool, events);
                self.add_arguments(id, &input.to_string(), events);
                events.push(json!({ "type": "TOOL_CALL_END", "toolCallId": id }));
            }
            Told::Result { message, result, .. } => {
                let (id, call, content) = (message.id(), &result.tool_call_id, result.output.to_text());
                events.push(json!({
                    "type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call, "content": content, "role": "tool",
                }));
                self.messages.push(json!({ "id": id, "role": "tool", "toolCallId": call, "content": content }));
            }
            Told::Asked(wait) => self.ask(wait),
            Told::Passing(name, value) => events.push(custom(name, &value)),
            Told::Ended { end, .. } => events.push(self.finished(end)),
            Told::Failed { message, code } => {
                events.push(json!({ "type": "RUN_ERROR", "message": message, "code": code }));
            }
        }
    }
}

fn custom(name: &str, value: &Value) -> Value {
    json!({ "type": "CUSTOM", "name": name, "value": value })
}
