//! Events: subscriptions and emissions on the event bus of an instance, notes to the person, delegations and
//! requests for reloads.

use std::fmt;
use std::sync::{Arc, Weak};

use super::ExtensionHost;
use crate::BoxFuture;
use crate::error::{Error, Result};
use crate::event::{AgentDelegate, AgentReload, AgentReloadAnswer, Deliveries, Event, EventArgs, EventHandler};
use crate::log::Logger;
use crate::shown::Shown;

/// The event bus of one conversation. Returned by [`ExtensionApi::events`](crate::ExtensionApi::events).
///
/// Extensions exchange events on it, and the runtime reports there its own work: turns, steps, tool calls. `#[on]`
/// subscribes a function for the life of the extension; this handle emits, and subscribes at run time. Three members
/// act besides: [`show`](EventsApi::show) shows something to the person, [`delegate`](EventsApi::delegate) starts a
/// turn, and [`reload`](EventsApi::reload) requests a reload.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct Cards;
/// # #[goondan::extension(name = "cards")]
/// # impl Cards {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// /// Reports every finished turn to other extensions.
/// #[on("turn.completed")]
/// async fn report(&self, event: &Event, api: &ExtensionApi) -> Result<()> {
///     api.events().emit("cards.turn", (event.args()[0].clone(),));
///     Ok(())
/// }
/// # }
/// ```
// EVENT-02, EVENT-06, EVENT-07
pub struct EventsApi<'a> {
    host: &'a Arc<dyn ExtensionHost>,
}

impl<'a> EventsApi<'a> {
    pub(super) fn new(host: &'a Arc<dyn ExtensionHost>) -> Self {
        Self { host }
    }

    /// Calls `handler` for every event that matches `pattern`, a name or a glob such as `workspace.*`.
    ///
    /// Handlers run beside the turn: neither the next step nor a tool call waits for them, nor does another handler.
    /// The commit at the end of the turn does, for at most 5 seconds, so that state which they set is stored with the
    /// turn.
    ///
    /// The subscription ends when the returned [`Subscription`] is cancelled or dropped; [`Subscription::detach`]
    /// extends it to the life of the extension.
    ///
    /// # Errors
    /// `E_EVENT_NAME` when `pattern` is not a legal name or glob.
    // EVENT-01, EVENT-03
    pub fn on(&self, pattern: &str, handler: impl EventHandler) -> Result<Subscription> {
        self.subscribe(pattern, Deliveries::All, handler)
    }

    /// Calls `handler` once, for the next event that matches `pattern`.
    ///
    /// # Errors
    /// `E_EVENT_NAME` when `pattern` is not a legal name or glob.
    // LEGACY-EVENTS-02
    pub fn once(&self, pattern: &str, handler: impl EventHandler) -> Result<Subscription> {
        self.subscribe(pattern, Deliveries::One, handler)
    }

    fn subscribe(&self, pattern: &str, limit: Deliveries, handler: impl EventHandler) -> Result<Subscription> {
        let number = self.host.subscribe(pattern.parse()?, limit, Arc::new(handler));
        Ok(Subscription { host: Some(Arc::downgrade(self.host)), number })
    }

    /// Sends an event with the arguments `args`, a tuple, to every subscription that matches `name`. If an argument
    /// cannot be written as JSON, or the name is illegal, the event is not sent, and an error is logged.
    ///
    /// Handlers may emit too. After 64 events that led to one another, the next one is not sent, and `E_EVENT_LOOP` is
    /// logged: a handler that emits the event that it handles would not end.
    // EVENT-05
    pub fn emit(&self, name: &str, args: impl EventArgs) {
        match Event::new(name, args) {
            Ok(event) => self.host.emit(event),
            Err(error) => self.report(name, &error),
        }
    }

    /// Shows something to the person, apart from messages: the model does not read it, and nothing stores it. It is
    /// told to whoever watches the turn, also from a task of the extension between turns, and published as the event
    /// `extension.shown`. Emitting the event by its name shows nothing.
    ///
    /// Secrets are masked, control characters replaced, and long texts shortened. Of one conversation, 16 are told at
    /// once and 64 in the 50 ms after them, in their order; of those that wait with one id, only the newest. How many
    /// were left out is told as a note.
    ///
    /// ```
    /// use goondan::event::{ItemState, Shown, ShownItem};
    /// use goondan::prelude::*;
    ///
    /// # struct Indexer;
    /// # #[goondan::extension(name = "indexer")]
    /// # impl Indexer {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Reads all files again.
    /// #[tool(name = "indexer__refresh", effect = idempotent)]
    /// async fn refresh(&self, api: &ExtensionApi) -> Result<String> {
    ///     let files = ["a.md", "b.md"];
    ///     for done in 0..=files.len() {
    ///         // Here a file is read.
    ///         let state = |at| if at < done { ItemState::Done } else { ItemState::Open };
    ///         let items = files.iter().enumerate().map(|(at, file)| ShownItem::new(state(at), *file));
    ///         api.events().show(Shown::list("Index", items));
    ///     }
    ///     Ok("2 files".to_owned())
    /// }
    /// # }
    /// ```
    // D-41, SHOW-01
    pub fn show(&self, shown: Shown) {
        self.host.show(shown);
    }

    /// Starts a turn of an agent, also from a task of the extension, and publishes the event `agent.delegate`. When the
    /// turn has ended, or could not be started, the event `agent.delegationResult` has its result and the id of the
    /// delegation. Metadata that is nested too deeply starts nothing: an error is logged.
    ///
    /// After 32 delegations that led to one another, the next is refused. A task that delegates while no turn runs
    /// starts a new chain, as a timer does: one that answers each result by another delegation has to count them.
    ///
    /// ```
    /// use goondan::event::AgentDelegate;
    /// use goondan::name::AgentName;
    /// use goondan::prelude::*;
    ///
    /// /// Lets the model continue in a turn of its own.
    /// async fn remind(api: &ExtensionApi, agent: AgentName) {
    ///     api.events().delegate(AgentDelegate::new(agent, "Is anything left to do?"));
    /// }
    /// ```
    // D-41, LEGACY-EVENTS-04, WAKE-01
    pub fn delegate(&self, delegation: AgentDelegate) {
        match delegation.checked() {
            Ok(delegation) => self.host.delegate(delegation),
            Err(error) => self.report(AgentDelegate::NAME, &error),
        }
    }

    /// Requests a reload of the agent, because its files have changed, and publishes the event `agent.reload`. The
    /// request is sent before this returns; the future is the answer, which the event `agent.reloadAnswer` has too. So
    /// a tool can tell the model when the change takes effect. It cannot await the reload itself, which may wait for
    /// the end of its own step.
    ///
    /// Every request is answered: a program that does not reload its agents refuses it, with
    /// [`ReloadEffect::None`](crate::ReloadEffect::None) and the reason. `Agent::reload_requests` is its side.
    ///
    /// ```
    /// use goondan::event::{AgentReload, AgentReloadAnswer};
    /// use goondan::prelude::*;
    ///
    /// # struct Learner;
    /// # #[goondan::extension(name = "learner")]
    /// # impl Learner {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Writes a lesson into the instructions.
    /// #[tool(name = "learner__learn", effect = once)]
    /// async fn learn(&self, input: Lesson, api: &ExtensionApi) -> Result<AgentReloadAnswer> {
    ///     // Here the lesson is written to a file of the bundle.
    ///     Ok(api.events().reload(AgentReload::new(input.lesson)).await)
    /// }
    /// # }
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Lesson {
    ///     lesson: String,
    /// }
    /// ```
    // D-41, LEGACY-CHANGESET-04
    pub fn reload(&self, request: AgentReload) -> BoxFuture<'static, AgentReloadAnswer> {
        self.host.reload(request)
    }

    fn report(&self, name: &str, error: &Error) {
        Logger::new(&**self.host).with("event", name).error(format!("the event was not emitted: {error}"));
    }
}

impl fmt::Debug for EventsApi<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventsApi({})", self.host.extension())
    }
}

/// A subscription to events. Dropping it ends the subscription; [`Subscription::detach`] keeps it.
#[must_use = "the subscription ends when this is dropped; keep it, or call `detach`"]
pub struct Subscription {
    /// Weak, so that an extension that stores its subscriptions does not keep itself alive. `None` once detached.
    host: Option<Weak<dyn ExtensionHost>>,
    number: u64,
}

impl Subscription {
    /// Ends the subscription: events that are emitted later are not delivered.
    // EVENT-01
    pub fn cancel(self) {}

    /// Keeps the subscription for the life of the extension.
    pub fn detach(mut self) {
        self.host = None;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(host) = self.host.as_ref().and_then(Weak::upgrade) {
            host.unsubscribe(self.number);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscription({})", self.number)
    }
}
