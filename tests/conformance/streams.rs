//! Streams of 10,000 pieces: watchers that are slow or leave, and turns that are cancelled in mid-answer.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use goondan::agent::{AgentBuilder, TurnStream, TurnUpdate};
use goondan::conversation::Message;
use goondan::middleware::TurnResult;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse, ScriptItem};
use goondan::store::FileStore;
use goondan::{Agent, BoxFuture, Result};
use tokio::sync::{Notify, Semaphore};
use tokio::task::yield_now;

use crate::support::agent;

const PIECES: usize = 10_000;

fn piece(number: usize) -> String {
    format!("{number} ")
}

fn text(pieces: usize) -> String {
    (0..pieces).map(piece).collect()
}

/// A model that sends one piece each time it is polled. Clones share what they note.
#[derive(Clone, Default)]
struct Piecewise(Arc<Notes>);

#[derive(Default)]
struct Notes {
    /// How many pieces were sent.
    sent: AtomicUsize,
    /// Notified when half of the pieces were sent.
    half: Notify,
    /// How many answers were dropped before they were complete.
    dropped: AtomicUsize,
    /// The texts of the newest request.
    request: Mutex<Vec<String>>,
}

/// Counts an answer that is dropped.
struct Answering<'a>(&'a Notes);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl Model for Piecewise {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        let Self(notes) = self;
        *notes.request.lock().unwrap() =
            request.messages().map(|message| message.content.text().into_owned()).collect();
        Box::pin(async move {
            let answering = Answering(notes);
            for number in 0..PIECES {
                deltas.send(ModelDelta::Text { part: 0, text: &piece(number) });
                if notes.sent.fetch_add(1, Ordering::SeqCst) + 1 == PIECES / 2 {
                    notes.half.notify_one();
                }
                yield_now().await;
            }
            std::mem::forget(answering);
            Ok(ModelResponse::text(text(PIECES)))
        })
    }
}

/// What a watcher shares with the test: it takes a piece for each permit.
struct Gate {
    permits: Semaphore,
    taken: AtomicUsize,
}

/// Reads a stream, and returns the pieces and the result.
async fn watch(mut turn: TurnStream, gate: Arc<Gate>) -> (Vec<String>, Result<TurnResult>) {
    let mut pieces = Vec::new();
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Text { step: 0, part: 0, text } = update {
            pieces.push(text);
            gate.taken.fetch_add(1, Ordering::SeqCst);
            gate.permits.acquire().await.unwrap().forget();
        }
    }
    (pieces, turn.finish().await)
}

/// Runs a turn with a watcher that waits at a gate after each piece. `paused` is called whenever it waits, with the
/// number of pieces that it has taken.
async fn watch_slowly(agent: AgentBuilder, paused: impl Fn(usize)) {
    let agent = agent.build().unwrap();
    let gate = Arc::new(Gate { permits: Semaphore::new(0), taken: AtomicUsize::new(0) });
    let turn = agent.instance("test").await.unwrap().run_stream("hello");
    let watcher = tokio::spawn(watch(turn, Arc::clone(&gate)));
    let mut permits = 0;
    for more in [0, 1, 1, 10, 100, 1_000] {
        permits += more;
        gate.permits.add_permits(more);
        while gate.taken.load(Ordering::SeqCst) <= permits {
            yield_now().await;
        }
        // Time enough for a turn that would run without its watcher.
        for _ in 0..1_000 {
            yield_now().await;
        }
        assert_eq!(gate.taken.load(Ordering::SeqCst), permits + 1);
        paused(permits + 1);
    }
    gate.permits.add_permits(PIECES);
    let (pieces, turn) = watcher.await.unwrap();
    assert_eq!((pieces.len(), pieces.concat()), (PIECES, text(PIECES)), "every piece, in order");
    assert_eq!(turn.unwrap().text(), text(PIECES));
}

#[tokio::test]
async fn a_slow_watcher_loses_nothing_and_holds_the_model_back() {
    let model = Piecewise::default();
    let notes = Arc::clone(&model.0);
    watch_slowly(Agent::builder("assistant").model(model), |taken| {
        // What the watcher has not taken is what one poll of the turn sent: here, nothing.
        assert_eq!(notes.sent.load(Ordering::SeqCst), taken);
    })
    .await;
    // All pieces in one poll.
    let item = ScriptItem::say(text(PIECES)).pieces(NonZeroU32::new(PIECES as u32).unwrap());
    let agent = agent([item]).build().unwrap();
    let mut turn = agent.instance("test").await.unwrap().run_stream("hello");
    let (mut said, mut pieces) = (String::new(), 0);
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Text { text, .. } = update {
            said += &text;
            pieces += 1;
            yield_now().await;
        }
    }
    assert_eq!((pieces, said), (PIECES, text(PIECES)));
}

/// How a turn is cancelled after half of the pieces.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cancelled {
    /// Its stream is dropped.
    Stream,
    /// It has no stream, and the future of `run` is dropped.
    Run,
}

fn texts(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().map(|message| message.text().into_owned()).collect()
}

#[tokio::test]
async fn a_turn_that_is_cancelled_in_mid_answer_keeps_what_was_said() {
    for cancelled in [Cancelled::Stream, Cancelled::Run] {
        let dir = tempfile::tempdir().unwrap();
        let model = Piecewise::default();
        let notes = Arc::clone(&model.0);
        let agent = Agent::builder("assistant").model(model).store(FileStore::open(dir.path()).unwrap());
        let agent = agent.build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        match cancelled {
            Cancelled::Stream => {
                let mut turn = instance.run_stream("hello");
                while notes.sent.load(Ordering::SeqCst) < PIECES / 2 {
                    turn.next().await.unwrap();
                }
                // A watcher that leaves.
                drop(turn);
            }
            Cancelled::Run => tokio::select! {
                biased;
                () = notes.half.notified() => {}
                _ = instance.run("hello") => panic!("it was not answered"),
            },
        }
        assert_eq!(notes.dropped.load(Ordering::SeqCst), 1, "{cancelled:?}: the request ended with its reader");
        let sent = notes.sent.swap(0, Ordering::SeqCst);
        assert!((PIECES / 2..PIECES).contains(&sent), "{cancelled:?}: {sent}");

        assert_eq!(instance.run("again").await.unwrap().text(), text(PIECES), "{cancelled:?}");
        let partial = text(sent);
        assert_eq!(*notes.request.lock().unwrap(), ["hello", &partial, "again"], "{cancelled:?}");
        agent.close().await.unwrap();
        // From the disk.
        let messages = agent.instance("test").await.unwrap().messages().await.unwrap();
        assert_eq!(texts(&messages), ["hello", &partial, "again", &text(PIECES)], "{cancelled:?}");
        let marks: Vec<_> = messages.iter().map(|message| message.metadata().get("partial").is_some()).collect();
        assert_eq!(marks, [false, true, false, false]);
        assert_eq!(messages[1].metadata()["partial"], true);
    }
}
