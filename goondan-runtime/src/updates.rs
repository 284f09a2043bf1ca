//! Updates of a turn while it runs, on their way to its stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use goondan_core::{AgentName, Event, ExtensionShown, InstanceKey, MessageEvent, RuntimeEvent, ToolCallId};
use tokio::sync::mpsc::UnboundedSender;

use crate::bus::QUEUE;

/// Something that happened while a turn ran. [`TurnStream::next`](crate::TurnStream::next) returns it.
///
/// Pieces of an answer are a preview: a middleware may change the answer afterwards, and the result of the turn has
/// the truth. If a middleware holds the stream of a step, the answer comes when the step ends: each part in one
/// piece, after the events of the step's tool calls.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TurnUpdate {
    /// A piece of the model's text.
    Text {
        /// The index of the step.
        step: u32,
        /// The index of the part in the answer.
        part: u32,
        /// The piece.
        text: String,
    },
    /// A piece of the model's thoughts before it answers.
    Reasoning {
        /// The index of the step.
        step: u32,
        /// The index of the part in the answer.
        part: u32,
        /// The piece.
        text: String,
    },
    /// The model begins to request a tool call. The call runs when the answer is complete.
    ToolCall {
        /// The index of the step.
        step: u32,
        /// The index of the part in the answer.
        part: u32,
        /// The id of the call.
        id: ToolCallId,
        /// The tool's name as the model wrote it.
        name: String,
    },
    /// A piece of the arguments of a tool call.
    Arguments {
        /// The index of the step.
        step: u32,
        /// The index of the part in the answer, as [`TurnUpdate::ToolCall`] has it.
        part: u32,
        /// A piece of their JSON text.
        json: String,
    },
    /// The answer of this step begins again. Discard the pieces that were received of it.
    Restart {
        /// The index of the step.
        step: u32,
        /// Why.
        reason: String,
        /// The time until the model is asked again; `None` if the provider begins again by itself.
        wait: Option<Duration>,
    },
    /// The progress of a tool call, as its handler said with
    /// [`ToolContext::progress`](goondan_core::ToolContext::progress).
    /// At most 20 a second are told of each call.
    Progress {
        /// The id of the call.
        call: ToolCallId,
        /// The amount that is done.
        done: f64,
        /// The amount that there is to do, if it is known.
        total: Option<f64>,
        /// The current work of the call.
        text: String,
    },
    /// The output of a tool call for people. The runtime event of the call follows, then its message, perhaps after
    /// those of other calls.
    Output {
        /// The id of the call.
        call: ToolCallId,
        /// The output, or the error.
        text: String,
        /// Whether the presenter of the tool made it; otherwise it is the text that the model reads.
        by_presenter: bool,
    },
    /// Something that an extension shows to the person. A status or a list takes the place of the one that
    /// [it replaces](goondan_core::Shown::replaces), of the same extension.
    // SHOW-01
    Shown(ExtensionShown),
    /// A change of the conversation, as it is stored. If a middleware holds the stream of a step, the changes since its
    /// model was asked come when its layers have returned. Those of a turn that goes on come from its first.
    Message(MessageEvent),
    /// Something that happened in the turn of another agent that this turn waits for: see
    /// [`TurnStream::with_children`](crate::TurnStream::with_children).
    // D-40
    Child {
        /// The tool call that asked; `None` if a layer did.
        call: Option<ToolCallId>,
        /// The agent that was asked.
        agent: AgentName,
        /// The key of its instance, which runs one turn at a time: the turns of two instances may be told mixed.
        instance: InstanceKey,
        /// The update. One of an agent that it asks is a `Child` in turn.
        update: Box<TurnUpdate>,
    },
    /// An event of the conversation's bus: see [`TurnStream::with_events`](crate::TurnStream::with_events).
    Emitted(Event),
    /// A turn, step or tool call began or ended, or a request to the model is repeated.
    Event(Arc<RuntimeEvent>),
}

impl TurnUpdate {
    /// Returns whether the turn itself does not send it, so that it is counted while it waits.
    pub(crate) fn is_of_others(&self) -> bool {
        matches!(self, Self::Emitted(_) | Self::Shown(_) | Self::Child { .. })
    }
}

/// The channel from a turn to its stream. Unbounded, but the stream polls the turn only when it is empty, so it holds
/// no more than one poll has sent, and a bounded number of those that others send besides: events of the bus, and
/// those that extensions show.
#[derive(Clone)]
pub(crate) struct UpdateSender {
    updates: UnboundedSender<TurnUpdate>,
    state: Arc<StreamState>,
    /// The turn that this one sends for, if it is not the one of the stream.
    child: Option<Arc<Child>>,
}

/// The state that the stream shares with all that send to it.
#[derive(Default)]
struct StreamState {
    /// The number of updates of others that are not told yet.
    waiting: AtomicUsize,
    /// Whether the turn of the stream is the one that runs.
    runs: AtomicBool,
    /// Whether the caller wants the updates of the turns that the turn waits for.
    wants_children: AtomicBool,
}

/// A turn that another one waits for.
struct Child {
    call: Option<ToolCallId>,
    agent: AgentName,
    instance: InstanceKey,
    /// That other one, if it is such a turn too.
    above: Option<Arc<Self>>,
}

impl Child {
    fn wrap(&self, update: TurnUpdate) -> TurnUpdate {
        let (call, agent, instance) = (self.call.clone(), self.agent.clone(), self.instance.clone());
        let update = TurnUpdate::Child { call, agent, instance, update: Box::new(update) };
        match &self.above {
            Some(above) => above.wrap(update),
            None => update,
        }
    }
}

/// While it lives, the turn of a stream runs.
pub(crate) struct Running(Arc<StreamState>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.runs.store(false, Ordering::Release);
    }
}

impl UpdateSender {
    pub(crate) fn new(updates: UnboundedSender<TurnUpdate>) -> Self {
        Self { updates, state: Arc::default(), child: None }
    }

    /// Lets the turns that the turn waits for tell their updates too.
    pub(crate) fn want_children(&self) {
        self.state.wants_children.store(true, Ordering::Relaxed);
    }

    /// Returns whether the turn of the stream is the one that runs.
    pub(crate) fn does_turn_run(&self) -> bool {
        self.state.runs.load(Ordering::Acquire)
    }

    /// Marks that the turn of the stream runs, until the guard is dropped. One that it waits for is another turn.
    pub(crate) fn turn_runs(&self) -> Option<Running> {
        self.child.is_none().then(|| {
            self.state.runs.store(true, Ordering::Release);
            Running(Arc::clone(&self.state))
        })
    }

    /// Returns the sender for the turn of an instance of `agent`, which the turn waits for, if the caller wants its
    /// updates. `call` asks it, unless a layer does.
    pub(crate) fn of_child(
        &self,
        call: Option<&ToolCallId>,
        agent: &AgentName,
        instance: &InstanceKey,
    ) -> Option<Self> {
        self.state.wants_children.load(Ordering::Relaxed).then(|| {
            let (call, agent, instance) = (call.cloned(), agent.clone(), instance.clone());
            let child = Child { call, agent, instance, above: self.child.clone() };
            Self { child: Some(Arc::new(child)), ..self.clone() }
        })
    }

    /// Sends an update of the turn. One of a turn that is waited for is lost if there is no room.
    pub(crate) fn send(&self, update: TurnUpdate) {
        match &self.child {
            Some(_) if self.has_room() => self.send_counted(update),
            Some(_) => {}
            None => self.push(update),
        }
    }

    fn push(&self, update: TurnUpdate) {
        // An error means that the receiver was dropped.
        let _ = self.updates.send(update);
    }

    /// Whether there is room for an update of others.
    pub(crate) fn has_room(&self) -> bool {
        self.state.waiting.load(Ordering::Relaxed) < QUEUE
    }

    /// Takes note that an update of others was told.
    pub(crate) fn has_told_counted(&self) {
        self.state.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sends an update of others.
    pub(crate) fn send_counted(&self, update: TurnUpdate) {
        self.state.waiting.fetch_add(1, Ordering::Relaxed);
        self.push(match &self.child {
            Some(child) => child.wrap(update),
            None => update,
        });
    }
}
