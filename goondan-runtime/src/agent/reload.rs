//! The reload of an agent: its open conversations continue with another model, other extensions or another policy.

use std::fmt;
use std::sync::Arc;

use goondan_core::{Error, ErrorCode, ExtensionName, InstanceKey, Result};

use super::Agent;
use crate::instance::InstanceSlot;
use crate::join::join;
use crate::spec::{AgentSpec, ExtensionSpec};

/// The changes of a reload. Returned by [`Agent::reload`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Reloaded {
    /// The extensions that changed. Empty if only the models, the policy or the order did.
    pub changes: Vec<ExtensionChange>,
    /// The conversations whose new extensions could not be initialized, and the errors. They continue unchanged.
    pub refused: Vec<(InstanceKey, Error)>,
}

/// The change of one extension in a reload. Its `Display` is a few words, such as `message-window 0.1.0 → 0.1.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtensionChange {
    /// The name of the extension in the agent.
    pub extension: ExtensionName,
    /// The change.
    pub change: Change,
}

/// The kind of change of an extension in a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The agent did not have it before.
    Added {
        /// Its version.
        version: &'static str,
    },
    /// The agent does not have it any more. It was cleaned up.
    Removed {
        /// Its version.
        version: &'static str,
    },
    /// Its code was replaced.
    Replaced {
        /// The old version.
        from: &'static str,
        /// The new version, possibly the same.
        to: &'static str,
    },
    /// It was made again with another config. Its code is the same.
    Configured {
        /// Its version.
        version: &'static str,
    },
}

/// Where the running turns of an agent take over the reloaded agent.
#[derive(Clone, Copy)]
enum Boundary {
    Turn,
    Step,
}

impl Agent {
    /// Replaces the model, the instructions, the extensions and the policy of this agent by those of `to`. Open
    /// conversations are reloaded between two turns: turns that were queued earlier run with the old ones, later turns
    /// with the new ones.
    ///
    /// Extensions are compared by name, whatever their order. One whose code and config are the same is kept, with
    /// everything that it holds. One that `to` does not have receives `extension.cleanup` and is cleaned up. One that
    /// changed is made again with its stored state, and becomes active before the old one is cleaned up: changes of the
    /// old one to its state are lost from then on. Code is the same if the
    /// [descriptor](goondan_core::ExtensionDescriptor) is the same static.
    ///
    /// `to` must have the same name; its store is not used. A turn that awaits a reload of its own agent deadlocks.
    ///
    /// ```
    /// use goondan::Agent;
    /// use goondan::model::{ScriptItem, ScriptedModel};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let saying = |text| Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say(text)])).build();
    /// let agent = saying("hi")?;
    /// let instance = agent.instance("user:42").await?;
    /// assert_eq!(instance.run("hello").await?.text(), "hi");
    /// agent.reload(&saying("welcome back")?).await?;
    /// assert_eq!(instance.run("hello").await?.text(), "welcome back");
    /// # Ok::<(), goondan::Error>(())
    /// # })?;
    /// # Ok::<(), goondan::Error>(())
    /// ```
    ///
    /// # Errors
    /// `E_CONFIG_SCHEMA_INVALID` when `to` has another name. `E_EXT_INIT` and `E_EXT_ORDER` when initializing the new
    /// extensions fails in every open conversation: then nothing is changed. See [`Reloaded::refused`] if it succeeds
    /// in some.
    // LEGACY-RECONCILE
    pub async fn reload(&self, to: &Self) -> Result<Reloaded> {
        self.reload_at(Boundary::Turn, to).await
    }

    /// As [`Agent::reload`], but a turn that runs continues with its next step on the agent `to`: its model,
    /// instructions and tools, and the layers of its steps and tool calls. Two things stay as they were when the turn
    /// began: the limits of the turn, and the layers around it. If an extension with a layer around turns changes or is
    /// removed, the reload takes place after the turn.
    ///
    /// A step that awaits such a reload of its own agent deadlocks, as does a tool call in it: an extension requests
    /// one by [`EventsApi::reload`](goondan_core::EventsApi::reload), and [`Agent::reload_requests`] notifies the
    /// program.
    ///
    /// ```
    /// use goondan::{Agent, Result};
    ///
    /// /// Called while conversations go on.
    /// async fn changed(agent: &Agent, described: &Agent) -> Result<()> {
    ///     for change in agent.reload_at_next_step(described).await?.changes {
    ///         println!("{change}");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Agent::reload`]. A turn whose agent cannot be reloaded continues unchanged.
    // LEGACY-CHANGESET-04
    pub async fn reload_at_next_step(&self, to: &Self) -> Result<Reloaded> {
        self.reload_at(Boundary::Step, to).await
    }

    async fn reload_at(&self, boundary: Boundary, to: &Self) -> Result<Reloaded> {
        let to = self.spec_of(to)?;
        let _reloading = self.inner.reloading.lock().await;
        let slots = self.inner.slots();
        let reload = async |slot: &Arc<InstanceSlot>| match boundary {
            Boundary::Turn => slot.reload(&to).await,
            Boundary::Step => slot.reload_at_step(&to).await,
        };
        // At once, because a turn of one conversation may wait for a turn of another.
        let outcomes = join(slots.iter().map(reload).collect()).await;
        let accepted = outcomes.iter().any(|outcome| matches!(outcome, Ok(true)));
        let mut refused = Vec::new();
        for (slot, outcome) in slots.iter().zip(outcomes) {
            match outcome {
                Ok(_) => {}
                Err(error) if !accepted => return Err(error),
                Err(error) => refused.push((slot.id.key.clone(), error)),
            }
        }
        let from = self.inner.replace_spec(Arc::clone(&to));
        for slot in self.inner.slots() {
            let key = &slot.id.key;
            if !slot.is_open() {
                // It may be opening with the old spec: the lock is held until it is open.
                drop(slot.lock().await);
            }
            // Conversations that were opened during the reload.
            if slot.runs_other_than(&to)
                && refused.iter().all(|(refused, _)| refused != key)
                && let Err(error) = slot.reload(&to).await
            {
                refused.push((key.clone(), error));
            }
        }
        Ok(Reloaded { changes: changes(&from.extensions, &to.extensions), refused })
    }

    fn spec_of(&self, to: &Self) -> Result<Arc<AgentSpec>> {
        let (old, new) = (self.name(), to.name());
        if old == new {
            return Ok(to.inner.spec());
        }
        let message = format!("the agent `{old}` cannot become the agent `{new}`");
        Err(Error::new(ErrorCode::CONFIG_SCHEMA, message).suggest(format!("describe it as `{old}`")))
    }
}

/// Returns the changes: those of `to` in its order, and then the removed ones.
fn changes(from: &[Arc<ExtensionSpec>], to: &[Arc<ExtensionSpec>]) -> Vec<ExtensionChange> {
    let find =
        |specs: &[Arc<ExtensionSpec>], name: &ExtensionName| specs.iter().find(|spec| spec.name == *name).cloned();
    let added_or_changed = to.iter().filter_map(|new| {
        let version = new.descriptor.version;
        let change = match find(from, &new.name) {
            None => Change::Added { version },
            Some(old) if old == *new => return None,
            Some(old) if std::ptr::eq(old.descriptor, new.descriptor) => Change::Configured { version },
            Some(old) => Change::Replaced { from: old.descriptor.version, to: version },
        };
        Some(ExtensionChange { extension: new.name.clone(), change })
    });
    let removed = from.iter().filter(|old| find(to, &old.name).is_none()).map(|old| ExtensionChange {
        extension: old.name.clone(),
        change: Change::Removed { version: old.descriptor.version },
    });
    added_or_changed.chain(removed).collect()
}

impl fmt::Display for ExtensionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extension = &self.extension;
        match self.change {
            Change::Added { version } => write!(f, "{extension} {version} is new"),
            Change::Removed { version } => write!(f, "{extension} {version} is gone"),
            Change::Replaced { from, to } => write!(f, "{extension} {from} → {to}"),
            Change::Configured { version } => write!(f, "{extension} {version} has another config"),
        }
    }
}
