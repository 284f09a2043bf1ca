//! Cases that are run again and again, each time interrupted at another write of one of their turns.
//!
//! The cases are the ones that `#[both_linkages]` marks. Their agents and conversations go through [`OfAgent`] and
//! [`OfInstance`], which do nothing unless [`run`] runs the case.
// RESUME-01

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use goondan::agent::AgentBuilder;
use goondan::event::AgentEvent;
use goondan::middleware::TurnResult;
use goondan::store::MemoryStore;
use goondan::{Agent, Instance, Result, json};
use goondan_lock::Lock;
use tokio::sync::Notify;

use crate::{Break, Breaking, Fault, GoesOn, Plan, close};

/// The longest time that a run of a case may take.
const LONGEST: Duration = Duration::from_secs(120);

/// A case that runs.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

/// A case, which can be run in both linkages.
pub struct Case {
    /// The path of its module.
    pub name: &'static str,
    /// The arguments of its runtime.
    pub arguments: &'static str,
    /// Runs it, linked and loaded.
    pub run: [fn() -> Running; 2],
}

inventory::collect!(Case);

/// Registers a case, which the type runs in a linkage.
#[macro_export]
macro_rules! case {
    ($arguments:literal, $linkage:ty, $case:path) => {
        $crate::inventory::submit! {
            $crate::Case {
                name: ::core::module_path!(),
                arguments: $arguments,
                run: [
                    || ::std::boxed::Box::pin(<$linkage>::Linked.run($case())),
                    || ::std::boxed::Box::pin(<$linkage>::Loaded.run($case())),
                ],
            }
        }
    };
}

/// The visible part of a turn and its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The text of the answer, or the error.
    pub outcome: String,
    /// Whether the turn had ended before, so that the answer is the one that was stored.
    pub is_stored: bool,
    /// The messages of the conversation.
    pub messages: Vec<String>,
    /// The states of the extensions.
    pub states: BTreeMap<String, String>,
    /// The number of writes until it had ended.
    pub writes: usize,
}

/// Where a run of a case is interrupted, and how its turn goes on.
#[derive(Clone, Debug)]
pub struct Interruption {
    /// The numbers of the writes, which count those of all turns of the case, from 1.
    pub breaks: Vec<(usize, Break)>,
    /// The way in which the turn goes on.
    pub goes_on: GoesOn,
    /// A mistake of the store when the turn goes on in a new opening.
    pub fault: Option<Fault>,
}

impl Default for Interruption {
    fn default() -> Self {
        Self { breaks: Vec::new(), goes_on: GoesOn::InTheSameProcess, fault: None }
    }
}

/// The end of a run of a case.
#[derive(Debug)]
pub enum Ran {
    /// None of its turns was interrupted; these are they.
    Whole(Vec<Seen>),
    /// A turn was, and went on.
    Interrupted {
        /// The index of the turn.
        index: usize,
        /// The number of times that it was interrupted.
        times: usize,
        /// The turn.
        turn: Seen,
    },
    /// It has panicked.
    Panicked(String),
    /// It does not end.
    Hangs,
}

/// The run of a case.
struct Run {
    plan: Arc<Plan>,
    goes_on: GoesOn,
    agents: Lock<Vec<Agent>>,
    seen: Lock<Vec<Seen>>,
    /// The turn that was interrupted, so many times, and has ended.
    interrupted: Lock<Option<(usize, Seen)>>,
    has_ended: Notify,
}

tokio::task_local! {
    static RUN: Arc<Run>;
}

/// Lets the turns of an agent be interrupted, in a run of [`run`].
pub fn interruptible(agent: AgentBuilder) -> AgentBuilder {
    match RUN.try_with(Arc::clone) {
        Ok(run) => agent.store(Breaking::new(MemoryStore::new().with_directories(), Arc::clone(&run.plan))),
        Err(_) => agent,
    }
}

/// The method of agents that cases use instead of the one that has no `_`.
pub trait OfAgent {
    /// Opens a conversation.
    fn instance_(&self, key: &str) -> impl Future<Output = Result<Instance>> + Send;
}

impl OfAgent for Agent {
    fn instance_(&self, key: &str) -> impl Future<Output = Result<Instance>> + Send {
        _ = RUN.try_with(|run| run.agents.lock().push(self.clone()));
        self.instance(key)
    }
}

/// The method of conversations that cases use instead of the one that has no `_`.
pub trait OfInstance {
    /// Runs a turn.
    fn run_(&self, event: impl Into<AgentEvent>) -> impl Future<Output = Result<TurnResult>> + Send;
}

impl OfInstance for Instance {
    fn run_(&self, event: impl Into<AgentEvent>) -> impl Future<Output = Result<TurnResult>> + Send {
        let event = event.into();
        let run = RUN.try_with(Arc::clone).ok();
        async move {
            match run {
                Some(run) => Box::pin(run.turn(self, event)).await,
                None => self.run(event).await,
            }
        }
    }
}

impl Run {
    async fn turn(&self, instance: &Instance, event: AgentEvent) -> Result<TurnResult> {
        // A handle tells its conversation in no other way.
        let id = format!("{instance:?}");
        let id = id.trim_start_matches("Instance(").trim_end_matches(')');
        let Some(_watched) = self.plan.watch(id) else { return instance.run(event).await };
        let (mut instance, mut times) = (instance.clone(), 0);
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = instance.run(event.clone()) => break outcome,
                () = self.plan.broken() => times += 1,
            }
            if self.goes_on == GoesOn::AfterANewOpening {
                let agents = self.agents.lock().clone();
                let is_its = |agent: &&Agent| id.split_once(':').is_some_and(|(name, _)| agent.name().as_str() == name);
                if let Some(agent) = agents.iter().rev().find(is_its) {
                    let key = instance.key().to_string();
                    close(instance, &self.plan).await?;
                    instance = agent.instance(&key).await?;
                }
            }
        };
        let seen = Seen::of(&instance, &outcome, self.plan.writes()).await?;
        if times > 0 {
            *self.interrupted.lock() = Some((times, seen));
            self.has_ended.notify_one();
            // The rest of the case was not written for this.
            std::future::pending::<()>().await;
        } else {
            self.seen.lock().push(seen);
        }
        outcome
    }
}

impl Seen {
    async fn of(instance: &Instance, outcome: &Result<TurnResult>, writes: usize) -> Result<Self> {
        let is_stored = outcome.as_ref().is_ok_and(TurnResult::is_stored);
        let outcome = match outcome {
            Ok(result) => format!("{:?} {}", result.finish_reason(), result.text()),
            Err(error) => format!("{}: {}", error.code(), error.message()),
        };
        let messages = instance.messages().await?;
        let message = |message: &goondan::conversation::Message| {
            let text = json!([message.role(), message.content(), message.source(), message.metadata()]).to_string();
            without_ids(&text)
        };
        let states = instance.states().await?;
        let states = states.into_iter().map(|(name, state)| (name.to_string(), without_ids(&state.to_string())));
        Ok(Self {
            outcome: without_ids(&outcome),
            is_stored,
            messages: messages.iter().map(|each| message(each)).collect(),
            states: states.collect(),
            writes,
        })
    }

    /// Whether this turn, which was interrupted, is as one that was not, but for the number of writes. Two differences
    /// must be: a call that may not run twice may have `E_TOOL_OUTCOME_UNKNOWN` as its result, and then all may be
    /// different; and the answer of a turn that had ended is the one in the conversation, whatever layers of the turn
    /// made of it.
    pub fn is_as(&self, whole: &Self) -> bool {
        let is_same = |at: &usize| self.messages.get(*at) == whole.messages.get(*at);
        let differs = (0..self.messages.len()).find(|at| !is_same(at));
        if differs.is_some_and(|at| self.messages[at].contains("E_TOOL_OUTCOME_UNKNOWN")) {
            return true;
        }
        (self.is_stored || self.outcome == whole.outcome)
            && (&self.messages, &self.states) == (&whole.messages, &whole.states)
    }
}

/// Replaces long words with digits, which are random, and times.
fn without_ids(text: &str) -> String {
    let is_time = |quoted: &str| quoted.len() == 24 && quoted.ends_with('Z');
    let plain = |quoted: &str| if is_time(quoted) { "#".to_owned() } else { without_random_words(quoted) };
    text.split('"').map(plain).collect::<Vec<_>>().join("\"")
}

fn without_random_words(text: &str) -> String {
    let ends_word = |letter: char| !letter.is_ascii_alphanumeric();
    let plain = |word: &str| {
        let letters = word.trim_end_matches(ends_word);
        let is_random = letters.len() >= 10 && letters.contains(|letter: char| letter.is_ascii_digit());
        format!("{}{}", if is_random { "#" } else { letters }, &word[letters.len()..])
    };
    text.split_inclusive(ends_word).map(plain).collect()
}

/// Runs a case, one of whose turns is interrupted.
pub fn run(case: &'static Case, is_loaded: bool, interruption: Interruption) -> Ran {
    let Interruption { breaks, goes_on, fault } = interruption;
    let (result, ran) = mpsc::channel();
    let run = move || {
        let mut runtime = match case.arguments.contains("multi_thread") {
            true => tokio::runtime::Builder::new_multi_thread(),
            false => tokio::runtime::Builder::new_current_thread(),
        };
        runtime.enable_all();
        if case.arguments.contains("start_paused") {
            runtime.start_paused(true);
        }
        let run = Arc::new(Run {
            plan: Plan::of_watched(breaks, fault),
            goes_on,
            agents: Lock::default(),
            seen: Lock::default(),
            interrupted: Lock::default(),
            has_ended: Notify::new(),
        });
        let of_case = Arc::clone(&run);
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let Ok(runtime) = runtime.build() else { return };
            runtime.block_on(RUN.scope(of_case, async {
                let run = RUN.get();
                tokio::select! {
                    () = case.run[usize::from(is_loaded)]() => {}
                    () = run.has_ended.notified() => {}
                }
            }));
        }));
        let seen = std::mem::take(&mut *run.seen.lock());
        let interrupted = run.interrupted.lock().take();
        let ran = match (interrupted, ended) {
            (Some((times, turn)), _) => Ran::Interrupted { index: seen.len(), times, turn },
            (None, Ok(())) => Ran::Whole(seen),
            (None, Err(panic)) => {
                let text = panic.downcast_ref::<String>().cloned();
                Ran::Panicked(
                    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default(),
                )
            }
        };
        // The receiver is gone after the longest time.
        _ = result.send(ran);
    };
    thread::spawn(run);
    ran.recv_timeout(LONGEST).unwrap_or(Ran::Hangs)
}
