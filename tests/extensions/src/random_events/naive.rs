//! The naive conversation: a list that each event changes literally.

use std::collections::HashSet;
use std::sync::Arc;

use goondan::conversation::{ConversationView, Message, MessageData, MessageEvent, Messages, Part, Role};
use goondan::name::ToolCallId;
use serde::{Deserialize, Serialize};

use super::program::{Edit, NewId};

/// A list of messages, and the requests and reports that are expected of it.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Naive {
    base: Vec<Entry>,
    now: Vec<Entry>,
    /// The events of the turn.
    events: Vec<String>,
    /// Every id that was ever used.
    ids: Vec<String>,
    /// The number of messages that were made.
    made: usize,
    /// The number of events without a target.
    misses: usize,
    /// The expected requests to the model, step by step.
    requests: Vec<Vec<MessageData>>,
    /// For each step that leaves halves of tool pairs out of its request for the first time, their number.
    orphans: Vec<u64>,
    /// The halves that the last step left out of its request.
    left_out: HashSet<ToolCallId>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Entry {
    id: String,
    data: MessageData,
}

impl From<&Message> for Entry {
    fn from(message: &Message) -> Self {
        Self { id: message.id().as_str().to_owned(), data: message.data().clone() }
    }
}

impl Naive {
    /// Begins a turn: the present messages become the base.
    pub fn begin_turn(&mut self) {
        self.base = self.now.clone();
        self.events.clear();
    }

    /// Takes over the messages that the runtime has appended: the input, answers of the model, results of tools.
    pub(super) fn take_runtime_events(&mut self, view: ConversationView<'_>) {
        for event in &view.events()[self.events.len()..] {
            let message = event.appended().unwrap_or_else(|| panic!("the runtime only appends, not {event:?}"));
            self.events.push(line(event));
            self.ids.push(message.id().as_str().to_owned());
            self.now.push(Entry::from(&**message));
        }
    }

    /// Applies `edit`, and returns the event that has the same effect.
    pub(super) fn apply(&mut self, edit: &Edit) -> MessageEvent {
        let event = match edit {
            Edit::Append(id) => {
                let message = self.message(id);
                self.now.push(Entry::from(&message));
                MessageEvent::append(message)
            }
            Edit::Replace(target, id) => {
                let target = self.any_id(*target);
                let message = self.message(id.as_ref().unwrap_or(&NewId::Fresh));
                let message = if id.is_some() { message } else { message.with_id(target.as_str()) };
                match self.now.iter_mut().find(|entry| entry.id == target) {
                    Some(entry) => *entry = Entry::from(&message),
                    None => self.misses += 1,
                }
                MessageEvent::replace(target.as_str(), message)
            }
            Edit::Remove(target) => {
                let target = self.any_id(*target);
                let before = self.now.len();
                self.now.retain(|entry| entry.id != target);
                self.misses += usize::from(self.now.len() == before);
                MessageEvent::remove(target.as_str())
            }
            Edit::Truncate => {
                self.now.clear();
                MessageEvent::truncate()
            }
        };
        self.events.push(line(&event));
        event
    }

    fn message(&mut self, id: &NewId) -> Message {
        self.made += 1;
        let former = match id {
            NewId::Former(number) => Some(self.any_id(*number)),
            NewId::Fresh => None,
        };
        let free = former.filter(|id| self.now.iter().all(|entry| entry.id != *id));
        let id = free.unwrap_or_else(|| format!("made-{}", self.made));
        self.ids.push(id.clone());
        Message::system(format!("message {}", self.made)).with_id(id.as_str())
    }

    /// Returns an id that was used at some time, or one that never was.
    fn any_id(&self, number: usize) -> String {
        self.ids.get(number % (self.ids.len() + 1)).cloned().unwrap_or_else(|| "nobody".to_owned())
    }

    /// Compares base, events and fold with `view` (CONV-01..04).
    pub(super) fn compare(&self, view: ConversationView<'_>) {
        let entries = |messages: Messages<'_>| messages.map(|message| Entry::from(&message.to_message())).collect();
        let (base, now): (Vec<_>, Vec<_>) = (entries(view.base()), entries(view.iter()));
        assert_eq!(now, self.now, "the fold, after {:?}", self.events);
        assert_eq!(base, self.base, "the base, after {:?}", self.events);
        assert_eq!(view.len(), self.now.len());
        assert_eq!(view.events().iter().map(line).collect::<Vec<_>>(), self.events);
    }

    /// Expects a request with the present messages, without halves of tool pairs (PAIR-01).
    pub(super) fn expect_request(&mut self) {
        let (calls, results) = (self.calls(), self.results());
        let orphans: HashSet<_> = calls.symmetric_difference(&results).cloned().collect();
        let new = orphans.difference(&self.left_out).count() as u64;
        self.orphans.extend((new > 0).then_some(new));
        self.left_out = orphans;
        let paired = |part: &&Part| match part {
            Part::ToolCall(call) => results.contains(&call.tool_call_id),
            Part::ToolResult(result) => calls.contains(&result.tool_call_id),
            _ => true,
        };
        let visible = self.now.iter().filter_map(|entry| {
            let parts: Vec<_> = entry.data.content.parts().iter().filter(paired).cloned().collect();
            (!parts.is_empty()).then(|| MessageData::new(entry.data.role, parts))
        });
        let request = visible.collect();
        self.requests.push(request);
    }

    /// Compares the stored messages. After the fold come the results with which the runtime closes unanswered calls
    /// of this turn (D-16).
    ///
    /// # Panics
    /// When they differ from what is expected.
    pub fn end_turn(&mut self, stored: &[Arc<Message>]) {
        let stored: Vec<_> = stored.iter().map(|message| Entry::from(&**message)).collect();
        let (fold, closing) = stored.split_at(self.now.len().min(stored.len()));
        assert_eq!(fold, self.now, "the stored messages");
        let old: HashSet<_> = calls(&self.base);
        let open: HashSet<_> = self.calls().difference(&self.results()).cloned().collect();
        let open: HashSet<_> = open.difference(&old).cloned().collect();
        assert_eq!(results(closing), open, "the results that close the turn");
        assert!(closing.len() == open.len() && closing.iter().all(|entry| entry.data.role == Role::Tool));
        self.ids.extend(closing.iter().map(|entry| entry.id.clone()));
        self.now = stored;
    }

    /// Reopens the conversation: what was reported before is forgotten.
    pub fn reopen(&mut self) {
        self.left_out.clear();
    }

    /// Returns the expected requests to the model.
    pub fn requests(&self) -> &[Vec<MessageData>] {
        &self.requests
    }

    /// Returns the expected reports of halves of tool pairs.
    pub fn orphans(&self) -> &[u64] {
        &self.orphans
    }

    /// Returns the expected number of reports of events without a target.
    pub fn misses(&self) -> usize {
        self.misses
    }

    fn calls(&self) -> HashSet<ToolCallId> {
        calls(&self.now)
    }

    fn results(&self) -> HashSet<ToolCallId> {
        results(&self.now)
    }
}

fn calls(entries: &[Entry]) -> HashSet<ToolCallId> {
    let parts = entries.iter().flat_map(|entry| entry.data.content.parts());
    parts
        .filter_map(|part| if let Part::ToolCall(call) = part { Some(call.tool_call_id.clone()) } else { None })
        .collect()
}

fn results(entries: &[Entry]) -> HashSet<ToolCallId> {
    let parts = entries.iter().flat_map(|entry| entry.data.content.parts());
    parts
        .filter_map(|part| if let Part::ToolResult(of) = part { Some(of.tool_call_id.clone()) } else { None })
        .collect()
}

/// Formats an event as a line.
fn line(event: &MessageEvent) -> String {
    match event {
        MessageEvent::Append { message } => format!("append {}", message.id().as_str()),
        MessageEvent::Replace { target_id, message } => {
            format!("replace {} by {} {:?}", target_id.as_str(), message.id().as_str(), message.text())
        }
        MessageEvent::Remove { target_id } => format!("remove {}", target_id.as_str()),
        MessageEvent::Truncate => "truncate".to_owned(),
        other => panic!("{other:?}"),
    }
}
