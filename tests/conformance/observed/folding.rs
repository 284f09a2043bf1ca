//! An observer that adds up what it is told, as literally as the port promises it.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use goondan::agent::{Observer, Told, Wants};
use goondan::conversation::{Message, MessageEvent, Part, Source};
use goondan::event::{EventScope, RuntimeEvent, SpanId};
use goondan::model::ModelDelta;
use goondan::name::TurnId;

/// Adds up the messages and the pieces of one conversation, and checks the order of what it is told.
#[derive(Clone, Default)]
pub(crate) struct Folding(Arc<Mutex<Folded>>);

#[derive(Default)]
struct Folded {
    /// The messages of the turns that have ended.
    base: Vec<Arc<Message>>,
    /// The turn that has not, with its changes.
    open: Option<(TurnId, Vec<MessageEvent>)>,
    /// The pieces of text of each step and part.
    pieces: BTreeMap<(TurnId, u32), BTreeMap<u32, String>>,
    /// The spans that began and did not end.
    spans: HashSet<SpanId>,
    /// The turns that started, or are told from their first message, and did not end.
    turns: HashSet<TurnId>,
    answers: usize,
    /// What was wrong: a panic would be caught.
    wrong: Vec<String>,
}

fn apply(messages: &mut Vec<Arc<Message>>, event: &MessageEvent) {
    match event {
        MessageEvent::Append { message } => messages.push(Arc::clone(message)),
        MessageEvent::Replace { target_id, message } => {
            let target = messages.iter_mut().find(|known| known.id() == target_id);
            target.into_iter().for_each(|known| *known = Arc::clone(message));
        }
        MessageEvent::Remove { target_id } => messages.retain(|known| known.id() != target_id),
        MessageEvent::Truncate => messages.clear(),
        other => panic!("{other:?}"),
    }
}

impl Folded {
    fn expect(&mut self, holds: bool, what: &str, scope: &EventScope) {
        if !holds {
            self.wrong.push(format!("{what}: {scope:?}"));
        }
    }

    fn changes(&mut self, turn: &TurnId) -> &mut Vec<MessageEvent> {
        // A turn that never ended has changed nothing.
        let open = self.open.take_if(|(open, _)| open == turn);
        &mut self.open.insert(open.unwrap_or_else(|| (turn.clone(), Vec::new()))).1
    }

    fn event(&mut self, scope: &EventScope, event: &RuntimeEvent) {
        let is_child = scope.span.parent.is_some_and(|parent| self.spans.contains(&parent));
        match event {
            RuntimeEvent::TurnStarted { .. } | RuntimeEvent::TurnResumed { .. } => {
                self.spans.insert(scope.span.id);
                self.turns.insert(scope.turn_id.clone());
            }
            RuntimeEvent::StepStarted { step, .. } => {
                self.expect(is_child, "a step of no turn", scope);
                self.spans.insert(scope.span.id);
                self.pieces.remove(&(scope.turn_id.clone(), step.step_index));
            }
            RuntimeEvent::StepCompleted { step, .. } => {
                let was_open = self.spans.remove(&scope.span.id);
                self.expect(is_child && was_open, "a step that did not start", scope);
                self.compare(scope, &step.step_id, step.step_index);
            }
            RuntimeEvent::StepFailed { .. } => {
                self.expect(is_child, "a failed step of no turn", scope);
                self.spans.remove(&scope.span.id);
            }
            RuntimeEvent::TurnCompleted { .. } | RuntimeEvent::TurnFailed { .. } => {
                let was_open = self.spans.remove(&scope.span.id);
                self.expect(was_open, "a turn that did not start", scope);
            }
            _ => self.expect(is_child || self.spans.contains(&scope.span.id), "of nothing that began", scope),
        }
    }

    /// Compares the pieces of a step with the answer of which they are.
    fn compare(&mut self, scope: &EventScope, step_id: &str, index: u32) {
        let pieces = self.pieces.remove(&(scope.turn_id.clone(), index)).unwrap_or_default();
        let answer = self.changes(&scope.turn_id).iter().rev().find_map(|event| {
            let message = event.appended()?;
            matches!(message.source(), Source::Assistant { step_id: of } if of == step_id).then(|| Arc::clone(message))
        });
        let Some(answer) = answer else { return };
        let text = |part: &Part| if let Part::Text(text) = part { Some(text.text.clone()) } else { None };
        let stored: String = answer.content().parts().iter().filter_map(text).collect();
        let told: String = pieces.into_values().collect();
        self.answers += 1;
        self.expect(stored == told, &format!("{told:?} was told of {stored:?}"), scope);
    }

    fn messages(&self, with_open: bool) -> Vec<Arc<Message>> {
        let mut messages = self.base.clone();
        let open = self.open.iter().filter(|_| with_open).flat_map(|(_, changes)| changes);
        open.for_each(|event| apply(&mut messages, event));
        messages
    }
}

impl Folding {
    /// Returns how many answers were compared with their pieces.
    pub(crate) fn answers(&self) -> usize {
        self.0.lock().unwrap().answers
    }

    /// Compares what was told with the messages of the conversation. If it was opened anew, its last turn may have been
    /// committed by the opening before, which did not come to tell that.
    pub(crate) fn check(&self, messages: &[Arc<Message>], was_opened_anew: bool) {
        let mut folded = self.0.lock().unwrap();
        assert_eq!(folded.wrong, [""; 0]);
        if was_opened_anew && folded.messages(false) != messages {
            folded.base = folded.messages(true);
            folded.open = None;
        }
        assert_eq!(folded.messages(false), messages);
    }
}

impl Observer for Folding {
    fn wants(&self) -> Wants {
        Wants::EVENTS | Wants::MESSAGES | Wants::PIECES
    }

    fn told(&self, scope: &EventScope, what: &Told<'_>) {
        let mut folded = self.0.lock().unwrap();
        match what {
            Told::Event(event) => folded.event(scope, event),
            Told::Message(event) => {
                let is_in_turn = folded.turns.contains(&scope.turn_id);
                folded.expect(is_in_turn, "a message of no turn that runs", scope);
                folded.changes(&scope.turn_id).push((*event).clone());
            }
            Told::TakenBack => {
                // A turn that is closed by a new opening is told from its first message, too.
                folded.turns.insert(scope.turn_id.clone());
                folded.changes(&scope.turn_id).clear();
            }
            Told::Ended(_) => {
                folded.turns.remove(&scope.turn_id);
                folded.changes(&scope.turn_id);
                folded.base = folded.messages(true);
                folded.open = None;
            }
            Told::Piece { step, piece } => {
                let pieces = folded.pieces.entry((scope.turn_id.clone(), *step)).or_default();
                match piece {
                    ModelDelta::Text { part, text } => pieces.entry(*part).or_default().push_str(text),
                    ModelDelta::Restart { .. } => pieces.clear(),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}
