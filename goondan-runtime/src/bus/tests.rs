//! Tests of the bus (EVENT-01..08). Handlers are held at gates, and no test waits for time to pass.

mod log;

use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Waker};

use goondan_core::{Error, ExtensionName, Result};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use super::table::QUEUE;
use super::*;

const LONG: Duration = Duration::from_secs(60);

fn bus() -> Bus {
    Bus::new(Handle::current())
}

fn event(name: &str, number: usize) -> Event {
    Event::new(name, (number,)).unwrap()
}

fn owner(name: &str) -> Owner {
    Owner { extension: ExtensionName::new(name).unwrap(), number: 0 }
}

/// A handler that reports each event when it starts, waits at its gate, and reports the event again.
struct GatedHandler {
    number: u64,
    /// Each permit opens the gate for one event.
    gate: Arc<Semaphore>,
    /// Events for which the handler has started, before the gate.
    started: mpsc::UnboundedReceiver<usize>,
    /// Events for which the handler is done.
    handled: mpsc::UnboundedReceiver<usize>,
}

impl GatedHandler {
    fn new(bus: &Bus, owner: Option<&str>, pattern: &str, deliveries: Deliveries, open: bool) -> Self {
        let gate = Arc::new(Semaphore::new(if open { Semaphore::MAX_PERMITS } else { 0 }));
        let (started_tx, started) = mpsc::unbounded_channel();
        let (handled_tx, handled) = mpsc::unbounded_channel();
        let handler_gate = Arc::clone(&gate);
        let handler = move |event: Event| {
            let (gate, started, handled) = (Arc::clone(&handler_gate), started_tx.clone(), handled_tx.clone());
            async move {
                let number = event.payload()?;
                started.send(number).unwrap();
                gate.acquire().await.unwrap().forget();
                handled.send(number).unwrap();
                Ok(())
            }
        };
        let number = bus.subscribe(owner.map(self::owner), pattern.parse().unwrap(), deliveries, Arc::new(handler));
        Self { number, gate, started, handled }
    }

    fn open(bus: &Bus, pattern: &str) -> Self {
        Self::new(bus, None, pattern, Deliveries::All, true)
    }

    fn held(bus: &Bus, owner: &str, pattern: &str) -> Self {
        Self::new(bus, Some(owner), pattern, Deliveries::All, false)
    }

    fn open_gate(&self) {
        self.gate.add_permits(10_000);
    }

    /// Returns the events that were handled since the last call.
    fn handled(&mut self) -> Vec<usize> {
        std::iter::from_fn(|| self.handled.try_recv().ok()).collect()
    }
}

/// Subscribes a handler without a gate.
fn listen<Fut>(bus: &Bus, owner: &str, pattern: &str, handler: impl Fn(Event) -> Fut + Send + Sync + 'static)
where
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    bus.subscribe(Some(self::owner(owner)), pattern.parse().unwrap(), Deliveries::All, Arc::new(handler));
}

#[tokio::test]
async fn every_matching_handler_gets_all_arguments_unchanged() {
    let bus = bus();
    let (tx, mut rx) = mpsc::unbounded_channel();
    for pattern in ["note.added", "note.*", "other"] {
        let tx = tx.clone();
        listen(&bus, "notes", pattern, move |event| {
            let tx = tx.clone();
            async move {
                tx.send((pattern, event.args().to_vec())).unwrap();
                Ok(())
            }
        });
    }
    bus.emit(Event::new("note.added", ("milk", json!({ "deep": [1, null] }), 2.5)).unwrap());
    assert_eq!(bus.drain(LONG).await, 0);
    let args: Vec<Value> = vec![json!("milk"), json!({ "deep": [1, null] }), json!(2.5)];
    let mut all: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
    all.sort_by_key(|(pattern, _)| *pattern);
    assert_eq!(all, [("note.*", args.clone()), ("note.added", args)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_gets_events_in_the_order_of_emission() {
    let bus = bus();
    let mut listener = GatedHandler::open(&bus, "*");
    for round in 0..20 {
        let numbers: Vec<_> = (round * 100..(round + 1) * 100).collect();
        numbers.iter().for_each(|number| bus.emit(event("a", *number)));
        assert_eq!(bus.drain(LONG).await, 0);
        assert_eq!(listener.handled(), numbers);
    }
}

#[tokio::test]
async fn an_ended_subscription_gets_neither_queued_nor_later_events() {
    let bus = bus();
    let mut listener = GatedHandler::held(&bus, "ext", "*");
    for number in 0..3 {
        bus.emit(event("a", number));
    }
    assert_eq!(listener.started.recv().await, Some(0));
    bus.unsubscribe(listener.number);
    bus.emit(event("a", 3));
    listener.open_gate();
    assert_eq!(bus.drain(LONG).await, 0);
    assert_eq!(listener.handled(), [0], "a running handler is not interrupted");
    assert!(listener.handled.recv().await.is_none(), "the handler is dropped");
}

#[tokio::test]
async fn removing_an_extension_ends_its_subscriptions_only() {
    let bus = bus();
    let mut gone = [GatedHandler::held(&bus, "gone", "a"), GatedHandler::held(&bus, "gone", "*")];
    let mut stays = GatedHandler::new(&bus, Some("stays"), "*", Deliveries::All, true);
    let mut program = GatedHandler::open(&bus, "*");
    bus.unsubscribe_owner(&Owner { number: 1, ..owner("stays") });
    bus.unsubscribe_owner(&owner("gone"));
    bus.emit(event("a", 1));
    assert_eq!(bus.drain(LONG).await, 0);
    assert!(gone.iter_mut().all(|listener| listener.handled().is_empty()));
    assert_eq!((stays.handled(), program.handled()), (vec![1], vec![1]));
}

#[tokio::test]
async fn a_full_queue_loses_the_newest_events_and_reports_it_once() {
    let log = log::capture();
    let bus = bus();
    let mut slow = GatedHandler::held(&bus, "slow", "a*");
    let mut quick = GatedHandler::open(&bus, "*");
    bus.emit(event("a", 0));
    assert_eq!(slow.started.recv().await, Some(0));
    for number in 1..=QUEUE + 7 {
        bus.emit(event("a", number));
    }
    assert!(log.lines("too slow").is_empty(), "the burst is not over");
    slow.open_gate();
    assert_eq!(bus.drain(LONG).await, 0);
    assert_eq!(slow.handled(), (0..=QUEUE).collect::<Vec<_>>());
    // On one thread, the worker of `quick` did not run during the burst either.
    assert_eq!(quick.handled().len(), QUEUE + 1);
    let [line] = &log.lines("extension=slow")[..] else { panic!("not once: {log:?}") };
    assert!(line.starts_with("WARN") && line.contains("pattern=a*") && line.contains("lost=7"), "{line}");
    // The subscription continues.
    bus.emit(event("a", 1000));
    assert_eq!(bus.drain(LONG).await, 0);
    assert_eq!(slow.handled(), [1000]);
    assert_eq!(log.lines("extension=slow").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn once_is_once_when_several_threads_emit() {
    for _ in 0..50 {
        let bus = bus();
        let mut once = GatedHandler::new(&bus, None, "*", Deliveries::One, true);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let bus = &bus;
                scope.spawn(move || (0..5).for_each(|number| bus.emit(event("a", thread * 10 + number))));
            }
        });
        assert!(!bus.wants("a"));
        assert_eq!(bus.drain(LONG).await, 0);
        assert_eq!(once.handled().len(), 1);
        assert!(once.handled.recv().await.is_none(), "the handler is dropped");
    }
}

#[tokio::test]
async fn an_idle_subscription_costs_no_task() {
    let bus = bus();
    let mut listener = GatedHandler::held(&bus, "ext", "*");
    let tasks = || Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks(), 0);
    bus.emit(event("a", 1));
    bus.emit(event("a", 2));
    assert_eq!(tasks(), 1);
    listener.open_gate();
    assert_eq!(bus.drain(LONG).await, 0);
    // The worker has finished; its task ends when it is polled again.
    tokio::task::yield_now().await;
    assert_eq!((tasks(), listener.handled()), (0, vec![1, 2]));
}

#[tokio::test]
async fn a_handler_gets_one_event_at_a_time_and_others_do_not_wait_for_it() {
    let bus = bus();
    let mut held = GatedHandler::held(&bus, "held", "*");
    let mut free = GatedHandler::open(&bus, "*");
    bus.emit(event("a", 1));
    bus.emit(event("a", 2));
    assert_eq!((free.handled.recv().await, free.handled.recv().await), (Some(1), Some(2)));
    assert_eq!(held.started.recv().await, Some(1));
    assert!(held.started.try_recv().is_err(), "the second event waits for the first");
    held.gate.add_permits(1);
    assert_eq!((held.handled.recv().await, held.started.recv().await), (Some(1), Some(2)));
    held.open_gate();
    assert_eq!(bus.drain(LONG).await, 0);
}

#[tokio::test]
async fn a_handler_that_fails_or_panics_continues_and_affects_no_other() {
    let log = log::capture();
    let bus = bus();
    listen(&bus, "failing", "a*", |_| async { Err(Error::new("E_MINE", "broken").suggest("mend it")) });
    listen(&bus, "panicking", "a*", |_| async { panic!("in the future") });
    fn refuse(_: Event) -> std::future::Ready<Result<()>> {
        panic!("before the future")
    }
    listen(&bus, "refusing", "a*", refuse);
    let mut last = GatedHandler::open(&bus, "*");
    for number in 0..2 {
        bus.emit(event("a.b", number));
    }
    assert_eq!(bus.drain(LONG).await, 0);
    assert_eq!(last.handled(), [0, 1]);
    for (owner, parts) in [
        (
            "extension=failing",
            ["pattern=a*", "event=a.b", "E_MINE: extension `failing`, handler of `a*`: broken", "help: mend it"],
        ),
        ("extension=panicking", ["pattern=a*", "event=a.b", "E_EXT_PANIC", "in the future"]),
        ("extension=refusing", ["pattern=a*", "event=a.b", "E_EXT_PANIC", "before the future"]),
    ] {
        let lines = log.lines(owner);
        assert_eq!(lines.len(), 2, "once for each event: {log:?}");
        assert!(lines.iter().all(|line| line.starts_with("ERROR")));
        assert!(parts.iter().all(|part| lines[0].contains(part)), "{owner}: {}", lines[0]);
    }
}

#[tokio::test]
async fn a_subscription_continues_when_a_future_panics_in_its_drop() {
    struct Bomb(usize);
    impl Future for Bomb {
        type Output = Result<()>;

        fn poll(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert_ne!(self.0, 1, "in the drop");
        }
    }
    let log = log::capture();
    let bus = bus();
    let (tx, mut rx) = mpsc::unbounded_channel();
    listen(&bus, "bomb", "*", move |event| {
        let number = event.payload().unwrap();
        tx.send(number).unwrap();
        Bomb(number)
    });
    for number in [1, 2] {
        bus.emit(event("a", number));
        assert_eq!(bus.drain(LONG).await, 0);
        assert_eq!(rx.try_recv(), Ok(number));
    }
    let [line] = &log.lines("extension=bomb")[..] else { panic!("not once: {log:?}") };
    assert!(line.contains("E_EXT_PANIC") && line.contains("in the drop"), "{line}");
}

#[tokio::test]
async fn handlers_can_emit_and_subscribe_and_the_drain_waits_for_them() {
    let bus = bus();
    let mut second = GatedHandler::open(&bus, "second");
    let inner = bus.clone();
    listen(&bus, "ext", "first", move |_| {
        let bus = inner.clone();
        async move {
            let number = bus.subscribe(None, "x".parse()?, Deliveries::All, Arc::new(|_| async { Ok(()) }));
            bus.unsubscribe(number);
            tokio::task::yield_now().await;
            bus.emit(event("second", 2));
            Ok(())
        }
    });
    bus.emit(event("first", 1));
    assert_eq!(bus.drain(LONG).await, 0);
    assert_eq!(second.handled(), [2]);
}

#[tokio::test]
async fn a_handler_that_emits_to_itself_yields_the_thread() {
    let bus = bus();
    let inner = bus.clone();
    listen(&bus, "echo", "a", move |event| {
        inner.emit(event);
        std::future::ready(Ok(()))
    });
    bus.emit(event("a", 1));
    // Without the yields of the worker, this would never return.
    tokio::task::yield_now().await;
    bus.unsubscribe_owner(&owner("echo"));
    assert_eq!(bus.drain(LONG).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_drain_stops_at_its_timeout_and_names_the_late_handler() {
    let log = log::capture();
    let bus = bus();
    let mut late = GatedHandler::held(&bus, "late", "a");
    let mut quick = GatedHandler::open(&bus, "a");
    for number in 0..3 {
        bus.emit(event("a", number));
    }
    let begin = tokio::time::Instant::now();
    assert_eq!(bus.drain(Duration::from_secs(5)).await, 3);
    assert_eq!(begin.elapsed().as_secs(), 5);
    assert_eq!(quick.handled(), [0, 1, 2]);
    let [line] = &log.lines("is late")[..] else { panic!("not once: {log:?}") };
    assert!(line.contains("extension=late") && line.contains("events=3"), "{line}");
    late.open_gate();
    assert_eq!(bus.drain(LONG).await, 0);
    assert_eq!(late.handled(), [0, 1, 2], "late events are handled later");
}

#[test]
fn a_drain_with_nothing_to_wait_for_is_ready_at_once() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let bus = Bus::new(runtime.handle().clone());
    let _idle = GatedHandler::held(&bus, "idle", "*");
    let mut context = Context::from_waker(Waker::noop());
    // No timer can be created outside of the runtime.
    assert_eq!(pin!(bus.drain(LONG)).poll(&mut context), Poll::Ready(0));
    let _inside = runtime.enter();
    bus.emit(event("a", 1));
    assert_eq!(pin!(bus.drain(LONG)).poll(&mut context), Poll::Pending);
}

#[tokio::test]
async fn the_bus_reports_whether_an_event_has_subscriptions() {
    let bus = bus();
    assert!(!bus.wants("turn.started") && !bus.has_subscriptions());
    let turns = GatedHandler::open(&bus, "turn.*");
    assert!(bus.wants("turn.started") && !bus.wants("step.started"));
    bus.unsubscribe(turns.number);
    assert!(!bus.wants("turn.started") && !bus.has_subscriptions());
}

#[tokio::test]
async fn threads_outside_of_the_runtime_can_emit() {
    let bus = bus();
    let mut listener = GatedHandler::open(&bus, "*");
    let emitter = bus.clone();
    std::thread::spawn(move || emitter.emit(event("a", 1))).join().unwrap();
    assert_eq!(listener.handled.recv().await, Some(1));
}

#[tokio::test]
async fn a_closed_bus_drops_handlers_that_own_it() {
    let bus = bus();
    for close in [true, false] {
        let inner = bus.clone();
        listen(&bus, "ext", "*", move |_| {
            let _held = &inner;
            std::future::ready(Ok(()))
        });
        bus.emit(event("a", 1));
        if close {
            bus.close();
        }
        assert_eq!(bus.drain(LONG).await, 0);
    }
    tokio::task::yield_now().await;
    assert_eq!(Arc::strong_count(&bus.shared), 1);
}

#[test]
fn a_dropped_runtime_loses_events_only() {
    let log = log::capture();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let bus = Bus::new(runtime.handle().clone());
    let ran = Arc::new(AtomicBool::new(false));
    let run = Arc::clone(&ran);
    listen(&bus, "ext", "*", move |_| {
        run.store(true, Ordering::Release);
        std::future::pending()
    });
    bus.emit(event("a", 1));
    drop(runtime);
    bus.emit(event("a", 2));
    assert!(!ran.load(Ordering::Acquire) && bus.shared.table.lock().is_quiet());
    assert_eq!(log.lines("extension=ext").len(), 2);
}
