//! The turns that run, and those that have ended a short while ago.
// SERVE-01, SERVE-02

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use goondan_core::{AgentName, Error, EventId, InstanceKey};
use goondan_lock::Lock;
use goondan_runtime::store::EventDigest;
use goondan_runtime::{LiveQuestion, TurnStream};
use goondan_wire::{TurnEnd, Update, Updates};
use tokio::task::AbortHandle;

use crate::agents::Held;
use crate::log::{End, Log};
use crate::problem::{Problem, Result};

/// The time for which the log of a turn is kept after its end.
const KEPT: Duration = Duration::from_secs(300);

/// The turns of a service, by their events.
#[derive(Default)]
pub(crate) struct Turns {
    turns: Lock<HashMap<TurnId, Turn>>,
}

/// A turn, by what it answers.
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
    task: AbortHandle,
}

/// The limits of a service.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The most turns that run or are queued at the same time.
    pub turns: usize,
    /// The most of them that belong to one principal.
    pub per_principal: usize,
    /// The most bytes of the body of a request.
    pub body_bytes: usize,
    /// The bytes of the log of one turn above which pieces that a message has whole are left out.
    pub log_bytes: usize,
    /// The most bytes of the logs of turns that have ended, together.
    pub ended_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { turns: 256, per_principal: 16, body_bytes: 8 << 20, log_bytes: 4 << 20, ended_bytes: 256 << 20 }
    }
}

impl Limits {
    /// Sets how many turns run or are queued at the same time.
    #[must_use]
    pub fn turns(self, turns: usize) -> Self {
        Self { turns, ..self }
    }
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

    /// Returns the log of the turn that runs in a conversation, if one does: the newest.
    pub(crate) fn running(&self, agent: &AgentName, key: &InstanceKey) -> Option<(TurnId, Arc<Log>)> {
        let turns = self.turns.lock();
        let mut running =
            turns.iter().filter(|(id, turn)| id.agent == *agent && id.key == *key && turn.log.ended().is_none());
        running.next().map(|(id, turn)| (id.clone(), Arc::clone(&turn.log)))
    }

    /// Returns the log of the turn that runs in the conversation of a question.
    pub(crate) fn asking(&self, question: &LiveQuestion) -> Option<Arc<Log>> {
        let agent = question.agents().first()?;
        self.running(agent, &question.told().instance).map(|(_, log)| log)
    }

    /// Returns the log of the turn if the event is known, and begins it otherwise. `again` begins it in any case: it
    /// goes on after a decision.
    ///
    /// # Errors
    /// 422 when the event is known with another input, 429 when there are too many turns.
    pub(crate) fn begin(self: &Arc<Self>, id: &TurnId, start: Start, again: bool, limits: Limits) -> Result<Arc<Log>> {
        let Start { digest, principal, held, stream } = start;
        let mut turns = self.turns.lock();
        sweep(&mut turns, limits.ended_bytes);
        if let Some(turn) = turns.get(id).filter(|_| !again) {
            if turn.digest != digest {
                return Err(reused());
            }
            return Ok(Arc::clone(&turn.log));
        }
        let running = || turns.values().filter(|turn| turn.log.ended().is_none());
        if running().count() >= limits.turns {
            return Err(Problem::busy(format!("{} turns run or are queued, which is the limit", limits.turns)));
        }
        if principal.is_some() && running().filter(|turn| turn.principal == principal).count() >= limits.per_principal {
            let message = format!("{} turns of the principal run or are queued, the limit", limits.per_principal);
            return Err(Problem::busy(message));
        }
        let log = Arc::new(Log::new(fresh()));
        let drive = drive(Arc::clone(self), id.clone(), Arc::clone(&log), held, stream, limits.log_bytes);
        let task = tokio::spawn(drive).abort_handle();
        let turn = Turn { log: Arc::clone(&log), digest, principal, task };
        if let Some(earlier) = turns.insert(id.clone(), turn).filter(|earlier| earlier.log.ended().is_none()) {
            // Another decision is being taken. Those who watch that are not forgotten at the end.
            let event = format!("{}~{}", id.event, earlier.log.epoch()).into();
            turns.insert(TurnId { event, ..id.clone() }, earlier);
        }
        Ok(log)
    }

    /// Returns how many turns run or are queued.
    pub(crate) fn count(&self) -> usize {
        self.turns.lock().values().filter(|turn| turn.log.ended().is_none()).count()
    }

    /// Waits until no turn runs.
    pub(crate) async fn ended(&self) {
        loop {
            let running = self.turns.lock().values().find(|turn| turn.log.ended().is_none()).map(|turn| {
                let log = Arc::clone(&turn.log);
                (log.changes(), log)
            });
            let Some((mut changes, log)) = running else { return };
            while log.ended().is_none() {
                if changes.changed().await.is_err() {
                    break;
                }
            }
        }
    }

    /// Leaves the turns that run open: the next process that runs their events goes on with them.
    pub(crate) fn hand_over(&self) {
        for turn in self.turns.lock().values() {
            turn.task.abort();
            turn.log.end(End::Handover);
        }
    }

    fn forget(&self, id: &TurnId) {
        self.turns.lock().remove(id);
    }
}

/// Runs a turn to its end, and writes its log.
async fn drive(turns: Arc<Turns>, id: TurnId, log: Arc<Log>, held: Held, mut stream: TurnStream, log_bytes: usize) {
    // Whatever ends this task, those who watch are told.
    let ending = Ending(log);
    let log = &ending.0;
    let (mut updates, mut has_begun) = (Updates::default(), false);
    while let Some(update) = stream.next().await {
        if let Some(update) = updates.next(update) {
            has_begun = true;
            log.push(update, log_bytes);
        }
    }
    let outcome = stream.finish().await;
    drop(held);
    match outcome {
        Err(error) if !has_begun => {
            turns.forget(&id);
            log.end(End::Refused(Arc::new(error)));
        }
        outcome => {
            let end = Arc::new(TurnEnd::of(&outcome));
            log.push(Update::Turn(TurnEnd::clone(&end)), log_bytes);
            log.end(End::Turn(end));
        }
    }
}

/// Ends a log when it is dropped.
struct Ending(Arc<Log>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end(End::Handover);
    }
}

fn reused() -> Problem {
    let message = "an event with this id is known, and asks for something else";
    Error::new(goondan_core::ErrorCode::EVENT_REUSED, message).suggest("send another key with another input").into()
}

/// Removes the logs of turns that ended long ago, and of the oldest if there are too many.
fn sweep(turns: &mut HashMap<TurnId, Turn>, most: usize) {
    turns.retain(|_, turn| turn.log.age().0.is_none_or(|age| age < KEPT));
    let mut ended: Vec<_> = turns
        .iter()
        .filter_map(|(id, turn)| {
            let (age, bytes) = turn.log.age();
            Some((age?, bytes, id.clone()))
        })
        .collect();
    let mut bytes: usize = ended.iter().map(|(_, bytes, _)| bytes).sum();
    if bytes > most {
        ended.sort_by_key(|(age, _, _)| std::cmp::Reverse(*age));
        for (_, size, id) in ended {
            if bytes <= most {
                break;
            }
            bytes -= size;
            turns.remove(&id);
        }
    }
}

/// Returns a number that other logs do not have.
fn fresh() -> u32 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let number = RandomState::new().build_hasher().finish();
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}
