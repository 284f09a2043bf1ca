//! The conversations that wait for one another's answers: a circle of them would never end.
// AGENTS-05

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use goondan_core::{Error, ErrorCode, Result};
use goondan_lock::Lock;

use crate::ports::store::InstanceId;

/// Each conversation whose turn waits for the answer of others, with those, once for each request.
#[derive(Clone, Default)]
pub(super) struct Circles(Arc<Lock<HashMap<InstanceId, Vec<InstanceId>>>>);

/// A request that a turn waits for, until this is dropped.
pub(super) struct Request {
    circles: Circles,
    asker: InstanceId,
    asked: InstanceId,
}

impl Circles {
    /// Takes in that the turn of `asker` waits for an answer of `asked`.
    ///
    /// # Errors
    /// `CIRCULAR_CALL_DETECTED` if the turn of `asked` waits for `asker`, maybe through others.
    pub(super) fn enter(&self, asker: InstanceId, asked: InstanceId) -> Result<Request> {
        let mut waiting = self.0.lock();
        if let Some(way) = way(&waiting, &asked, &asker) {
            return Err(circle(&asker, &way));
        }
        waiting.entry(asker.clone()).or_default().push(asked.clone());
        Ok(Request { circles: self.clone(), asker, asked })
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut waiting = self.circles.0.lock();
        let Some(asked) = waiting.get_mut(&self.asker) else { return };
        if let Some(at) = asked.iter().position(|asked| *asked == self.asked) {
            asked.swap_remove(at);
        }
        if asked.is_empty() {
            waiting.remove(&self.asker);
        }
    }
}

/// Returns the shortest chain of conversations from `start` to `end` of which each waits for the next.
fn way(
    waiting: &HashMap<InstanceId, Vec<InstanceId>>,
    start: &InstanceId,
    end: &InstanceId,
) -> Option<Vec<InstanceId>> {
    if start != end && !waiting.contains_key(start) {
        // Most of those that are asked wait for nothing.
        return None;
    }
    let mut reached_from = HashMap::from([(start, None)]);
    let mut next = VecDeque::from([start]);
    while let Some(at) = next.pop_front() {
        if at == end {
            let mut way: Vec<_> = std::iter::successors(Some(at), |at| *reached_from.get(at)?).cloned().collect();
            way.reverse();
            return Some(way);
        }
        for asked in waiting.get(at).into_iter().flatten() {
            reached_from.entry(asked).or_insert_with(|| {
                next.push_back(asked);
                Some(at)
            });
        }
    }
    None
}

#[cold]
fn circle(asker: &InstanceId, way: &[InstanceId]) -> Error {
    let chain: Vec<_> = std::iter::once(asker).chain(way).map(InstanceId::to_string).collect();
    let message = format!("conversations would wait for one another in a circle: {}", chain.join(" -> "));
    Error::new(ErrorCode::CIRCULAR_CALL_DETECTED, message)
        .suggest("answer from what is known, use `send`, which does not wait, or ask for a conversation of its own")
}
