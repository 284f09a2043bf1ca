//! The builder of chats: the extensions under test, the model, and the rest of the agent.

use std::fmt;

use goondan_core::{Extension, Result};
use serde_json::Value;

use super::chat::Chat;
use super::log::LogCapture;
use super::model::{RecordedModel, Recording};
use super::probe::{Probe, ProbeHandle};
use crate::agent::{Agent, AgentBuilder};
use crate::memory_store::MemoryStore;
use crate::models::{ScriptItem, ScriptedModel};
use crate::ports::model::Model;

/// Describes a [`Chat`]; returned by [`Chat::with`] and [`Chat::builder`].
///
/// By default, the model answers `ok` to everything, and the conversation is stored in memory, beside
/// temporary directories for the files of extensions.
#[must_use = "the conversation begins with `start`"]
pub struct ChatBuilder {
    agent: AgentBuilder,
    model: Box<dyn Model>,
    probe: ProbeHandle,
}

// Here, because the chat knows nothing of its builder.
impl Chat {
    /// Returns a builder for a chat with the extension `E`.
    pub fn with<E: Extension>(config: Value) -> ChatBuilder {
        Self::builder().with::<E>(config)
    }

    /// Returns a builder for a chat without extensions.
    pub fn builder() -> ChatBuilder {
        ChatBuilder::new()
    }
}

impl ChatBuilder {
    fn new() -> Self {
        let probe = ProbeHandle::new();
        // Before all other extensions, so that it records their events of `#[init]`.
        let agent = Agent::builder("assistant").store(MemoryStore::new().with_directories());
        let agent = agent.extension::<Probe>(probe.config());
        let model = Box::new(ScriptedModel::new([ScriptItem::say("ok").repeat()]));
        Self { agent, model, probe }
    }

    /// Adds the extension `E`, after those that were added before.
    pub fn with<E: Extension>(self, config: Value) -> Self {
        self.agent(|agent| agent.extension::<E>(config))
    }

    /// Sets the answers of the model, over all turns: see [`ScriptedModel`].
    ///
    /// ```
    /// use goondan::testing::Chat;
    /// use goondan::json;
    /// use goondan::model::ScriptItem;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> goondan::Result<()> {
    /// let script = [ScriptItem::call("no__tool", json!({ "a": 1 })), ScriptItem::say("there is none")];
    /// let chat = Chat::builder().script(script).start().await?;
    /// assert_eq!(chat.say("use a tool").await?.steps(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn script(self, script: impl IntoIterator<Item = ScriptItem>) -> Self {
        self.model(ScriptedModel::new(script))
    }

    /// Sets the model instead of a scripted one. Its requests are recorded too.
    ///
    /// ```
    /// use goondan::testing::Chat;
    /// use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
    /// use goondan::{BoxFuture, Error, Result};
    ///
    /// struct Busy;
    ///
    /// impl Model for Busy {
    ///     fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
    ///         Box::pin(async { Err(Error::new("E_BUSY", "come back later").retryable(true)) })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let chat = Chat::builder().model(Busy).start().await?;
    /// assert_eq!(chat.say("hello").await.unwrap_err().code(), "E_BUSY");
    /// # Ok(())
    /// # }
    /// ```
    pub fn model(self, model: impl Model) -> Self {
        Self { model: Box::new(model), ..self }
    }

    /// Changes anything else of the agent: instructions, policy, store, router, further models.
    ///
    /// ```
    /// use goondan::testing::Chat;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> goondan::Result<()> {
    /// let chat = Chat::builder().agent(|agent| agent.system("be brief").hint("mode", "test")).start().await?;
    /// chat.say("hello").await?;
    /// assert_eq!(chat.last_request().system.as_deref(), Some("be brief"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn agent(self, change: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Self {
        Self { agent: change(self.agent), ..self }
    }

    /// Builds the agent and opens the conversation, which registers every extension.
    ///
    /// # Errors
    /// As [`AgentBuilder::build`] and [`Agent::instance`]: a config that does not fit, an `#[init]` that fails.
    pub async fn start(self) -> Result<Chat> {
        let log = LogCapture::start();
        let recording = Recording::of(self.model);
        let agent = self.agent.model(RecordedModel::new(&recording)).build()?;
        let instance = agent.instance(Chat::KEY).await?;
        Ok(Chat { agent, instance, recording, probe: self.probe, log })
    }
}

impl fmt::Debug for ChatBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChatBuilder")
    }
}
