//! When a server that failed is started again.

use std::time::{Duration, Instant};

use goondan_backoff::Backoff;

/// The waits between two starts.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(64) };
/// The time that a server that failed too often is left alone.
const PAUSE: Duration = Duration::from_secs(60);

/// The failures of a server in a row.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    failures: u32,
    last: Option<Instant>,
}

/// The permission to start a server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// After this wait.
    After(Duration),
    /// Not before this has passed.
    NotFor(Duration),
}

impl Restarts {
    /// Notes that the server could not be started, or ended by itself.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.last = Some(now);
    }

    /// Notes that the server answered.
    pub(crate) fn answered(&mut self) {
        *self = Self::default();
    }

    /// Returns the number of failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns whether the server may be started, if it may be started again `limit` times in a row.
    pub(crate) fn next(&self, limit: u32, now: Instant) -> Start {
        let Some(last) = self.last else { return Start::After(Duration::ZERO) };
        let passed = now.saturating_duration_since(last);
        if self.failures > limit {
            return match PAUSE.saturating_sub(passed) {
                Duration::ZERO => Start::After(Duration::ZERO),
                rest => Start::NotFor(rest),
            };
        }
        Start::After(BACKOFF.after(self.failures).saturating_sub(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(times: u32, now: Instant) -> Restarts {
        let mut restarts = Restarts::default();
        (0..times).for_each(|_| restarts.failed(now));
        restarts
    }

    #[test]
    fn the_wait_doubles_up_to_about_a_minute() {
        let now = Instant::now();
        let waits = |times| failed(times, now).next(100, now);
        assert_eq!(waits(0), Start::After(Duration::ZERO));
        assert_eq!([1, 2, 3].map(waits), [250, 500, 1000].map(|ms| Start::After(Duration::from_millis(ms))));
        assert_eq!([9, 10, 90].map(waits), [64, 64, 64].map(|seconds| Start::After(Duration::from_secs(seconds))));
        let later = now + Duration::from_millis(400);
        assert_eq!(failed(2, now).next(100, later), Start::After(Duration::from_millis(100)));
    }

    #[test]
    fn after_the_limit_a_minute_passes_between_two_starts() {
        let now = Instant::now();
        assert_eq!(failed(6, now).next(5, now), Start::NotFor(PAUSE));
        assert_eq!(failed(6, now).next(5, now + PAUSE), Start::After(Duration::ZERO));
        assert_eq!(failed(7, now + PAUSE).next(5, now + PAUSE), Start::NotFor(PAUSE));
        assert_eq!(failed(1, now).next(0, now), Start::NotFor(PAUSE), "it is not started again");
    }

    #[test]
    fn an_answer_forgets_the_failures() {
        let now = Instant::now();
        let mut restarts = failed(6, now);
        restarts.answered();
        assert_eq!(restarts.next(0, now), Start::After(Duration::ZERO));
    }
}
