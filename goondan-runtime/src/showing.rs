//! Updates of a conversation's extensions for the person: sent to the observers of the turn and on the bus, a bounded
//! number in a time, and never stored.
// SHOW-01

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use goondan_core::{Event, ExtensionName, ExtensionShown, Shown};
use goondan_lock::Lock;
use tokio::time::{Instant, sleep_until};

use crate::bus::{Bus, Chain};

/// The longest wait of an update.
const INTERVAL: Duration = Duration::from_millis(50);
/// The most that are sent at once in that time.
const AT_ONCE: usize = 16;
/// The most that wait for its end: updates that replace others, and those that do not.
const WAITING: usize = 64;

/// An observer of a turn, which receives the updates.
pub(crate) trait Watching: Send + Sync {
    /// Whether it wants to know.
    fn wants_shown(&self) -> bool;
    /// Whether it can take more.
    fn has_room(&self) -> bool;
    /// Tells it.
    fn show(&self, shown: &ExtensionShown);
}

/// The updates of one conversation. Handles that extensions keep hold it beyond its end, where it has no observers.
pub(crate) struct Showing {
    bus: Bus,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    /// The observer of the running turn.
    watching: Option<Weak<dyn Watching>>,
    /// When the interval began, if there was one.
    since: Option<Instant>,
    /// The number that were sent at once in it.
    at_once: usize,
    waiting: VecDeque<Waiting>,
    /// The number of them that are sent now.
    due: usize,
    /// Whether a thread tells them. It tells those too that become due meanwhile, so that the order is kept.
    is_telling: bool,
    has_timer: bool,
    /// The number that had no room.
    left_out: BTreeMap<ExtensionName, usize>,
}

struct Waiting {
    shown: ExtensionShown,
    chain: Chain,
}

impl State {
    fn watching(&self) -> Option<Arc<dyn Watching>> {
        self.watching.as_ref().and_then(Weak::upgrade).filter(|watching| watching.wants_shown())
    }

    fn is_in_interval(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() < INTERVAL)
    }

    /// Makes the waiting ones due.
    fn end_interval(&mut self) {
        (self.since, self.at_once, self.due) = (Some(Instant::now()), 0, self.waiting.len());
    }

    /// Takes the ones to be told next: behind everything that waited, how many had no room.
    fn next_due(&mut self) -> Option<Waiting> {
        if self.due > 0 {
            self.due -= 1;
            return self.waiting.pop_front();
        }
        if !self.waiting.is_empty() {
            return None;
        }
        let (extension, count) = self.left_out.pop_first()?;
        let shown = ExtensionShown::new(extension, Shown::note(format!("… {count} more were not shown")));
        Some(Waiting { shown, chain: Chain::default() })
    }
}

impl Showing {
    pub(crate) fn new(bus: Bus) -> Arc<Self> {
        Arc::new(Self { bus, state: Lock::default() })
    }

    /// Sends later updates to `watching`, until it is dropped.
    pub(crate) fn watch(&self, watching: Weak<dyn Watching>) {
        self.state.lock().watching = Some(watching);
    }

    /// Tells the waiting ones: the turn ends.
    pub(crate) fn flush(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if !state.waiting.is_empty() {
            state.end_interval();
            drop(state);
            self.tell(true);
        }
    }

    /// Shows something, unless there is no receiver.
    pub(crate) fn show(self: &Arc<Self>, extension: &ExtensionName, shown: Shown) {
        let is_wanted = self.state.lock().watching().is_some() || self.bus.wants(ExtensionShown::NAME);
        if !is_wanted {
            return;
        }
        self.tell_if_over();
        if self.leaves_out(extension, &shown) {
            return;
        }
        let mut shown = ExtensionShown::new(extension.clone(), shown.cleaned());
        shown.turn_id = self.bus.cause().map(|turn| turn.turn.clone());
        self.add(Waiting { shown, chain: Chain::current() });
        self.tell(false);
        self.tell_later();
    }

    /// Tells the waiting ones, if the interval is over.
    fn tell_if_over(&self) {
        let mut state = self.state.lock();
        if !state.is_in_interval() {
            state.end_interval();
            drop(state);
            self.tell(false);
        }
    }

    /// Counts the ones without room. It is not cleaned, which costs time for long texts.
    fn leaves_out(&self, extension: &ExtensionName, shown: &Shown) -> bool {
        let mut state = self.state.lock();
        // A flood of notes leaves room for the newest list.
        let is_alike = |other: &&Waiting| other.shown.shown.id().is_some() == shown.id().is_some();
        let is_full = state.waiting.iter().filter(is_alike).count() >= WAITING
            && !state.waiting.iter().any(|other| is_replaced(other, extension, shown));
        if is_full {
            *state.left_out.entry(extension.clone()).or_default() += 1;
        }
        is_full
    }

    fn add(&self, new: Waiting) {
        let mut state = self.state.lock();
        // The due ones are on their way.
        let due = state.due;
        let ExtensionShown { extension, shown, .. } = &new.shown;
        if let Some(old) = state.waiting.iter_mut().skip(due).find(|old| is_replaced(old, extension, shown)) {
            *old = new;
            return;
        }
        state.waiting.push_back(new);
        if state.at_once < AT_ONCE && state.waiting.len() == due + 1 {
            state.at_once += 1;
            state.due += 1;
        }
    }

    /// Tells the due ones, in order; `to_end` also beyond the room that there is.
    fn tell(&self, to_end: bool) {
        loop {
            let mut state = self.state.lock();
            let watching = state.watching();
            let has_room = to_end || watching.as_ref().is_none_or(|watching| watching.has_room());
            if state.is_telling || !has_room {
                return;
            }
            let Some(next) = state.next_due() else { return };
            state.is_telling = true;
            drop(state);
            if let Some(watching) = watching {
                watching.show(&next.shown);
            }
            self.emit(next);
            self.state.lock().is_telling = false;
        }
    }

    fn emit(&self, Waiting { shown, chain }: Waiting) {
        if !self.bus.wants(ExtensionShown::NAME) {
            return;
        }
        match Event::new(ExtensionShown::NAME, (&shown,)) {
            Ok(event) => self.bus.emit_after(chain, event),
            Err(error) => tracing::error!("what an extension shows was not published: {}", error.report()),
        }
    }

    /// Tells the waiting ones at the end of the interval, if there are some.
    fn tell_later(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.waiting.is_empty() || state.has_timer {
            return;
        }
        let (Some(since), Some(runtime)) = (state.since, self.bus.runtime()) else { return };
        state.has_timer = true;
        drop(state);
        let showing = Arc::clone(self);
        runtime.spawn(async move {
            sleep_until(since + INTERVAL).await;
            showing.state.lock().has_timer = false;
            showing.tell_if_over();
            showing.tell_later();
        });
    }
}

fn is_replaced(old: &Waiting, extension: &ExtensionName, new: &Shown) -> bool {
    old.shown.extension == *extension && new.replaces(&old.shown.shown)
}
