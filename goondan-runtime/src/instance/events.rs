//! The program's end of the event bus of a conversation.

use std::fmt;
use std::time::Duration;

use goondan_core::{AgentDelegate, Event, EventArgs, Result};

use super::Instance;
use crate::bus::EventStream;

/// The event bus of one conversation, for the embedding program. Returned by [`Instance::events`].
///
/// Extensions reach the same bus through [`ExtensionApi::events`](goondan_core::ExtensionApi::events). So a program
/// answers an extension that waits for it, while the turn runs:
///
/// ```
/// use goondan::prelude::*;
/// use goondan::agent::TurnUpdate;
/// use goondan::model::{ScriptItem, ScriptedModel};
/// use goondan::{Agent, json};
/// use tokio::sync::Notify;
///
/// /// Begins no turn before the program says so.
/// struct Barrier {
///     raised: Notify,
/// }
///
/// #[goondan::extension(name = "barrier")]
/// impl Barrier {
///     #[init]
///     fn new() -> Self {
///         Self { raised: Notify::new() }
///     }
///
///     #[middleware(turn)]
///     async fn wait(
///         &self,
///         ctx: &mut TurnContext<'_>,
///         next: Next<'_, Turn>,
///         api: &ExtensionApi,
///     ) -> Result<TurnResult> {
///         api.events().emit("barrier.closed", ());
///         self.raised.notified().await;
///         next.run(ctx).await
///     }
///
///     #[on("barrier.raise")]
///     async fn raise(&self) -> Result<()> {
///         self.raised.notify_one();
///         Ok(())
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let model = ScriptedModel::new([ScriptItem::say("hi")]);
/// let agent = Agent::builder("assistant").model(model).extension::<Barrier>(json!({})).build()?;
/// let instance = agent.instance("user:42").await?;
/// let mut turn = instance.run_stream("hello").with_events(instance.events().subscribe("barrier.closed")?);
/// while let Some(update) = turn.next().await {
///     if let TurnUpdate::Emitted(_) = update {
///         instance.events().emit("barrier.raise", ()).await?;
///     }
/// }
/// assert_eq!(turn.finish().await?.text(), "hi");
/// # Ok::<(), goondan::Error>(())
/// # })?;
/// # Ok::<(), goondan::Error>(())
/// ```
pub struct InstanceEvents<'a> {
    instance: &'a Instance,
}

impl Instance {
    /// Returns the event bus of the conversation.
    pub fn events(&self) -> InstanceEvents<'_> {
        InstanceEvents { instance: self }
    }
}

impl InstanceEvents<'_> {
    /// Sends an event with the arguments `args`, a tuple, to every subscription that matches `name`: those of
    /// extensions and of the program. It waits neither for a turn that runs nor for the handlers. A conversation that
    /// is idle is opened.
    ///
    /// # Errors
    /// `E_EVENT_NAME`, `E_EXT_RUNTIME` and `E_VALUE_DEPTH` when the event is not legal, as [`Event::new`]; otherwise as
    /// [`Instance::messages`].
    pub async fn emit(&self, name: &str, args: impl EventArgs) -> Result<()> {
        let event = Event::new(name, args)?;
        self.instance.view().await?.services.emit(None, event);
        Ok(())
    }

    /// Starts a turn of an agent, as [`EventsApi::delegate`](goondan_core::EventsApi::delegate) does for an extension,
    /// and publishes the event `agent.delegate`. When the turn has ended, or could not be started, the event
    /// `agent.delegationResult` has its result and the id of the delegation.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH` when the metadata is nested too deeply; otherwise as [`Instance::messages`].
    // D-41, LEGACY-EVENTS-04
    pub async fn delegate(&self, delegation: AgentDelegate) -> Result<()> {
        let delegation = delegation.checked()?;
        self.instance.view().await?.services.delegate(None, delegation);
        Ok(())
    }

    /// Waits until all events that were emitted are handled, those that handlers emit included, but not longer than
    /// `limit`. Returns whether they are. So a program can ask all extensions something, and knows when it has the
    /// answers.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    pub async fn settle(&self, limit: Duration) -> Result<bool> {
        let bus = self.instance.view().await?.services.bus.clone();
        Ok(bus.drain(limit).await == 0)
    }

    /// Returns the events that match `pattern`, a name or a glob such as `workspace.*`, after this call: those of
    /// extensions, of the runtime and of the program. The subscription lasts until the stream is dropped or the
    /// instance is closed, also while the conversation is idle.
    ///
    /// # Errors
    /// `E_EVENT_NAME` when `pattern` is not a legal name or glob.
    pub fn subscribe(&self, pattern: &str) -> Result<EventStream> {
        let inner = &self.instance.inner;
        let open = inner.slot.view().map(|view| view.services.bus.clone());
        Ok(inner.listeners.subscribe(pattern.parse()?, open))
    }
}

impl fmt::Debug for InstanceEvents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceEvents({})", self.instance.inner.slot.id)
    }
}
