//! ONCE-01: events that were accepted wait until they are answered, in memory and in files.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use goondan::agent::AgentCall;
use goondan::event::AgentEvent;
use goondan::middleware::FinishReason;
use goondan::name::{AgentName, InstanceKey};
use goondan::store::{FileStore, Fsync, MemoryQueue, Queue, TurnOutcome};
use goondan::{ErrorCode, json};
use goondan_covers::covers;
use tempfile::TempDir;

const MANY: NonZeroUsize = NonZeroUsize::new(100).unwrap();

fn store(dir: &TempDir) -> FileStore {
    FileStore::open(dir.path().join("workspace")).unwrap().fsync(Fsync::Never)
}

/// The queues, each with the directory in which it keeps its file.
fn queues() -> Vec<(Arc<dyn Queue>, Option<TempDir>)> {
    let dir = TempDir::new().unwrap();
    let files = store(&dir).queue().unwrap();
    vec![(Arc::new(MemoryQueue::new()), None), (Arc::new(files), Some(dir))]
}

fn call(key: &str, id: &str) -> AgentCall {
    let event = AgentEvent::input(format!("input of {id}")).with_id(id);
    AgentCall::new(AgentName::new("assistant").unwrap(), InstanceKey::new(key).unwrap(), event)
}

async fn taken(queue: &dyn Queue) -> Vec<AgentCall> {
    queue.take(MANY).await.unwrap()
}

fn ids(calls: &[AgentCall]) -> Vec<&str> {
    calls.iter().map(|call| call.event.id.as_str()).collect()
}

fn answered(call: &AgentCall) -> TurnOutcome {
    TurnOutcome::answered(call.event.id.clone(), FinishReason::TextResponse)
}

#[tokio::test(start_paused = true)]
#[covers("ONCE-01")]
async fn events_of_an_instance_are_taken_one_after_another_in_their_order() {
    for (queue, _dir) in queues() {
        for (key, id) in [("a", "1"), ("a", "2"), ("b", "3"), ("a", "4"), ("c", "1")] {
            queue.put(call(key, id)).await.unwrap();
        }
        assert_eq!(ids(&queue.take(NonZeroUsize::MIN).await.unwrap()), ["1"]);
        let others = taken(&*queue).await;
        assert_eq!(ids(&others), ["3", "1"], "not those of an instance whose turn runs");
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), taken(&*queue)).await.is_err());
        queue.give_back(&call("a", "1"));
        let again = taken(&*queue).await;
        assert_eq!(ids(&again), ["1"]);
        let (next, done) = tokio::join!(taken(&*queue), queue.done(&again[0], answered(&again[0])));
        done.unwrap();
        assert_eq!(ids(&next), ["2"]);
        queue.done(&next[0], answered(&next[0])).await.unwrap();
        assert_eq!(ids(&taken(&*queue).await), ["4"]);
    }
}

#[tokio::test]
#[covers("ONCE-01")]
async fn an_event_is_put_once_and_its_outcome_is_waited_for() {
    for (queue, _dir) in queues() {
        let first = call("a", "1");
        for _ in 0..3 {
            queue.put(first.clone()).await.unwrap();
        }
        let mut other = first.clone();
        other.event.input = Some("something else".to_owned());
        assert_eq!(queue.put(other).await.unwrap_err().code(), &ErrorCode::EVENT_REUSED);
        let (instance, event) = (first.instance_id(), first.event.id.clone());
        assert_eq!(queue.outcome(&instance, &"2".into()).await.unwrap(), None);
        let answer = async {
            let calls = taken(&*queue).await;
            assert_eq!(calls, std::slice::from_ref(&first));
            queue.done(&calls[0], answered(&calls[0])).await.unwrap();
        };
        let waits = || queue.outcome(&instance, &event);
        let (one, other, ()) = tokio::join!(waits(), waits(), answer);
        assert_eq!((one.unwrap(), other.unwrap()), (Some(answered(&first)), Some(answered(&first))));
        assert_eq!(waits().await.unwrap(), None, "it is not in the queue any more");
    }
}

#[tokio::test]
#[covers("ONCE-01")]
async fn what_was_accepted_and_not_answered_is_taken_by_the_next_process() {
    let dir = TempDir::new().unwrap();
    let queue = store(&dir).queue().unwrap();
    assert_eq!(store(&dir).queue().unwrap_err().code(), &ErrorCode::STORE_LOCKED);
    for id in ["1", "2", "3"] {
        queue.put(call(&format!("of {id}"), id)).await.unwrap();
    }
    let calls = taken(&queue).await;
    queue.done(&calls[1], answered(&calls[1])).await.unwrap();
    drop(queue);

    let inbox = dir.path().join("workspace/inbox.jsonl");
    let bytes = fs::read(&inbox).unwrap();
    let next = store(&dir).queue().unwrap();
    assert_eq!(taken(&next).await, [calls[0].clone(), calls[2].clone()], "with everything but the one that is done");
    drop(next);
    // A line that was not written to its end was not acknowledged.
    for end in (0..bytes.len()).step_by(7) {
        fs::write(&inbox, &bytes[..end]).unwrap();
        let queue = store(&dir).queue().unwrap();
        queue.put(call("last", "last")).await.unwrap();
        let whole = bytes[..end].iter().filter(|byte| **byte == b'\n').count();
        let waiting = whole.min(3) - usize::from(whole == 4);
        assert_eq!(taken(&queue).await.len(), waiting + 1, "{end} of {} bytes", bytes.len());
    }
    // Anything else was changed by somebody.
    for place in [3, bytes.len() / 2] {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        fs::write(&inbox, &changed).unwrap();
        let error = store(&dir).queue().unwrap_err();
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED, "{error:?}");
        assert!(error.message().contains("inbox.jsonl"), "{error:?}");
    }
}

#[tokio::test]
async fn a_queue_does_not_grow_and_keeps_no_credentials() {
    let dir = TempDir::new().unwrap();
    let queue = store(&dir).queue().unwrap();
    let mut kept = call("kept", "kept");
    kept.event.auth =
        Some(serde_json::from_value(json!({ "principal": { "type": "user", "id": "7" }, "token": "s3cret" })).unwrap());
    queue.put(kept).await.unwrap();
    let size = |dir: &Path| fs::metadata(dir.join("workspace/inbox.jsonl")).unwrap().len();
    let first = size(dir.path());
    for number in 0..3000 {
        let call = call("a", &number.to_string());
        queue.put(call.clone()).await.unwrap();
        queue.done(&call, answered(&call)).await.unwrap();
    }
    assert!(size(dir.path()) < 1100 * 2 * first, "{} bytes", size(dir.path()));
    let text = fs::read_to_string(dir.path().join("workspace/inbox.jsonl")).unwrap();
    assert!(text.contains(r#""id":"7""#) && !text.contains("s3cret"));
    drop(queue);
    let calls = taken(&store(&dir).queue().unwrap()).await;
    assert_eq!(ids(&calls), ["kept"]);
}
