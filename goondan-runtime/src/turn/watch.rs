//! Whoever watches a turn: the observers of the program, the stream of the turn, and the runtime events for the store.
//! All of them are told here, and nowhere else.
// OBSERVE-01

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use goondan_core::host::panic::catch;
use goondan_core::{
    EventScope, ExtensionShown, MessageEvent, RuntimeEvent, Span, Timestamp, ToolCallId, ToolProgress, TurnInfo,
};
use goondan_lock::Lock;

use crate::ports::model::ModelDelta;
use crate::ports::observer::{Observer, Told, Wants};
use crate::ports::store::TurnOutcome;
use crate::showing::Watching;
use crate::updates::{TurnUpdate, UpdateSender};

/// The longest time of an observer that is not named in the log.
const LONG: Duration = Duration::from_millis(100);

/// The observers of an agent.
#[derive(Default)]
pub(crate) struct Observers(Lock<Arc<Vec<Arc<Observing>>>>);

impl Observers {
    pub(crate) fn add(&self, observer: impl Observer) {
        let observing = Observing { observer: Box::new(observer), took_long: false.into(), panicked: false.into() };
        Arc::make_mut(&mut *self.0.lock()).push(Arc::new(observing));
    }

    /// Returns the observers that want something of a turn, with their wants.
    fn ask(&self) -> Vec<(Arc<Observing>, Wants)> {
        // Not under the lock: an observer may add another one.
        let all = {
            let all = self.0.lock();
            if all.is_empty() {
                return Vec::new();
            }
            Arc::clone(&all)
        };
        let asked = all.iter().map(|observing| (observing, observing.wants()));
        let wanting = asked.filter(|(_, wants)| *wants != Wants::NOTHING);
        wanting.map(|(observing, wants)| (Arc::clone(observing), wants)).collect()
    }
}

/// An observer, and the log's remarks on it, each once.
struct Observing {
    observer: Box<dyn Observer>,
    took_long: AtomicBool,
    panicked: AtomicBool,
}

impl Observing {
    fn wants(&self) -> Wants {
        catch(|| self.observer.wants()).unwrap_or_else(|text| {
            self.has_panicked(&text);
            Wants::NOTHING
        })
    }

    fn tell(&self, scope: &EventScope, what: &Told<'_>) {
        let start = Instant::now();
        if let Err(text) = catch(|| self.observer.told(scope, what)) {
            return self.has_panicked(&text);
        }
        let took = start.elapsed();
        if took > LONG && !self.took_long.swap(true, Ordering::Relaxed) {
            self.log(|observer| tracing::warn!(observer, ?took, "an observer takes long, and delays turns by it"));
        }
    }

    #[cold]
    fn has_panicked(&self, text: &str) {
        if !self.panicked.swap(true, Ordering::Relaxed) {
            self.log(|observer| tracing::error!(observer, "an observer panicked, and is told nevertheless: {text}"));
        }
    }

    #[cold]
    fn log(&self, log: impl FnOnce(&str)) {
        // The observer names itself, and the subscriber may panic too.
        _ = catch(|| log(self.observer.name()));
    }
}

/// The observers of one turn. It is made with the turn, unless nothing is wanted.
pub(crate) struct Watch {
    /// The scope of all that is told, but for its time and span.
    scope: EventScope,
    /// Everything that is wanted.
    wants: Wants,
    program: Vec<(Arc<Observing>, Wants)>,
    stream: Option<UpdateSender>,
    /// The runtime events for the store, if it keeps them. Behind a lock because tool calls may run concurrently.
    for_store: Option<Lock<Vec<Arc<RuntimeEvent>>>>,
}

impl Watch {
    /// Asks for the wants of observers in a turn.
    pub(crate) fn of(
        observers: &Observers,
        turn: &TurnInfo,
        stream: Option<UpdateSender>,
        for_store: bool,
    ) -> Option<Arc<Self>> {
        let program = observers.ask();
        if program.is_empty() && stream.is_none() && !for_store {
            return None;
        }
        let mut wants = program.iter().fold(Wants::NOTHING, |all, (_, wants)| all | *wants);
        if for_store {
            wants = wants | Wants::EVENTS;
        }
        if stream.is_some() {
            wants = wants | Wants::EVENTS | Wants::MESSAGES | Wants::PIECES;
        }
        let scope = EventScope::now(turn, Span::of_turn(turn.input.parent_span_id));
        Some(Arc::new(Self { scope, wants, program, stream, for_store: for_store.then(Lock::default) }))
    }

    /// Returns the span of the turn.
    pub(super) fn span(&self) -> Span {
        self.scope.span
    }

    pub(super) fn wants(&self, what: Wants) -> bool {
        self.wants.contains(what)
    }

    /// Returns whether the turn has a stream.
    pub(super) fn has_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Tells a runtime event.
    pub(super) fn event(&self, event: RuntimeEvent) {
        let event = Arc::new(event);
        self.tell(Wants::EVENTS, |told| told(event.scope(), &Told::Event(&event)));
        if let Some(events) = &self.for_store {
            events.lock().push(Arc::clone(&event));
        }
        self.send(|| TurnUpdate::Event(event));
    }

    /// Tells a message event.
    pub(super) fn message(&self, event: &MessageEvent) {
        self.tell(Wants::MESSAGES, |told| told(&self.now(self.span()), &Told::Message(event)));
        self.send(|| TurnUpdate::Message(event.clone()));
    }

    /// Tells that the messages of the turn begin again. Its stream has none of before.
    pub(super) fn taken_back(&self) {
        self.tell(Wants::MESSAGES, |told| told(&self.now(self.span()), &Told::TakenBack));
    }

    /// Tells that the turn is committed.
    pub(super) fn ended(&self, outcome: &TurnOutcome) {
        self.tell(Wants::NOTHING, |told| told(&self.now(self.span()), &Told::Ended(outcome)));
    }

    /// Tells a piece of the answer of a step, whose span is `span`.
    pub(super) fn piece(&self, step: u32, span: Span, piece: ModelDelta<'_>) {
        self.tell(Wants::PIECES, |told| told(&self.now(span), &Told::Piece { step, piece }));
        self.send(|| of_delta(step, piece));
    }

    /// Tells how far a tool call is.
    pub(super) fn progress(&self, progress: ToolProgress) {
        self.tell(Wants::PIECES, |told| told(&self.now(self.span()), &Told::Progress(&progress)));
        let ToolProgress { tool_call_id: call, done, total, text, .. } = progress;
        self.send(|| TurnUpdate::Progress { call, done, total, text });
    }

    /// Tells the output of a tool call, and whether its presenter made it.
    pub(super) fn output(&self, call: &ToolCallId, (text, by_presenter): (String, bool)) {
        self.tell(Wants::PIECES, |told| {
            told(&self.now(self.span()), &Told::Output { call, text: &text, by_presenter });
        });
        self.send(|| TurnUpdate::Output { call: call.clone(), text, by_presenter });
    }

    /// Returns the runtime events for the store. There are none later.
    pub(crate) fn take_runtime_events(&self) -> Vec<RuntimeEvent> {
        let events = self.for_store.as_ref().map(|events| std::mem::take(&mut *events.lock())).unwrap_or_default();
        events.into_iter().map(Arc::unwrap_or_clone).collect()
    }

    fn now(&self, span: Span) -> EventScope {
        let mut scope = self.scope.clone();
        (scope.timestamp, scope.span) = (Timestamp::now(), span);
        scope
    }

    /// Tells the observers that want `what`. For none of them, nothing is made.
    fn tell(&self, what: Wants, tell: impl FnOnce(&dyn Fn(&EventScope, &Told<'_>))) {
        if self.program.iter().any(|(_, wants)| wants.contains(what)) {
            tell(&|scope, told| {
                let wanting = self.program.iter().filter(|(_, wants)| wants.contains(what));
                wanting.for_each(|(observing, _)| observing.tell(scope, told));
            });
        }
    }

    fn send(&self, update: impl FnOnce() -> TurnUpdate) {
        if let Some(stream) = &self.stream {
            stream.send(update());
        }
    }
}

impl Watching for Watch {
    fn wants_shown(&self) -> bool {
        self.wants(Wants::PIECES)
    }

    fn has_room(&self) -> bool {
        self.stream.as_ref().is_none_or(UpdateSender::has_room)
    }

    fn show(&self, shown: &ExtensionShown) {
        self.tell(Wants::PIECES, |told| told(&self.now(self.span()), &Told::Shown(shown)));
        if let Some(stream) = &self.stream {
            stream.send_counted(TurnUpdate::Shown(shown.clone()));
        }
    }
}

fn of_delta(step: u32, delta: ModelDelta<'_>) -> TurnUpdate {
    match delta {
        ModelDelta::Text { part, text } => TurnUpdate::Text { step, part, text: text.to_owned() },
        ModelDelta::Reasoning { part, text } => TurnUpdate::Reasoning { step, part, text: text.to_owned() },
        ModelDelta::ToolCall { part, id, name } => {
            TurnUpdate::ToolCall { step, part, id: id.to_owned().into(), name: name.to_owned() }
        }
        ModelDelta::Arguments { part, json } => TurnUpdate::Arguments { step, part, json: json.to_owned() },
        ModelDelta::Restart { reason, wait } => TurnUpdate::Restart { step, reason: reason.to_owned(), wait },
    }
}
