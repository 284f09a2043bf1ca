//! When a request is sent again.

use std::time::Duration;

use goondan_backoff::Backoff;

use super::failure::Failure;

/// Attempts of a request, and their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retries {
    /// The most attempts of one request, the first one included.
    pub max: u32,
    /// The longest sum of the waits between them.
    pub budget: Duration,
}

/// The waits if the provider does not ask for others.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(30) };

/// The attempts of one request so far.
#[derive(Debug)]
pub struct Waits {
    retries: Retries,
    attempts: u32,
    waited: Duration,
}

impl Waits {
    /// Returns the count of a request without failed attempts.
    pub fn new(retries: Retries) -> Self {
        Self { retries, attempts: 0, waited: Duration::ZERO }
    }

    /// Returns how many attempts have failed.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Notes a failed attempt, and returns how long to wait for the next one. `None` if there is none: it would not
    /// help, or there were enough, or the wait would go beyond the budget.
    pub fn after(&mut self, failure: &Failure) -> Option<Duration> {
        self.attempts += 1;
        if !failure.kind().is_retryable() || self.attempts >= self.retries.max {
            return None;
        }
        let wait = match failure.retry_after() {
            // A provider that asks for none would be asked as fast as it refuses.
            Some(Duration::ZERO) => BACKOFF.random(1),
            Some(wait) => wait,
            None => BACKOFF.random(self.attempts),
        };
        let waited = self.waited.checked_add(wait).filter(|waited| *waited <= self.retries.budget)?;
        self.waited = waited;
        Some(wait)
    }

    /// Notes an attempt that is repeated in another form, at once.
    pub fn changed(&mut self) {
        self.attempts += 1;
    }
}
