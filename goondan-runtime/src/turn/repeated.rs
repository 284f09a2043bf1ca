//! A turn that goes on: where it was interrupted, and the events that its layers emit again.
// RESUME-01

use std::collections::VecDeque;
use std::mem::discriminant;
use std::ops::Range;
use std::sync::Arc;

use goondan_core::host::{ConversationExt, IdMap};
use goondan_core::{
    Conversation, ExtensionName, Message, MessageEvent, MessageId, ModelFinish, Part, Role, ToolCallId, ToolCallStatus,
    ToolCallSummary, ToolError, ToolResultPart,
};

use super::journaled::JournaledConversation;
use crate::ports::store::{AskedAgain, EmittedBy, Reached};

/// A turn that goes on.
pub(super) struct Repetition {
    /// The events that the layers of the turn emit again; `None` once they have reached its core.
    turn: Option<Emitted>,
    /// The step that was interrupted, until it runs again.
    pub(super) step: Option<RecordedStep>,
    /// The events that the layers of that step emit again, while they have not reached its core.
    in_step: Option<Emitted>,
    /// The messages of inputs that have joined the turn since the last step before `step`, and since `step` began.
    joined: [Vec<MessageId>; 2],
    /// The ids of messages that were emitted again, each with the id of the message in the conversation.
    aliases: IdMap<MessageId, MessageId>,
}

/// The events that layers emitted before they reached a core, in their order.
pub(super) struct Emitted {
    events: VecDeque<(ExtensionName, MessageEvent)>,
    /// The conversation when they reached the core, which they see again: later messages might make them say
    /// something else.
    view: Conversation,
    /// Whether layers have emitted something now that they had not emitted before.
    is_more: bool,
}

/// A step that was interrupted.
pub(super) struct RecordedStep {
    pub(super) index: u32,
    /// The number of requests in a row for a corrected answer before it.
    pub(super) repairs: u32,
    /// The events that its layers emitted, if they had reached its core.
    emitted: Option<Emitted>,
    /// The record of the model's answer.
    answer: Option<Box<Recorded>>,
}

/// The record of a step's answer.
pub(super) enum Recorded {
    Answer(RecordedAnswer),
    /// It was not used, and the model is asked again.
    AskedAgain(AskedAgain),
}

/// The answer of a model that is recorded, or the correction of a malformed one.
pub(super) struct RecordedAnswer {
    pub(super) message: Arc<Message>,
    /// Its place among the events of the turn.
    place: usize,
    /// The message events after it: results of calls, unless layers have emitted some when the turn went on.
    pub(super) later: Vec<MessageEvent>,
    pub(super) finish_reason: Option<ModelFinish>,
    pub(super) problem: Option<Box<str>>,
}

/// Returns the tool calls of the open turn that have a result.
pub(super) fn answered_calls(journaled: &JournaledConversation) -> Vec<ToolCallSummary> {
    let messages = journaled.conversation.events().iter().filter_map(MessageEvent::appended);
    let results = messages.filter(|message| message.role() == Role::Tool).filter_map(|message| result_in(message));
    let summary = |result: &ToolResultPart| {
        let failed = result.is_error || failure(journaled, &result.tool_call_id).is_some();
        let status = if failed { ToolCallStatus::Error } else { ToolCallStatus::Ok };
        ToolCallSummary::new(result.tool_call_id.clone(), result.tool_name.clone(), status)
    };
    results.map(summary).collect()
}

/// Returns the result in the message of a tool.
pub(super) fn result_in(message: &Message) -> Option<&ToolResultPart> {
    message.content().parts().iter().find_map(|part| match part {
        Part::ToolResult(result) => Some(&**result),
        _ => None,
    })
}

/// Returns the error that a call of the open turn has ended with.
pub(super) fn failure<'a>(journaled: &'a JournaledConversation, of: &ToolCallId) -> Option<&'a ToolError> {
    journaled.facts.reached.iter().rev().find_map(|(_, reached)| match reached {
        Reached::Failed { call, error } if call == of => Some(&**error),
        _ => None,
    })
}

/// Returns how many steps in a row before the step `index` ended with a correction.
fn repairs_before(index: u32, reached: &[(usize, Reached)]) -> u32 {
    let (mut repairs, mut is_repair) = (0, false);
    for (_, what) in reached {
        match what {
            Reached::Step(step) => {
                repairs = if is_repair { repairs + 1 } else { 0 };
                is_repair = false;
                if *step == index {
                    break;
                }
            }
            Reached::Answer { problem, .. } => is_repair = problem.is_some(),
            Reached::AskedAgain(_) => is_repair = true,
            _ => {}
        }
    }
    repairs
}

/// Returns the words of reviewers to the model in the step that was interrupted: what is recorded since the last
/// answer of the model that was used, before that step.
pub(super) fn corrections(journaled: &JournaledConversation) -> Vec<AskedAgain> {
    let reached = &journaled.facts.reached;
    let interrupted = reached.iter().rposition(|(_, what)| matches!(what, Reached::Step(_))).unwrap_or_default();
    let begun = reached.get(interrupted).map_or(0, |(events, _)| *events);
    let events = journaled.conversation.events();
    let is_answer = |place: &usize| {
        let of_layer = journaled.facts.emitted.iter().any(|(index, _)| index == place);
        !of_layer && events[*place].appended().is_some_and(|message| message.role() == Role::Assistant)
    };
    let last = (0..begun.min(events.len())).rev().find(is_answer).map_or(0, |place| place + 1);
    let since = reached[..interrupted].iter().filter(|(events, _)| *events >= last);
    let asked = since.filter_map(|(_, what)| match what {
        Reached::AskedAgain(asked) => Some(AskedAgain::clone(asked)),
        _ => None,
    });
    asked.collect()
}

/// Returns the messages of inputs that joined the open turn for the step that was interrupted, and after it had begun.
fn joined(journaled: &JournaledConversation, interrupted: Option<u32>) -> [Vec<MessageId>; 2] {
    let (mut before, mut since) = (Vec::new(), Vec::new());
    for (place, reached) in &journaled.facts.reached {
        match reached {
            Reached::Step(index) if Some(*index) == interrupted => before.append(&mut since),
            Reached::Step(_) => since.clear(),
            Reached::Joined(_) => {
                let message = journaled.conversation.events().get(*place).and_then(MessageEvent::appended);
                since.extend(message.map(|message| message.id().clone()));
            }
            _ => {}
        }
    }
    [before, since]
}

impl Repetition {
    /// Finds where the open turn was interrupted. All after its newest fact was taken back before.
    pub(super) fn find(journaled: &JournaledConversation) -> Self {
        let reached = &journaled.facts.reached;
        // One that is recorded again came after events that layers emitted only when the turn went on.
        let newest = |core: Reached| reached.iter().rfind(|(_, what)| *what == core).map(|(events, _)| *events);
        let last = reached.iter().rev().find_map(|(events, what)| match what {
            Reached::Step(index) => Some((*index, *events)),
            _ => None,
        });
        let step = last.map(|(index, begun)| {
            let of_step = |by: &EmittedBy| matches!(by, EmittedBy::Step(_));
            let core = newest(Reached::StepCore(index));
            let first = reached.iter().find(|(_, what)| *what == Reached::StepCore(index));
            RecordedStep {
                index,
                repairs: repairs_before(index, reached),
                emitted: core.map(|core| Emitted::between(journaled, begun..core, of_step)),
                answer: first.and_then(|(core, _)| Recorded::find(journaled, *core)).map(Box::new),
            }
        });
        let joined = joined(journaled, step.as_ref().map(|step| step.index));
        let of_turn = |by: &EmittedBy| matches!(by, EmittedBy::Turn(_));
        let turn = newest(Reached::TurnCore).map(|core| Emitted::between(journaled, 0..core, of_turn));
        Self { turn, step, in_step: None, joined, aliases: IdMap::default() }
    }

    /// Returns the view of the layers of the turn of the conversation, if they have reached its core before.
    pub(super) fn in_turn(&self) -> Option<&Conversation> {
        self.turn.as_ref().map(|emitted| &emitted.view)
    }

    /// Returns the view of the layers of the step that runs of the conversation, if they have reached its core before.
    pub(super) fn in_step(&self) -> Option<&Conversation> {
        self.in_step.as_ref().map(|emitted| &emitted.view)
    }

    /// Returns the place of the recorded answer of the step that was interrupted, among the events of the turn.
    pub(super) fn answer_at(&self) -> Option<usize> {
        match self.step.as_ref()?.answer.as_deref()? {
            Recorded::Answer(answer) => Some(answer.place),
            Recorded::AskedAgain(_) => None,
        }
    }

    /// Takes in that the layers of the turn have reached its core. Returns whether that is recorded, with all that they
    /// emitted.
    pub(super) fn turn_core(&mut self) -> bool {
        self.turn.take().is_some_and(|emitted| !emitted.is_more)
    }

    /// Returns the messages of inputs that had joined the turn for the step with this index, which begins.
    // STEER-01
    pub(super) fn joined(&mut self, index: u32) -> Vec<MessageId> {
        let [before, after] = &mut self.joined;
        let of_step = if self.step.as_ref().is_some_and(|step| step.index == index) { before } else { after };
        std::mem::take(of_step)
    }

    /// Takes in that the step with this index begins. If it was interrupted, returns its answer, if that is recorded.
    pub(super) fn step_begins(&mut self, index: u32) -> Option<Option<Box<Recorded>>> {
        let step = self.step.take_if(|step| step.index == index)?;
        self.in_step = step.emitted;
        Some(step.answer)
    }

    /// Takes in that the layers of the step have reached its core. Returns whether that is recorded, with all that they
    /// emitted.
    pub(super) fn step_core(&mut self) -> bool {
        self.in_step.take().is_some_and(|emitted| !emitted.is_more)
    }

    /// Takes an event of a layer of the turn, and returns it if it is to be applied.
    pub(super) fn of_turn(&mut self, event: MessageEvent, by: &ExtensionName) -> Option<MessageEvent> {
        Self::take(self.turn.as_mut(), &mut self.aliases, event, by)
    }

    /// Takes an event of a layer of a step, and returns it if it is to be applied.
    pub(super) fn of_step(&mut self, event: MessageEvent, by: &ExtensionName) -> Option<MessageEvent> {
        Self::take(self.in_step.as_mut(), &mut self.aliases, event, by)
    }

    fn take(
        emitted: Option<&mut Emitted>,
        aliases: &mut IdMap<MessageId, MessageId>,
        mut event: MessageEvent,
        by: &ExtensionName,
    ) -> Option<MessageEvent> {
        if let MessageEvent::Remove { target_id } | MessageEvent::Replace { target_id, .. } = &mut event
            && let Some(known) = aliases.get(target_id)
        {
            *target_id = known.clone();
        }
        if let MessageEvent::Replace { message, .. } = &mut event
            && let Some(known) = aliases.get(message.id())
        {
            *message = Arc::new(Message::clone(message).with_id(known.clone()));
        }
        let Some(emitted) = emitted else { return Some(event) };
        let Some(recorded) = emitted.partner(&event, by) else {
            emitted.is_more = true;
            // If it cannot be applied, the conversation refuses it too.
            _ = emitted.view.apply(event.clone());
            return Some(event);
        };
        if let (Some(again), Some(known)) = (brought(&event), brought(&recorded))
            && again.id() != known.id()
        {
            aliases.insert(again.id().clone(), known.id().clone());
        }
        None
    }
}

/// Returns the message that an event brings.
fn brought(event: &MessageEvent) -> Option<&Arc<Message>> {
    match event {
        MessageEvent::Append { message } | MessageEvent::Replace { message, .. } => Some(message),
        _ => None,
    }
}

impl Emitted {
    /// The events of layers of one kind in a range of the turn's events.
    fn between(journaled: &JournaledConversation, range: Range<usize>, is_of: fn(&EmittedBy) -> bool) -> Self {
        let emitted = &journaled.facts.emitted;
        let emitted = emitted.iter().filter(|(index, by)| range.contains(index) && is_of(by));
        let events = journaled.conversation.events();
        let events = emitted.filter_map(|(index, by)| Some((by.extension()?.clone(), events.get(*index)?.clone())));
        Self { events: events.collect(), view: journaled.conversation.at_event(range.end), is_more: false }
    }

    /// Removes and returns the next recorded event of `by` that is of the kind of `event`.
    fn partner(&mut self, event: &MessageEvent, by: &ExtensionName) -> Option<MessageEvent> {
        let is_partner = |(extension, recorded): &(ExtensionName, MessageEvent)| {
            extension == by && discriminant(recorded) == discriminant(event)
        };
        let place = self.events.iter().position(is_partner)?;
        self.events.remove(place).map(|(_, recorded)| recorded)
    }
}

impl Recorded {
    /// Finds the record of the answer after the core of its step was reached.
    fn find(journaled: &JournaledConversation, core: usize) -> Option<Self> {
        if let Some(answer) = RecordedAnswer::find(journaled, core) {
            return Some(Self::Answer(answer));
        }
        let of_step = journaled.facts.reached.iter().rev().map(|(_, what)| what);
        of_step.take_while(|what| !matches!(what, Reached::Step(_))).find_map(|what| match what {
            Reached::AskedAgain(asked) => Some(Self::AskedAgain(AskedAgain::clone(asked))),
            _ => None,
        })
    }
}

impl RecordedAnswer {
    /// Finds the answer in the events after the core of its step was reached.
    fn find(journaled: &JournaledConversation, core: usize) -> Option<Self> {
        let events = journaled.conversation.events();
        let is_of_layer = |place: &usize| journaled.facts.emitted.iter().any(|(index, _)| index == place);
        // Before the answer, the runtime itself replaces messages at most.
        let place = (core..events.len()).find(|place| events[*place].appended().is_some() && !is_of_layer(place))?;
        let message = Arc::clone(events[place].appended()?);
        let note = journaled.facts.reached.iter().rev().find_map(|(events, reached)| match reached {
            Reached::Answer { finish_reason, problem } if *events == place => Some((*finish_reason, problem.clone())),
            _ => None,
        });
        let (finish_reason, problem) = note.unwrap_or_default();
        Some(Self { message, place, later: events[place + 1..].to_vec(), finish_reason, problem })
    }
}
