//! The port to observers: events of all conversations of an agent, told at once.
// OBSERVE-01

use std::any::type_name;
use std::ops::BitOr;
use std::sync::Arc;

use goondan_core::{EventScope, ExtensionShown, MessageEvent, RuntimeEvent, ToolCallId, ToolProgress};

use super::model::ModelDelta;
use super::store::TurnOutcome;

/// Receives the events of the conversations of an agent, such as for telemetry, an inspector or a server.
/// [`AgentBuilder::observer`](crate::AgentBuilder::observer) and [`Agent::observe`](crate::Agent::observe) add one.
///
/// It is called on the task that runs the turn, in the order in which things happen, so it delays the turn by the time
/// that it takes. One that takes longer than 100 ms is named in the log, once. A panic in it is logged once, and
/// changes nothing. Turns of several conversations call it at the same time.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use goondan::Agent;
/// use goondan::agent::{Observer, Told, Wants};
/// use goondan::event::{EventScope, RuntimeEvent};
/// use goondan::model::{ScriptItem, ScriptedModel};
///
/// /// Counts the turns of each conversation.
/// #[derive(Default)]
/// struct Turns(Mutex<Vec<String>>);
///
/// impl Observer for Turns {
///     fn wants(&self) -> Wants {
///         Wants::EVENTS
///     }
///
///     fn told(&self, scope: &EventScope, what: &Told<'_>) {
///         if let Told::Event(event) = what
///             && let RuntimeEvent::TurnCompleted { step_count, .. } = &***event
///         {
///             self.0.lock().unwrap().push(format!("{}: {step_count}", scope.instance_key));
///         }
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let turns = Arc::new(Turns::default());
/// let model = ScriptedModel::new([ScriptItem::say("hi")]);
/// let agent = Agent::builder("assistant").model(model).observer(Arc::clone(&turns)).build()?;
/// agent.instance("user:42").await?.run("hello").await?;
/// assert_eq!(*turns.0.lock().unwrap(), ["user:42: 1"]);
/// # Ok::<(), goondan::Error>(())
/// # })?;
/// # Ok::<(), goondan::Error>(())
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Returns the kinds of events that the observer receives of a turn. It is asked once for each run of a turn,
    /// before it begins, and must return at once. For an observer that wants nothing, nothing is built.
    fn wants(&self) -> Wants;

    /// Receives something that has happened in a turn. The scope says when, and in which conversation and turn; its
    /// span is the span of the step for pieces of an answer, of the turn for messages.
    fn told(&self, scope: &EventScope, what: &Told<'_>);

    /// Returns the name of the observer in the log. Defaults to the name of its type.
    fn name(&self) -> &str {
        type_name::<Self>()
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn wants(&self) -> Wants {
        (**self).wants()
    }

    fn told(&self, scope: &EventScope, what: &Told<'_>) {
        (**self).told(scope, what);
    }

    fn name(&self) -> &str {
        (**self).name()
    }
}

/// The updates of a turn that an [`Observer`] receives. Several are joined by `|`.
///
/// ```
/// use goondan::agent::Wants;
///
/// let wants = Wants::EVENTS | Wants::MESSAGES;
/// assert!(wants.contains(Wants::EVENTS) && !wants.contains(Wants::PIECES));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants(u8);

impl Wants {
    /// Nothing.
    pub const NOTHING: Self = Self(0);
    /// Runtime events: [`Told::Event`].
    pub const EVENTS: Self = Self(1);
    /// Changes of the conversation: [`Told::Message`], [`Told::TakenBack`].
    pub const MESSAGES: Self = Self(1 << 1);
    /// Pieces of answers, the progress and output of tool calls, and notes of extensions: [`Told::Piece`],
    /// [`Told::Progress`], [`Told::Output`], [`Told::Shown`].
    pub const PIECES: Self = Self(1 << 2);

    /// Returns whether this includes all of `other`.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Wants {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Something that has happened in a turn, as an [`Observer`] receives it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Told<'a> {
    /// A turn, step or tool call began or ended, or another [`RuntimeEvent`]. An `Arc`, so that keeping it is cheap.
    Event(&'a Arc<RuntimeEvent>),
    /// A change of the conversation, as it is stored; a clone is cheap. If a middleware holds the stream of a step, the
    /// changes since its model was asked come when the layers of the step have returned, without the versions of a
    /// message that they have replaced or removed. Edits of a request by
    /// [`StepContext::project`](goondan_core::StepContext::project) are none.
    Message(&'a MessageEvent),
    /// The messages of this turn that were received are void: it was interrupted, and goes on or is closed now. Those
    /// that it has follow, from its first.
    TakenBack,
    /// The turn is committed: the messages of it that were received are part of the conversation. Every observer is
    /// told that wants anything. A turn without this update, such as one that began when the store was lost, has
    /// changed nothing once another one of the conversation begins.
    Ended(&'a TurnOutcome),
    /// A piece of the model's answer: a preview, as [`TurnUpdate`](crate::TurnUpdate) says. After
    /// [`ModelDelta::Restart`], and when the step is started again, the pieces of the step that were received are void.
    Piece {
        /// The index of the step.
        step: u32,
        /// The piece.
        piece: ModelDelta<'a>,
    },
    /// The progress of a tool call.
    Progress(&'a ToolProgress),
    /// The output of a tool call for people. The runtime event of the call follows.
    // PRESENT-01
    Output {
        /// The id of the call.
        call: &'a ToolCallId,
        /// The output, or the error.
        text: &'a str,
        /// Whether the presenter of the tool made it; otherwise it is the text that the model reads.
        by_presenter: bool,
    },
    /// Something that an extension shows to the person during the turn.
    // SHOW-01
    Shown(&'a ExtensionShown),
}
