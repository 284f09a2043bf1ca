//! An observer to measure: it counts what it is told.

use std::sync::atomic::{AtomicU64, Ordering};

use goondan::agent::{Observer, Told, Wants};
use goondan::event::EventScope;

/// Everything that an observer can want.
pub const EVERYTHING: [Wants; 3] = [Wants::EVENTS, Wants::MESSAGES, Wants::PIECES];

/// Counts what it is told.
#[derive(Debug)]
pub struct Counting {
    wants: Wants,
    told: AtomicU64,
}

impl Counting {
    /// An observer that wants all of these.
    pub fn new(wants: impl IntoIterator<Item = Wants>) -> Self {
        let wants = wants.into_iter().fold(Wants::NOTHING, |all, wants| all | wants);
        Self { wants, told: AtomicU64::new(0) }
    }

    /// Returns how often it was told something.
    pub fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }
}

impl Observer for Counting {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn told(&self, _: &EventScope, _: &Told<'_>) {
        self.told.fetch_add(1, Ordering::Relaxed);
    }
}
