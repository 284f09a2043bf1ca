//! A turn that ended without a commit, and how far it came.
// RESUME-01

use std::collections::BTreeMap;

use goondan_core::{
    AgentEvent, AskedQuestion, Decision, EventId, ExtensionName, MessageEvent, ModelFinish, Question, ToolCallId,
    ToolError, TurnId, Verdict, Wait,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::EventDigest;

/// A turn that ended without a commit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Interrupted {
    /// The turn.
    pub turn: TurnId,
    /// The id of the event that started it, if the store knows it.
    pub event: Option<EventId>,
    /// The event itself, if the store keeps it. Secrets are masked in it, as far as they were known when it was
    /// recorded, and of its authentication only the principal is kept.
    pub input: Option<AgentEvent>,
    /// The digest of the event, if the store knows it.
    pub digest: Option<EventDigest>,
    /// Its recorded message events.
    pub events: Vec<MessageEvent>,
    /// The calls that were recorded with [`Journal::start_call`](super::Journal::start_call), but for those whose start
    /// was [withdrawn](Wait::withdrawn) when the turn was suspended.
    pub started: Vec<ToolCallId>,
    /// The facts that the runtime noted beside them.
    pub facts: Facts,
}

impl Interrupted {
    /// The turn `turn`, without other records.
    pub fn new(turn: TurnId) -> Self {
        Self {
            turn,
            event: None,
            input: None,
            digest: None,
            events: Vec::new(),
            started: Vec::new(),
            facts: Facts::default(),
        }
    }

    /// Sets the event that started the turn.
    #[must_use]
    pub fn input(mut self, event: AgentEvent) -> Self {
        self.event = Some(event.id.clone());
        self.input = Some(event);
        self
    }
}

impl Interrupted {
    /// Adds the next record of the turn.
    pub fn add(&mut self, record: TurnRecord) {
        let events = self.events.len();
        match record {
            TurnRecord::Event(event, by) => {
                self.facts.event(events, by.as_ref());
                self.events.push(event);
            }
            TurnRecord::Started(call) => {
                self.facts.started(events);
                self.started.push(call);
            }
            TurnRecord::Reached(what) => self.facts.reached(events, what),
            TurnRecord::State(state) => self.facts.state(state),
            TurnRecord::Resumed(keep) => {
                self.events.truncate(keep);
                self.facts.resumed(keep);
            }
            TurnRecord::Suspended(waits, state) => {
                self.started.retain(|call| !waits.iter().any(|wait| wait.withdrawn && wait.call == *call));
                self.facts.suspended(waits, state);
            }
            TurnRecord::Decided(decision) => self.facts.decided(*decision),
        }
    }
}

/// A record of an open turn, for stores that keep the records of a [`Journal`](super::Journal) one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum TurnRecord {
    /// A message event, and its emitter if it is no fact.
    Event(MessageEvent, Option<EmittedBy>),
    /// A call has started that must not run twice.
    Started(ToolCallId),
    /// Something was reached.
    Reached(Reached),
    /// State that belongs to the next fact.
    State(BTreeMap<ExtensionName, Value>),
    /// The turn goes on with its first message events, so many.
    Resumed(usize),
    /// The turn does not run: the calls that wait, if there are any, and the state that has changed.
    Suspended(Vec<Wait>, BTreeMap<ExtensionName, Value>),
    /// A decision about a call that waits.
    Decided(Box<Decision>),
}

/// Facts about an open turn beside its message events. [`Interrupted::add`] makes them of the records of a turn.
///
/// A *fact* is a note of the runtime itself: a message event that no layer emitted, something that was reached, a
/// call that started. A turn that goes on keeps everything up to the newest fact; the events of layers after that are
/// taken back, because they run again.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// The number of message events at the newest fact.
    pub newest: usize,
    /// The message events that layers emitted, each with its index.
    pub emitted: Vec<(usize, EmittedBy)>,
    /// The points that were reached, each with the number of the message events before it.
    pub reached: Vec<(usize, Reached)>,
    /// The state that extensions had at the newest fact, if they changed it in the turn.
    pub state: BTreeMap<ExtensionName, Value>,
    /// The number of resumptions of the turn.
    pub resumptions: u32,
    /// The number of them since the newest fact.
    pub in_vain: u32,
    /// The calls that waited for a decision when the turn was suspended last.
    pub waits: Vec<Wait>,
    /// The decisions about calls of the turn.
    pub decisions: Vec<Decision>,
    /// State that was recorded after the newest fact. It counts from the next one on.
    pending: BTreeMap<ExtensionName, Value>,
}

/// The origin of a message event that is no fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum EmittedBy {
    /// A layer of the turn, of this extension.
    Turn(ExtensionName),
    /// A layer of the step that ran.
    Step(ExtensionName),
    /// The runtime: the part of an answer that the model had said when the conversation was closed. A turn that goes
    /// on asks for the answer again.
    Partial,
    /// The runtime, which takes the conversation back: that happens as a whole, or if the turn is interrupted, not at
    /// all.
    // BACK-01
    Rewind,
}

impl EmittedBy {
    /// Returns the extension, if it is one of a layer.
    pub fn extension(&self) -> Option<&ExtensionName> {
        match self {
            Self::Turn(extension) | Self::Step(extension) => Some(extension),
            Self::Partial | Self::Rewind => None,
        }
    }
}

/// Something that a turn has reached, noted beside its message events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Reached {
    /// All layers of the turn have run `next`.
    TurnCore,
    /// The step with this index has begun.
    Step(u32),
    /// All layers of the step with this index have run `next`.
    StepCore(u32),
    /// The model has answered: the next message event is its answer, or the correction that it is sent.
    #[serde(rename_all = "camelCase")]
    #[non_exhaustive]
    Answer {
        /// Why the model stopped, if it says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<ModelFinish>,
        /// The fault of a malformed answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<Box<str>>,
    },
    /// The answer of the model is not used: it is asked again in the next step.
    // REVIEW-01
    AskedAgain(Box<AskedAgain>),
    /// A call ended with an error: the next message event has the text of it for the model.
    #[non_exhaustive]
    Failed {
        /// The call.
        call: ToolCallId,
        /// The error.
        error: Box<ToolError>,
    },
    /// An input has joined the turn: the next message event is its message.
    Joined(JoinedEvent),
}

/// The text of a reviewer for the model. Nothing of the answer is kept.
// REVIEW-01
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AskedAgain {
    /// The extension of the reviewer. `None` if the answer is no value that fits the schema which is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ExtensionName>,
    /// The fault of the answer.
    pub words: Box<str>,
    /// The most repetitions in a row, if the reviewer limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// The text of the answer, if the model is to read it.
    // VALUE-01
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Box<str>>,
}

impl AskedAgain {
    /// Returns the text of the reviewer of `by` for the model.
    pub fn new(by: ExtensionName, words: impl Into<Box<str>>, at_most: Option<u32>) -> Self {
        Self { by: Some(by), words: words.into(), at_most, attempt: None }
    }

    /// Returns the text of the runtime for the model after an answer that is no value.
    pub(crate) fn no_value(words: impl Into<Box<str>>, at_most: u32, attempt: String) -> Self {
        Self { by: None, words: words.into(), at_most: Some(at_most), attempt: Some(attempt.into()) }
    }
}

/// An event whose input has joined a turn that ran. That turn answers it.
// STEER-01, D-46
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JoinedEvent {
    /// The event.
    pub event: EventId,
    /// Its digest.
    pub digest: EventDigest,
}

impl JoinedEvent {
    /// The event with this id and digest.
    pub fn new(event: EventId, digest: EventDigest) -> Self {
        Self { event, digest }
    }
}

impl Reached {
    /// An answer of the model.
    pub(crate) fn answer(finish_reason: Option<ModelFinish>, problem: Option<&str>) -> Self {
        Self::Answer { finish_reason, problem: problem.map(Box::from) }
    }

    /// The failure of a call.
    pub(crate) fn failed(call: ToolCallId, error: ToolError) -> Self {
        Self::Failed { call, error: Box::new(error) }
    }

    /// Whether it is a note about the message event that follows, and no fact by itself.
    fn is_note(&self) -> bool {
        matches!(self, Self::Answer { .. } | Self::Failed { .. } | Self::Joined(_))
    }
}

impl Facts {
    /// Takes in the message event with this index, and its emitter if it is no fact.
    #[inline]
    pub fn event(&mut self, index: usize, by: Option<&EmittedBy>) {
        match by {
            Some(by) => self.emitted.push((index, by.clone())),
            None => self.fact(index + 1),
        }
    }

    /// Takes in something that was reached after so many message events.
    #[inline]
    pub fn reached(&mut self, events: usize, what: Reached) {
        if !what.is_note() {
            self.fact(events);
        }
        if matches!(what, Reached::Step(_)) {
            // They were about calls of the step before, which have their results.
            self.waits.clear();
            self.decisions.clear();
        }
        self.reached.push((events, what));
    }

    /// Takes in the start of a call after so many message events.
    #[inline]
    pub fn started(&mut self, events: usize) {
        self.fact(events);
    }

    /// Takes in state that belongs to the next fact.
    pub fn state(&mut self, state: BTreeMap<ExtensionName, Value>) {
        self.pending.extend(state);
    }

    /// Takes in that the turn goes on with its first `keep` message events.
    pub fn resumed(&mut self, keep: usize) {
        self.emitted.retain(|(index, _)| *index < keep);
        // A note without its message event is about nothing.
        self.reached.retain(|(events, what)| *events < keep || !what.is_note());
        self.pending.clear();
        self.resumptions += 1;
        self.in_vain += 1;
    }

    /// Takes in that the turn does not run: the calls that wait, if there are any, and the state that has changed.
    pub fn suspended(&mut self, waits: Vec<Wait>, state: BTreeMap<ExtensionName, Value>) {
        if !waits.is_empty() {
            self.waits = waits;
        }
        self.state.extend(state);
    }

    /// Takes in a decision. If there are several about a question, the first one counts.
    pub fn decided(&mut self, decision: Decision) {
        self.in_vain = 0;
        self.decisions.push(decision);
    }

    /// Returns a copy of the questions and decisions, without the rest.
    pub(crate) fn of_questions(&self) -> Self {
        Self { waits: self.waits.clone(), decisions: self.decisions.clone(), ..Self::default() }
    }

    /// Returns the decision as it may be stored and told: without its value, if its question is one for a secret.
    // ASK-04
    pub(crate) fn storable(&self, decision: &Decision) -> Decision {
        let is_secret = self.question(decision).is_some_and(Question::is_secret);
        if is_secret && !decision.is_rejection() { decision.withheld() } else { decision.clone() }
    }

    /// Returns the question of a decision.
    pub(crate) fn question(&self, decision: &Decision) -> Option<&Question> {
        let questions = self.waits.iter().filter(|wait| wait.call == decision.call).flat_map(|wait| &wait.questions);
        let mut of_decision = questions.filter(|asked| decision.question.as_ref() == Some(&asked.by));
        of_decision.next().map(|asked| &asked.question)
    }

    /// Returns the calls that still wait for a decision.
    pub fn undecided(&self) -> impl Iterator<Item = &Wait> {
        self.waits.iter().filter(|wait| self.rejection(&wait.call).is_none() && self.open(wait).next().is_some())
    }

    /// Returns the questions about a call that waits which are not decided.
    pub fn open<'f>(&'f self, wait: &'f Wait) -> impl Iterator<Item = &'f AskedQuestion> {
        wait.questions.iter().filter(|asked| self.answer(wait, asked).is_none())
    }

    /// Returns the calls that still wait for a decision, each with its open questions alone, as programs read them.
    pub fn open_waits(&self) -> impl Iterator<Item = Wait> {
        self.undecided().map(|wait| self.with_open(wait))
    }

    /// Returns a wait with its open questions alone.
    pub(crate) fn with_open(&self, wait: &Wait) -> Wait {
        let mut open = wait.clone();
        open.questions.retain(|asked| self.answer(wait, asked).is_none());
        open
    }

    /// Returns the decision about a question.
    pub fn answer(&self, wait: &Wait, asked: &AskedQuestion) -> Option<&Decision> {
        Self::answer_in(&self.decisions, wait, asked)
    }

    /// Returns the decision about a question: the first decision after it was asked counts.
    // ASK-02
    pub(crate) fn answer_in<'d>(decisions: &'d [Decision], wait: &Wait, asked: &AskedQuestion) -> Option<&'d Decision> {
        let mut later = decisions.iter().skip(asked.after).filter(|decision| decision.verdict != Verdict::Withheld);
        later.find(|decision| decision.call == wait.call && decision.question.as_ref() == Some(&asked.by))
    }

    /// Returns the decision that a call without a result does not run, if there is one.
    pub fn rejection(&self, call: &ToolCallId) -> Option<&Decision> {
        match self.waits.iter().find(|wait| wait.call == *call) {
            Some(wait) => {
                let answers = wait.questions.iter().filter_map(|asked| self.answer(wait, asked));
                answers.into_iter().find(|decision| decision.is_rejection())
            }
            // It was held, and rejected with the one that waited.
            None => self.decisions.iter().find(|decision| decision.call == *call && decision.is_rejection()),
        }
    }

    /// Returns the events whose inputs have joined the turn.
    // STEER-01
    pub fn joined(&self) -> impl Iterator<Item = &JoinedEvent> {
        self.reached.iter().filter_map(|(events, what)| match what {
            Reached::Joined(joined) if *events < self.newest => Some(joined),
            _ => None,
        })
    }

    /// Forgets everything, for the next turn.
    pub fn clear(&mut self) {
        self.newest = 0;
        self.emitted.clear();
        self.reached.clear();
        for state in [&mut self.state, &mut self.pending] {
            if !state.is_empty() {
                state.clear();
            }
        }
        self.waits.clear();
        self.decisions.clear();
        (self.resumptions, self.in_vain) = (0, 0);
    }

    #[inline]
    fn fact(&mut self, events: usize) {
        self.newest = events;
        self.in_vain = 0;
        if !self.pending.is_empty() {
            self.state.append(&mut self.pending);
        }
    }
}
