//! The service: its agents, who may use them, and its end.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use goondan_core::{AgentEvent, AgentName, Error, ErrorCode, InstanceKey, Message};
use goondan_runtime::Queue;
use goondan_runtime::store::{
    EndedTurn, EventDigest, InstanceId, InstanceQuery, InstanceStatus, Store, StoredInstance,
};
use tokio::time::timeout;

use crate::agents::{Agents, Held};
use crate::children::WithChildren;
use crate::feed::{Background, Feed};
use crate::log::{End, Log};
use crate::problem::{Problem, Result};
use crate::questions::Questions;
use crate::tokens::Tokens;
use crate::turns::{Limits, Start, TurnId, Turns};

/// The time for which the beginning of a turn is waited for, to say by the status that it was refused.
const BEGINS: Duration = Duration::from_secs(1);

/// Serves agents over HTTP. Clones are the same service.
///
/// ```
/// use goondan::Agent;
/// use goondan::model::{ScriptItem, ScriptedModel};
/// use goondan_serve::{Service, listen};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi")])).build()?;
/// let service = Service::new(agent);
/// let app: axum::Router = service.router();
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7717").await?;
/// // `curl -N -d '{"input": "hello"}' http://127.0.0.1:7717/v1/agents/assistant/instances/ada/turns`
/// listen(listener, app, std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
///
/// Without [`tokens`](Self::tokens) it answers requests for `localhost` alone: listen on no other address then.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    agents: Box<dyn Agents>,
    /// Those that are served; `None` for all.
    only: Option<Vec<AgentName>>,
    store: Option<Arc<dyn Store>>,
    queue: Option<Arc<dyn Queue>>,
    turns: Arc<Turns>,
    tokens: Option<Tokens>,
    origins: Vec<String>,
    limits: Limits,
    cancels_on_disconnect: bool,
    has_page: bool,
    draining: AtomicBool,
    /// Followed since the first turn.
    questions: OnceLock<Questions>,
    /// Followed since a conversation was watched.
    background: OnceLock<Background>,
}

impl Service {
    /// Returns a service of these agents.
    pub fn new(agents: impl Agents) -> Self {
        let inner = Inner {
            agents: Box::new(agents),
            only: None,
            store: None,
            queue: None,
            turns: Arc::default(),
            tokens: None,
            origins: Vec::new(),
            limits: Limits::default(),
            cancels_on_disconnect: false,
            has_page: false,
            draining: AtomicBool::new(false),
            questions: OnceLock::new(),
            background: OnceLock::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Serves these agents alone. The others can be asked by them.
    #[must_use]
    pub fn only(self, agents: impl IntoIterator<Item = AgentName>) -> Self {
        self.with(|inner| inner.only = Some(agents.into_iter().collect()))
    }

    /// Sets the store of the agents. Then outcomes of turns are known after their logs are gone, conversations are
    /// listed, and [`resume`](Self::resume) goes on with the turns that an earlier process left.
    #[must_use]
    pub fn store(self, store: Arc<dyn Store>) -> Self {
        self.with(|inner| inner.store = Some(store))
    }

    /// Sets a queue: a turn may be accepted then before it begins, and [`work`](Self::work) runs it.
    ///
    /// ```
    /// # use goondan::Agent;
    /// # use goondan::model::{ScriptItem, ScriptedModel};
    /// use std::sync::Arc;
    ///
    /// use goondan::store::FileStore;
    /// use goondan_serve::Service;
    ///
    /// # async fn example(service: Service) -> Result<(), goondan::Error> {
    /// let store = FileStore::in_workspace("/var/lib/agents".as_ref(), "main")?;
    /// # let agent = Agent::builder("assistant").model(ScriptedModel::new([])).store(store.clone()).build()?;
    /// let service = Service::new(agent).queue(Arc::new(store.queue()?)).store(Arc::new(store));
    /// tokio::spawn({
    ///     let service = service.clone();
    ///     async move { service.work().await }
    /// });
    /// # Ok(())
    /// # }
    /// ```
    // ONCE-01
    #[must_use]
    pub fn queue(self, queue: Arc<dyn Queue>) -> Self {
        self.with(|inner| inner.queue = Some(queue))
    }

    /// Lets only principals with one of these tokens in.
    // SERVE-03
    #[must_use]
    pub fn tokens(self, tokens: Tokens) -> Self {
        self.with(|inner| inner.tokens = Some(tokens))
    }

    /// Lets pages of this origin, such as `https://app.example`, send requests.
    #[must_use]
    pub fn allow_origin(self, origin: impl Into<String>) -> Self {
        self.with(|inner| inner.origins.push(origin.into()))
    }

    /// Sets how much is served at once.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        self.with(|inner| inner.limits = limits)
    }

    /// Sets whether a turn is cancelled when the page of AI SDK UI goes away that asked for it: `stop()` of a page ends
    /// its turn then, and so does a reload.
    #[must_use]
    pub fn cancel_on_disconnect(self, cancels: bool) -> Self {
        self.with(|inner| inner.cancels_on_disconnect = cancels)
    }

    /// Sets whether there is a page at `/` for trying the agents out.
    #[must_use]
    pub fn page(self, has_page: bool) -> Self {
        self.with(|inner| inner.has_page = has_page)
    }

    /// Changes a service that is not in use yet.
    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        match Arc::get_mut(&mut self.inner) {
            Some(inner) => change(inner),
            None => tracing::warn!("a service is not changed any more once it has a router"),
        }
        self
    }

    /// Goes on with the turns that an earlier process left open. Returns how many.
    ///
    /// # Errors
    /// When the conversations cannot be listed, or one of them cannot be opened.
    // SERVE-01
    pub async fn resume(&self) -> goondan_core::Result<usize> {
        let Some(store) = &self.inner.store else { return Ok(0) };
        let page = store.list(&InstanceQuery::new().status(InstanceStatus::Interrupted)).await?;
        let mut resumed = 0;
        for stored in page.instances {
            let (agent, key) = (stored.id.agent, stored.id.key);
            if !self.agents().names().contains(&agent) {
                continue;
            }
            let held = self.agents().open(agent.as_str(), &key).await?;
            let Some(event) = held.interrupted().await? else { continue };
            let principal = event.auth.as_ref().and_then(|auth| auth.principal.as_ref()).map(|of| of.id.clone());
            let id = TurnId { agent, key, event: event.id.clone() };
            // Masked texts of the recorded event are not in its digest.
            let digest = held.interrupted_digest().await?;
            let start = Start { digest, principal, stream: held.run_stream(event), held };
            self.questions();
            // They were accepted before, so that no limit holds them up.
            let limits = Limits { turns: usize::MAX, per_principal: usize::MAX, ..self.inner.limits };
            match self.inner.turns.begin(&id, start, false, limits) {
                Ok(_) => resumed += 1,
                Err(problem) => tracing::warn!("an interrupted turn waits: {problem:?}"),
            }
        }
        Ok(resumed)
    }

    /// Accepts no turns any more, waits up to `grace` for those that run, and leaves the others open: the next process
    /// that runs their events goes on with them. Returns whether all have ended.
    // SERVE-01
    pub async fn drain(&self, grace: Duration) -> bool {
        self.inner.draining.store(true, Ordering::SeqCst);
        let ended = timeout(grace, self.inner.turns.ended()).await.is_ok();
        self.inner.turns.hand_over();
        ended
    }

    /// Returns how many turns run or are queued.
    pub fn running(&self) -> usize {
        self.inner.turns.count()
    }

    pub(crate) fn agents(&self) -> &dyn Agents {
        &*self.inner.agents
    }

    pub(crate) fn stored(&self) -> Option<&Arc<dyn Store>> {
        self.inner.store.as_ref()
    }

    pub(crate) fn queue_of(&self) -> Option<&Arc<dyn Queue>> {
        self.inner.queue.as_ref()
    }

    /// Returns the updates of all turns of a conversation after this call.
    pub(crate) fn feed(&self, instance: InstanceId) -> Feed {
        let inner = &self.inner;
        inner.background.get_or_init(|| Background::follow(inner.agents.background(), Arc::clone(&inner.turns.feeds)));
        inner.turns.feeds.watch(instance)
    }

    pub(crate) fn turns(&self) -> &Arc<Turns> {
        &self.inner.turns
    }

    pub(crate) fn cancels_on_disconnect(&self) -> bool {
        self.inner.cancels_on_disconnect
    }

    pub(crate) fn has_page(&self) -> bool {
        self.inner.has_page
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::SeqCst)
    }

    pub(crate) fn limits_of(&self) -> Limits {
        self.inner.limits
    }

    pub(crate) fn allows_origin(&self, origin: &str) -> bool {
        self.inner.origins.iter().any(|allowed| allowed == origin)
    }

    pub(crate) fn tokens_of(&self) -> Option<&Tokens> {
        self.inner.tokens.as_ref()
    }

    /// Returns the names of the agents that are served.
    pub(crate) fn names(&self) -> Vec<AgentName> {
        let mut names = self.inner.agents.names();
        if let Some(only) = &self.inner.only {
            names.retain(|name| only.contains(name));
        }
        names
    }

    /// Returns the live questions of the turns.
    // ASK-04
    pub(crate) fn questions(&self) -> &Questions {
        let inner = &self.inner;
        inner.questions.get_or_init(|| {
            Questions::follow(inner.agents.questions(), Arc::clone(&inner.turns), inner.limits.log_bytes)
        })
    }

    /// Begins a turn, or returns the log of it.
    ///
    /// # Errors
    /// 503 when the service is ending, and as [`Turns::begin`].
    pub(crate) fn begin(&self, id: &TurnId, start: Start, again: bool) -> Result<Arc<Log>> {
        if self.is_draining() && (again || self.inner.turns.log(id).is_none()) {
            return Err(Problem::draining());
        }
        self.questions();
        self.inner.turns.begin(id, start, again, self.inner.limits)
    }

    /// Opens a conversation.
    pub(crate) async fn open(&self, agent: &AgentName, key: &InstanceKey) -> Result<Held> {
        Ok(self.agents().open(agent.as_str(), key).await?)
    }

    /// Opens a conversation that exists: looking for one makes none.
    pub(crate) async fn open_known(&self, agent: &AgentName, key: &InstanceKey) -> Result<Held> {
        match self.listed(agent, key).await {
            // A store that lists nothing opens it.
            Err(Some(problem)) => Err(problem),
            _ => self.open(agent, key).await,
        }
    }

    /// Returns how a turn has ended, if the store knows it.
    pub(crate) async fn ended(&self, id: &TurnId) -> Result<Option<EndedTurn>> {
        let Some(store) = self.stored() else { return Ok(None) };
        match store.outcome(&id.instance(), &id.event).await {
            Err(error) if *error.code() == ErrorCode::STORE_UNSUPPORTED => Ok(None),
            ended => Ok(ended?),
        }
    }

    /// Returns the messages of a conversation, where the store knows them also while a turn runs.
    pub(crate) async fn messages(&self, agent: &AgentName, key: &InstanceKey) -> Result<Vec<Arc<Message>>> {
        if let Some(store) = self.stored() {
            let instance = InstanceId { agent: agent.clone(), key: key.clone() };
            match store.messages(&instance).await {
                Err(error) if *error.code() == ErrorCode::STORE_UNSUPPORTED => {}
                found => return found?.ok_or_else(|| Problem::not_found("conversation")),
            }
        }
        Ok(self.open_known(agent, key).await?.messages().await?)
    }

    /// Returns the stored state of a conversation.
    ///
    /// # Errors
    /// 404 when there is none; `None` when the store cannot say.
    pub(crate) async fn listed(
        &self,
        agent: &AgentName,
        key: &InstanceKey,
    ) -> std::result::Result<StoredInstance, Option<Problem>> {
        let Some(store) = self.stored() else { return Err(None) };
        let query = InstanceQuery::new().agent(agent.clone()).key_prefix(key.as_str()).limit(1);
        match store.list(&query).await {
            Ok(page) => {
                let mut found = page.instances.into_iter().filter(|found| found.id.key == *key);
                found.next().ok_or_else(|| Some(Problem::not_found("conversation")))
            }
            Err(error) if *error.code() == ErrorCode::STORE_UNSUPPORTED => Err(None),
            Err(error) => Err(Some(error.into())),
        }
    }

    /// Begins the turn of an event, unless it runs or has ended.
    pub(crate) async fn run(
        &self,
        principal: Option<&str>,
        agent: AgentName,
        key: InstanceKey,
        event: AgentEvent,
        children: WithChildren,
    ) -> Result<(TurnId, Arc<Log>)> {
        let held = self.open(&agent, &key).await?;
        let id = TurnId { agent, key, event: event.id.clone() };
        let digest = Some(EventDigest::of(&event));
        let stream = children.stream(held.run_stream(event));
        let start = Start { digest, principal: principal.map(str::to_owned), stream, held };
        let log = self.begin(&id, start, false)?;
        self.accepted(&log).await?;
        Ok((id, log))
    }

    /// Returns the log of a turn, as soon as it has begun; `None` if it is not known.
    pub(crate) async fn begun(&self, id: &TurnId) -> Option<Arc<Log>> {
        let mut begun = self.turns().beginnings();
        loop {
            if let Some(log) = self.turns().log(id) {
                return Some(log);
            }
            if !self.is_queued(id) {
                // It may have begun and ended between the two.
                return self.turns().log(id);
            }
            // It fails when this is dropped.
            _ = begun.changed().await;
        }
    }

    /// Fails if the turn was refused before it began.
    pub(crate) async fn accepted(&self, log: &Log) -> Result<()> {
        let _ = timeout(BEGINS, log.begun()).await;
        match log.ended() {
            Some(End::Refused(error)) => Err(refused(&error)),
            _ => Ok(()),
        }
    }
}

/// Returns the problem of a turn that was refused.
pub(crate) fn refused(error: &Error) -> Problem {
    let mut again = Error::new(error.code().clone(), error.message().into_owned());
    if let Some(remedy) = error.suggestion() {
        again = again.suggest(remedy.to_owned());
    }
    Problem::from(again)
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service({:?}, {} turns)", self.agents().names(), self.running())
    }
}
