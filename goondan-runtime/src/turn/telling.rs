//! Which messages of the open turn are told to its watchers, and when.
// OBSERVE-01

use std::sync::Arc;

use goondan_core::{AgentEvent, Conversation, MessageEvent, MessageId, TurnId, TurnInfo};

use super::watch::{Observers, Watch};
use crate::ports::store::{InstanceId, TurnOutcome};

/// Tells the message events of one conversation. It is made when the conversation is opened.
pub(super) struct Telling {
    observers: Arc<Observers>,
    id: InstanceId,
    /// Whether the watchers of the open turn were asked for their wants.
    is_asked: bool,
    /// The observers of the open turn.
    watch: Option<Arc<Watch>>,
    /// The number of events of the open turn that were sent.
    told: usize,
    /// Whether they are told only when the layers of the step have approved its answer.
    is_held: bool,
}

impl Telling {
    pub(super) fn new(id: &InstanceId, observers: &Arc<Observers>) -> Self {
        let (id, observers) = (id.clone(), Arc::clone(observers));
        Self { observers, id, is_asked: false, watch: None, told: 0, is_held: false }
    }

    /// Starts to tell the turn that is open now.
    pub(super) fn start(&mut self, watch: Option<Arc<Watch>>) {
        *self = Self {
            observers: Arc::clone(&self.observers),
            id: self.id.clone(),
            is_asked: true,
            watch,
            told: 0,
            is_held: false,
        };
    }

    /// Tells the new messages of the conversation, unless they are held.
    #[inline]
    pub(super) fn tell(&mut self, conversation: &Conversation) {
        if self.watch.is_some() && !self.is_held {
            self.tell_until(conversation, conversation.events().len());
        }
    }

    fn tell_until(&mut self, conversation: &Conversation, end: usize) {
        let Some(watch) = &self.watch else { return };
        for event in conversation.events().get(self.told..end).unwrap_or_default() {
            watch.message(event);
        }
        self.told = end;
    }

    /// Holds new messages until [`Telling::release`].
    pub(super) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Tells the held messages, as the layers of the step have left it.
    #[inline]
    pub(super) fn release(&mut self, conversation: &Conversation) {
        if std::mem::take(&mut self.is_held) {
            self.tell_held(conversation);
        }
    }

    #[cold]
    fn tell_held(&mut self, conversation: &Conversation) {
        let Some(watch) = &self.watch else { return };
        let held = conversation.events().get(self.told..).unwrap_or_default();
        as_left(held).iter().for_each(|event| watch.message(event));
        self.told = conversation.events().len();
    }

    /// Tells the messages of a turn that goes on from its first. Those from the event `held_from` are held.
    #[cold]
    pub(super) fn tell_again(&mut self, conversation: &Conversation, held_from: Option<usize>) {
        if let Some(watch) = &self.watch {
            watch.taken_back();
        }
        self.told = 0;
        self.tell_until(conversation, held_from.unwrap_or_else(|| conversation.events().len()));
        self.is_held = held_from.is_some();
    }

    /// Tells the rest of a turn that is about to be committed. If nothing was asked since the conversation was
    /// opened, that is everything.
    pub(super) fn finish(&mut self, conversation: &Conversation, turn: &TurnId, input: Option<&AgentEvent>) {
        if self.is_asked {
            self.release(conversation);
            return self.tell(conversation);
        }
        let InstanceId { agent, key } = self.id.clone();
        // Of the input, only the trace is told.
        let input = input.cloned().unwrap_or_else(|| AgentEvent::input(""));
        let info = TurnInfo::new(agent, key, input).resumed(turn.clone(), 0);
        self.start(Watch::of(&self.observers, &info, None, false));
        self.tell_again(conversation, None);
    }

    /// Tells that the turn is committed.
    pub(super) fn committed(&mut self, outcome: Option<&TurnOutcome>) {
        self.is_asked = false;
        if let (Some(watch), Some(outcome)) = (self.watch.take(), outcome) {
            watch.ended(outcome);
        }
    }
}

/// Returns events that together change a conversation as `events` do, without the versions of a message that others
/// among them have replaced or removed: no layer has approved those.
fn as_left(events: &[MessageEvent]) -> Vec<MessageEvent> {
    let mut left: Vec<MessageEvent> = Vec::with_capacity(events.len());
    for event in events {
        match event {
            MessageEvent::Replace { target_id, message: new } => {
                if let Some(place) = bringing(&left, target_id)
                    // Its id may be free only since a later event.
                    && !left[place..].iter().any(|event| target(event) == Some(new.id()))
                    && let MessageEvent::Append { message } | MessageEvent::Replace { message, .. } = &mut left[place]
                {
                    *message = Arc::clone(new);
                    continue;
                }
            }
            MessageEvent::Remove { target_id } => {
                if let Some(place) = bringing(&left, target_id) {
                    match target(&left[place]).cloned() {
                        Some(target_id) => left[place] = MessageEvent::Remove { target_id },
                        None => drop(left.remove(place)),
                    }
                    continue;
                }
            }
            MessageEvent::Truncate => left.clear(),
            _ => {}
        }
        left.push(event.clone());
    }
    left
}

/// Returns the place of the event among these that brought the message `id`.
fn bringing(events: &[MessageEvent], id: &MessageId) -> Option<usize> {
    events.iter().rposition(|event| match event {
        MessageEvent::Append { message } | MessageEvent::Replace { message, .. } => message.id() == id,
        _ => false,
    })
}

/// Returns the message that an event replaces or removes.
fn target(event: &MessageEvent) -> Option<&MessageId> {
    match event {
        MessageEvent::Replace { target_id, .. } | MessageEvent::Remove { target_id } => Some(target_id),
        _ => None,
    }
}
