//! Waits that double with each failure, for the ready-made extensions of goondan and for those of users.
//!
//! ```
//! use std::time::Duration;
//!
//! use goondan::Result;
//! use goondan_backoff::Backoff;
//!
//! const BACKOFF: Backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(30) };
//!
//! /// For a middleware around steps: a busy model is asked again, five times.
//! async fn asked<T>(ask: impl AsyncFn() -> Result<T>) -> Result<T> {
//!     for failures in 1..=5 {
//!         match ask().await {
//!             Err(error) if error.is_retryable() => tokio::time::sleep(BACKOFF.random(failures)).await,
//!             answer => return answer,
//!         }
//!     }
//!     ask().await
//! }
//! ```

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::time::Duration;

/// The wait after failures in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure. It doubles with each.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
}

impl Backoff {
    /// Returns the wait after this many failures in a row.
    pub fn after(self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }

    /// Returns a random wait between one half of [`Self::after`] and all of it, so that clients that failed together do
    /// not return together.
    pub fn random(self, failures: u32) -> Duration {
        self.after(failures).mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(64) };

    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        assert_eq!([1, 2, 3].map(|failures| BACKOFF.after(failures).as_millis()), [250, 500, 1000]);
        assert_eq!([8, 9, 10, u32::MAX].map(|failures| BACKOFF.after(failures).as_secs()), [32, 64, 64, 64]);
    }

    #[test]
    fn at_most_one_half_of_a_random_wait_is_left_out() {
        for failures in (1..12).flat_map(|failures| [failures; 50]) {
            let longest = BACKOFF.after(failures);
            assert!((longest / 2..=longest).contains(&BACKOFF.random(failures)));
        }
    }
}
