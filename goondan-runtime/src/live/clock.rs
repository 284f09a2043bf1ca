//! The clock of the deadlines of a conversation, which stands still while a person is asked.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use goondan_lock::Lock;
use tokio::time::Instant;

/// Says how long the deadlines of a conversation's turn have stood still. Nothing is allocated before the first request or
/// live question.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<OnceLock<Box<Lock<Hands>>>>);

#[derive(Default)]
struct Hands {
    /// The number of stops that hold it.
    stops: usize,
    since: Option<Instant>,
    /// The time for which it has stood still, until it was last started.
    stood: Duration,
    /// The clocks of the conversations that wait for this one, each with its number.
    waiting: Vec<(usize, Clock)>,
    numbers: usize,
}

/// Stops a clock, and those of the conversations that wait for it, until it is dropped.
pub(crate) struct Stop(Clock);

/// Lets a clock stop with another one, until it is dropped.
pub(crate) struct Link {
    awaited: Clock,
    number: usize,
}

impl PartialEq for Clock {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.stood())
    }
}

impl Clock {
    fn hands(&self) -> &Lock<Hands> {
        self.0.get_or_init(Box::default)
    }

    /// Returns how long it has stood still.
    pub(crate) fn stood(&self) -> Duration {
        let Some(hands) = self.0.get() else { return Duration::ZERO };
        let hands = hands.lock();
        hands.stood + hands.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Stops the clock.
    pub(crate) fn stop(&self) -> Stop {
        self.add_stop();
        Stop(self.clone())
    }

    /// Stops this clock whenever `awaited` stands still.
    pub(crate) fn follow(&self, awaited: &Self) -> Link {
        let mut hands = awaited.hands().lock();
        hands.numbers += 1;
        let number = hands.numbers;
        hands.waiting.push((number, self.clone()));
        // Agents do not wait for one another in a circle, so the locks are always taken in the same order.
        if hands.stops > 0 {
            self.add_stop();
        }
        drop(hands);
        Link { awaited: awaited.clone(), number }
    }

    fn add_stop(&self) {
        let mut hands = self.hands().lock();
        hands.stops += 1;
        if hands.stops == 1 {
            hands.since = Some(Instant::now());
            hands.waiting.iter().for_each(|(_, waiting)| waiting.add_stop());
        }
    }

    fn remove_stop(&self) {
        let mut hands = self.hands().lock();
        hands.stops -= 1;
        if hands.stops == 0 {
            let stood = hands.since.take().map(|since| since.elapsed()).unwrap_or_default();
            hands.stood += stood;
            hands.waiting.iter().for_each(|(_, waiting)| waiting.remove_stop());
        }
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.remove_stop();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut hands = self.awaited.hands().lock();
        let Some(at) = hands.waiting.iter().position(|(number, _)| *number == self.number) else { return };
        let (_, waiting) = hands.waiting.swap_remove(at);
        if hands.stops > 0 {
            waiting.remove_stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_stands_still_with_those_that_it_waits_for() {
        let (parent, child, grandchild) = (Clock::default(), Clock::default(), Clock::default());
        let second = || tokio::time::advance(Duration::from_secs(1));
        let all = || [&parent, &child, &grandchild].map(|clock| clock.stood().as_secs());
        let early = parent.follow(&child);
        let stop = grandchild.stop();
        second().await;
        let late = child.follow(&grandchild);
        second().await;
        assert_eq!(all(), [1, 1, 2]);
        let other = child.stop();
        drop(late);
        second().await;
        assert_eq!(all(), [2, 2, 3], "the child is stopped by itself");
        drop((stop, other));
        second().await;
        assert_eq!(all(), [2, 2, 3]);
        let own = child.stop();
        second().await;
        drop(early);
        second().await;
        drop(own);
        assert_eq!(all(), [3, 4, 3]);
    }
}
