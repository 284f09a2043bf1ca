//! The turns that run, and those that have ended a short while ago.
// SERVE-01, SERVE-02

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use goondan_core::{AgentName, BoxFuture, Error, EventId, InstanceKey, MessageEvent};
use goondan_lock::Lock;
use goondan_runtime::store::{EventDigest, InstanceId};
use goondan_runtime::{LiveQuestion, TurnStream};
use goondan_wire::{TurnEnd, Update, Updates};
use tokio::sync::watch;
use tokio::task::{AbortHandle, yield_now};
use tokio::time::Instant;

use crate::agents::Held;
use crate::feed::{Fed, Feeds};
use crate::log::{End, Log};
use crate::problem::{Problem, Result};

/// The time for which the log of a turn is kept after its end.
const KEPT: Duration = Duration::from_secs(300);

/// The turns of a service, by their events.
#[derive(Default)]
pub(crate) struct Turns {
    turns: Lock<Known>,
    /// Told when a turn has begun.
    begun: watch::Sender<()>,
    /// Told when a turn has ended.
    ended: watch::Sender<()>,
    pub(crate) feeds: Arc<Feeds>,
}

#[derive(Default)]
struct Known {
    running: HashMap<TurnId, Turn>,
    ended: Ended,
    /// Those that this process has accepted and that have not begun, with their principals.
    waiting: HashMap<TurnId, Option<String>>,
}

/// The turns that have ended a short while ago.
#[derive(Default)]
struct Ended {
    turns: HashMap<TurnId, Turn>,
    /// The same, oldest first, with when they ended and the number of their logs.
    order: VecDeque<(Instant, TurnId, u32)>,
    /// The bytes of their logs.
    bytes: usize,
}

impl Ended {
    fn add(&mut self, id: TurnId, turn: Turn) {
        self.remove(&id);
        self.bytes += turn.log.bytes();
        self.order.push_back((Instant::now(), id.clone(), turn.log.epoch()));
        self.turns.insert(id, turn);
    }

    fn remove(&mut self, id: &TurnId) {
        if let Some(turn) = self.turns.remove(id) {
            self.bytes -= turn.log.bytes();
        }
    }

    /// Removes those that ended long ago, and the oldest while all have more than `most` bytes together.
    fn sweep(&mut self, most: usize) {
        while let Some((ended, id, epoch)) = self.order.front()
            && (ended.elapsed() >= KEPT || self.bytes > most)
        {
            // Another one may have taken its place: the turn went on.
            let is_it = self.turns.get(id).is_some_and(|turn| turn.log.epoch() == *epoch);
            let id = self.order.pop_front().map(|(_, id, _)| id).filter(|_| is_it);
            if let Some(id) = id {
                self.remove(&id);
            }
        }
    }
}

impl Known {
    fn get(&self, id: &TurnId) -> Option<&Turn> {
        self.running.get(id).or_else(|| self.ended.turns.get(id))
    }

    /// Fails if a principal has as many turns as it may.
    fn check_principal(&self, principal: Option<&str>, limits: Limits) -> Result<()> {
        let of_it = |of: &Option<String>| of.is_some() && of.as_deref() == principal;
        let running = self.running.values().filter(|turn| of_it(&turn.principal)).count();
        let waiting = self.waiting.values().filter(|of| of_it(of)).count();
        if running + waiting < limits.per_principal {
            return Ok(());
        }
        let most = limits.per_principal;
        Err(Problem::busy(format!("{most} turns of the principal run or are queued, which is the limit")))
    }
}

/// A turn, by the event that it answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TurnId {
    pub(crate) agent: AgentName,
    pub(crate) key: InstanceKey,
    pub(crate) event: EventId,
}

struct Turn {
    log: Arc<Log>,
    digest: Option<EventDigest>,
    principal: Option<String>,
    /// `None` as long as it has needed none.
    task: Option<AbortHandle>,
}

/// The limits of a service.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The most turns that run or are queued at the same time.
    pub turns: usize,
    /// The most of them that belong to one principal.
    pub per_principal: usize,
    /// The most turns that are accepted and have not begun.
    pub waiting: usize,
    /// The most bytes of the body of a request.
    pub body_bytes: usize,
    /// The bytes of the log of one turn above which pieces that a message has whole are left out.
    pub log_bytes: usize,
    /// The most bytes of the logs of turns that have ended, together.
    pub ended_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 256,
            per_principal: 16,
            waiting: 4096,
            body_bytes: 8 << 20,
            log_bytes: 4 << 20,
            ended_bytes: 256 << 20,
        }
    }
}

impl Limits {
    /// Sets how many turns run or are queued at the same time.
    #[must_use]
    pub fn turns(self, turns: usize) -> Self {
        Self { turns, ..self }
    }
}

/// A turn whose event was known, or one that begins now.
enum Added {
    Known(Arc<Log>),
    New(Arc<Log>, BoxFuture<'static, ()>),
}

/// The parts of a turn that begins.
pub(crate) struct Start {
    pub(crate) digest: Option<EventDigest>,
    pub(crate) principal: Option<String>,
    pub(crate) held: Held,
    pub(crate) stream: TurnStream,
}

impl Turns {
    /// Returns the log of a turn.
    pub(crate) fn log(&self, id: &TurnId) -> Option<Arc<Log>> {
        self.turns.lock().get(id).map(|turn| Arc::clone(&turn.log))
    }

    /// Returns the log of the turn that runs in a conversation; if none does yet, of one that waits for its place.
    pub(crate) fn running(&self, agent: &AgentName, key: &InstanceKey) -> Option<(TurnId, Arc<Log>)> {
        let known = self.turns.lock();
        let of_it = known.running.iter().filter(|(id, _)| id.agent == *agent && id.key == *key);
        let running = of_it.max_by_key(|(_, turn)| turn.log.length() > 0);
        running.map(|(id, turn)| (id.clone(), Arc::clone(&turn.log)))
    }

    /// Returns whether a turn waits until it can begin in a conversation.
    pub(crate) fn has_waiting(&self, agent: &AgentName, key: &InstanceKey) -> bool {
        self.turns.lock().waiting.keys().any(|id| id.agent == *agent && id.key == *key)
    }

    /// Returns the turn that runs in the conversation of a question.
    pub(crate) fn asking(&self, question: &LiveQuestion) -> Option<(TurnId, Arc<Log>)> {
        self.running(question.agents().first()?, &question.told().instance)
    }

    /// Fails if a turn is known that answers something else under this id.
    pub(crate) fn check(&self, id: &TurnId, digest: &EventDigest) -> Result<()> {
        match self.turns.lock().get(id).and_then(|turn| turn.digest.as_ref()) {
            Some(known) if known != digest => Err(reused()),
            _ => Ok(()),
        }
    }

    /// Returns the log of the turn if the event is known, and begins it otherwise. `again` begins it in any case: it
    /// goes on after a decision.
    ///
    /// # Errors
    /// 422 when the event is known with another input, 429 when there are too many turns.
    pub(crate) fn begin(self: &Arc<Self>, id: &TurnId, start: Start, again: bool, limits: Limits) -> Result<Arc<Log>> {
        let (log, mut driving) = match self.add(id, start, again, limits)? {
            Added::Known(log) => return Ok(log),
            Added::New(log, driving) => (log, driving),
        };
        self.begun.send_replace(());
        // It runs here up to its first update, so that this is sent with the head of the response: a task may have to
        // wake another thread first. The task of the rest polls it again at once, so that nothing has to wake this one.
        if driving.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.driven(id, &log, tokio::spawn(driving).abort_handle());
        }
        Ok(log)
    }

    fn add(self: &Arc<Self>, id: &TurnId, start: Start, again: bool, limits: Limits) -> Result<Added> {
        let Start { digest, principal, held, stream } = start;
        let mut known = self.turns.lock();
        known.ended.sweep(limits.ended_bytes);
        if let Some(turn) = known.get(id).filter(|_| !again) {
            if turn.digest.is_some() && turn.digest != digest {
                return Err(reused());
            }
            return Ok(Added::Known(Arc::clone(&turn.log)));
        }
        let waited = known.waiting.remove(id);
        let has_room = known.running.len() < limits.turns;
        let checked = match has_room {
            true => known.check_principal(principal.as_deref(), limits),
            false => Err(Problem::busy(format!("{} turns run or are queued, which is the limit", limits.turns))),
        };
        if let Err(problem) = checked {
            known.waiting.extend(waited.map(|principal| (id.clone(), principal)));
            return Err(problem);
        }
        let log = Arc::new(Log::new(&id.event, fresh()));
        known.ended.remove(id);
        let turn = Turn { log: Arc::clone(&log), digest, principal, task: None };
        if let Some(earlier) = known.running.insert(id.clone(), turn) {
            // Another decision is being taken. Those who watch that are not forgotten at the end.
            known.running.insert(id.beside(earlier.log.epoch()), earlier);
        }
        let driving = drive(Arc::clone(self), id.clone(), Arc::clone(&log), held, stream, limits.log_bytes);
        Ok(Added::New(log, Box::pin(driving)))
    }

    /// Takes the task that drives a turn.
    fn driven(&self, id: &TurnId, log: &Log, task: AbortHandle) {
        let mut known = self.turns.lock();
        let mut ids = [id.clone(), id.beside(log.epoch())].into_iter();
        let is_it =
            |known: &Known, id: &TurnId| known.running.get(id).is_some_and(|turn| turn.log.epoch() == log.epoch());
        match ids.find(|id| is_it(&known, id)).and_then(|id| known.running.get_mut(&id)) {
            // It was handed over meanwhile.
            Some(turn) if turn.log.ended().is_some() => task.abort(),
            Some(turn) => turn.task = Some(task),
            None => {}
        }
    }

    /// Returns a receiver that is told of turns that begin, or end before that.
    pub(crate) fn beginnings(&self) -> watch::Receiver<()> {
        self.begun.subscribe()
    }

    /// Adds a turn that waits until it can begin.
    ///
    /// # Errors
    /// 429 when there are too many.
    pub(crate) fn wait(&self, id: &TurnId, principal: Option<&str>, limits: Limits) -> Result<()> {
        let mut known = self.turns.lock();
        if !known.waiting.contains_key(id) {
            known.check_principal(principal, limits)?;
            if known.waiting.len() >= limits.waiting {
                return Err(Problem::busy(format!("{} turns are queued, which is the limit", limits.waiting)));
            }
            known.waiting.insert(id.clone(), principal.map(str::to_owned));
        }
        Ok(())
    }

    /// Forgets a turn that waits.
    pub(crate) fn waits_no_more(&self, id: &TurnId) {
        self.turns.lock().waiting.remove(id);
    }

    /// Ends a turn before it begins, and returns its log. One that has begun is left as it is.
    pub(crate) fn ended_before(&self, id: &TurnId, end: TurnEnd) -> Arc<Log> {
        let mut known = self.turns.lock();
        known.waiting.remove(id);
        if let Some(turn) = known.get(id) {
            return Arc::clone(&turn.log);
        }
        let log = Arc::new(Log::ended_with(&id.event, fresh(), end));
        known.ended.add(id.clone(), Turn { log: Arc::clone(&log), digest: None, principal: None, task: None });
        self.begun.send_replace(());
        log
    }

    /// Adds an update to the log of a turn, for those who watch it or its conversation.
    pub(crate) fn tell(&self, id: &TurnId, log: &Log, update: Update, most: usize) {
        if let Some(entry) = log.push(update, most)
            && self.feeds.is_watched()
        {
            self.feeds.send(&id.instance(), &Fed { event: id.event.clone(), epoch: Some(log.epoch()), entry });
        }
    }

    /// Returns how many turns run, or wait in their conversations.
    pub(crate) fn count(&self) -> usize {
        self.turns.lock().running.len()
    }

    /// Waits until there is room for turns, and returns for how many.
    pub(crate) async fn room(&self, limits: Limits) -> NonZeroUsize {
        let mut ended = self.ended.subscribe();
        loop {
            if let Some(room) = NonZeroUsize::new(limits.turns.saturating_sub(self.count())) {
                return room;
            }
            // It fails when this is dropped.
            _ = ended.changed().await;
        }
    }

    /// Waits until no turn runs.
    pub(crate) async fn ended(&self) {
        let mut ended = self.ended.subscribe();
        while self.count() > 0 {
            _ = ended.changed().await;
        }
    }

    /// Forgets the turns of a conversation that runs none.
    pub(crate) fn forget_all(&self, agent: &AgentName, key: &InstanceKey) {
        let mut known = self.turns.lock();
        let of_it = |id: &&TurnId| id.agent == *agent && id.key == *key;
        let ids: Vec<_> = known.ended.turns.keys().filter(of_it).cloned().collect();
        ids.iter().for_each(|id| known.ended.remove(id));
    }

    /// Leaves the turns that run open: the next process that runs their events goes on with them.
    pub(crate) fn hand_over(&self) {
        let known = self.turns.lock();
        for turn in known.running.values() {
            if let Some(task) = &turn.task {
                task.abort();
            }
            turn.log.end(End::Handover);
        }
        drop(known);
        self.feeds.close();
    }

    /// Moves a turn to those that have ended. One that was refused before it began is forgotten.
    fn end(&self, id: &TurnId, log: &Log) {
        let mut known = self.turns.lock();
        let is_it = known.running.get(id).is_some_and(|turn| turn.log.epoch() == log.epoch());
        let id = if is_it { id.clone() } else { id.beside(log.epoch()) };
        let turn = known.running.remove(&id);
        if let Some(turn) = turn.filter(|_| is_it && !matches!(log.ended(), Some(End::Refused(_)))) {
            known.ended.add(id, turn);
        }
        drop(known);
        self.ended.send_replace(());
    }
}

impl TurnId {
    /// Returns the conversation of the turn, as stores name it.
    pub(crate) fn instance(&self) -> InstanceId {
        InstanceId { agent: self.agent.clone(), key: self.key.clone() }
    }

    /// Returns the id under which a turn is known beside the newest one of the same event.
    fn beside(&self, epoch: u32) -> Self {
        Self { event: format!("{}~{epoch}", self.event).into(), ..self.clone() }
    }
}

/// Runs a turn to its end, and writes its log.
async fn drive(turns: Arc<Turns>, id: TurnId, log: Arc<Log>, held: Held, mut stream: TurnStream, log_bytes: usize) {
    // Whatever ends this task, those who watch are told.
    let ending = Ending { id: id.clone(), log, turns: Arc::clone(&turns) };
    let log = &ending.log;
    let (mut updates, mut has_begun) = (Updates::default(), false);
    while let Some(update) = stream.next().await {
        if let Some(update) = updates.next(update) {
            turns.tell(&id, log, update, log_bytes);
            if !std::mem::replace(&mut has_begun, true) {
                yield_now().await;
            }
        }
    }
    let outcome = stream.finish().await;
    if let Ok(result) = &outcome
        && result.is_stored()
    {
        // It was answered before, or waits: nothing has been told of its messages.
        for message in held.messages().await.unwrap_or_default() {
            if message.turn() == Some(result.turn_id()) {
                let (turn_id, event) = (result.turn_id().clone(), MessageEvent::Append { message });
                turns.tell(&id, log, Update::Message { turn_id, event }, log_bytes);
            }
        }
    }
    drop(held);
    match outcome {
        Err(error) if !has_begun => log.end(End::Refused(Arc::new(error))),
        outcome => {
            let end = Arc::new(TurnEnd::of(&outcome));
            turns.tell(&id, log, Update::Turn(Box::new(TurnEnd::clone(&end))), log_bytes);
            log.end(End::Turn(end));
        }
    }
}

/// Ends a log when it is dropped.
struct Ending {
    id: TurnId,
    log: Arc<Log>,
    turns: Arc<Turns>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.log.end(End::Handover);
        self.turns.end(&self.id, &self.log);
    }
}

/// Returns the problem of an event that is known with another input.
pub(crate) fn reused() -> Problem {
    let message = "an event with this id is known, and asks for something else";
    Error::new(goondan_core::ErrorCode::EVENT_REUSED, message).suggest("send another key with another input").into()
}

/// Returns a number that other logs do not have.
fn fresh() -> u32 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let number = RandomState::new().build_hasher().finish();
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}
