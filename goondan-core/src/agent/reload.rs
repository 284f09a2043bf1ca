//! Owns the reload of an agent: its open conversations go on with what it is made of now.

use std::fmt;
use std::sync::Arc;

use super::Agent;
use super::spec::{AgentSpec, ExtensionSpec};
use crate::error::{Error, ErrorCode, Result};
use crate::name::{ExtensionName, InstanceKey};

/// What a reload did; see [`Agent::reload`].
#[derive(Debug)]
pub struct Reloaded {
    /// The extensions that are not what they were. None when only the models, the policy, or the order changed.
    pub changes: Vec<ExtensionChange>,
    /// The conversations whose new extensions could not be initialized, and why. They go on with what they had.
    pub refused: Vec<(InstanceKey, Error)>,
}

/// What a reload did to one extension. As text it is a few words, such as `message-window 0.1.0 → 0.1.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionChange {
    /// The extension, as the agent calls it.
    pub extension: ExtensionName,
    /// What became of it.
    pub change: Change,
}

/// What became of an extension in a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It was not there before.
    Added {
        /// Its version.
        version: &'static str,
    },
    /// It is there no more, and has cleaned up.
    Removed {
        /// Its version.
        version: &'static str,
    },
    /// Other code stands in its place.
    Replaced {
        /// The version that went away.
        from: &'static str,
        /// The version that came; perhaps the same.
        to: &'static str,
    },
    /// It was made again, of the same code with another config.
    Configured {
        /// Its version.
        version: &'static str,
    },
}

impl Agent {
    /// Makes this agent what `to` is: the model, the instructions, the extensions, the policy. Its open conversations go on
    /// between two turns: turns that were asked for earlier end on what they have, later ones begin with the new.
    ///
    /// Extensions are compared by name, whatever their places (LEGACY-RECONCILE). One whose code and config are the same
    /// stays what it is, with all that it holds. One that is gone is told by `extension.cleanup` and cleans up. One that
    /// changed is made from what is stored of its state, and takes effect before the old one cleans up: what that does with
    /// its state then is lost. Code is the same when the [descriptor](crate::ExtensionDescriptor) is the same static.
    ///
    /// The name must be the same; the store of `to` is not used. A turn that awaits the reload of its own agent waits for
    /// itself.
    ///
    /// ```
    /// use goondan_core::{Agent, ScriptItem, ScriptedModel};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let saying = |text| Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say(text)])).build();
    /// let agent = saying("hi").await?;
    /// let instance = agent.instance("user:42").await?;
    /// assert_eq!(instance.run("hello").await?.text(), "hi");
    /// agent.reload(&saying("welcome back").await?).await?;
    /// assert_eq!(instance.run("hello").await?.text(), "welcome back");
    /// # Ok::<(), goondan_core::Error>(())
    /// # })?;
    /// # Ok::<(), goondan_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `E_CONFIG_SCHEMA_INVALID` when `to` is another agent. `E_EXT_INIT` and `E_EXT_ORDER` when the new extensions do not come to be
    /// in the first conversation: then everything goes on as it was. See [`Reloaded::refused`] for the other ones.
    pub async fn reload(&self, to: &Self) -> Result<Reloaded> {
        let to = self.spec_of(to)?;
        let _alone = self.inner.reloading.lock().await;
        let mut refused = Vec::new();
        let mut accepted = false;
        for slot in self.inner.slots() {
            match slot.reload(&to).await {
                Ok(open) => accepted |= open,
                Err(error) if !accepted => return Err(error),
                Err(error) => refused.push((slot.id.key.clone(), error)),
            }
        }
        let from = self.inner.replace_spec(Arc::clone(&to));
        for slot in self.inner.slots() {
            let key = &slot.id.key;
            if !slot.is_open() {
                // It may be opening with the old spec.
                drop(slot.lock().await);
            }
            // Conversations that were opened meanwhile.
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

/// What is different, in the order of the new ones.
fn changes(from: &[Arc<ExtensionSpec>], to: &[Arc<ExtensionSpec>]) -> Vec<ExtensionChange> {
    let find =
        |specs: &[Arc<ExtensionSpec>], name: &ExtensionName| specs.iter().find(|spec| spec.name == *name).cloned();
    let come = to.iter().filter_map(|new| {
        let version = new.descriptor.version;
        let change = match find(from, &new.name) {
            None => Change::Added { version },
            Some(old) if old == *new => return None,
            Some(old) if std::ptr::eq(old.descriptor, new.descriptor) => Change::Configured { version },
            Some(old) => Change::Replaced { from: old.descriptor.version, to: version },
        };
        Some(ExtensionChange { extension: new.name.clone(), change })
    });
    let gone = from.iter().filter(|old| find(to, &old.name).is_none()).map(|old| ExtensionChange {
        extension: old.name.clone(),
        change: Change::Removed { version: old.descriptor.version },
    });
    come.chain(gone).collect()
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
