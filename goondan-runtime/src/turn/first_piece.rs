//! The time of a model until the first piece of its answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::ports::model::ModelDelta;

/// Measures the time to the first piece of one answer, if something watches the turn.
#[derive(Default)]
pub(super) struct FirstPiece {
    asked: Option<Instant>,
    /// In microseconds; 0 until there is a piece.
    came_after: AtomicU64,
}

impl FirstPiece {
    /// Takes in that the model is asked now.
    pub(super) fn asked() -> Self {
        Self { asked: Some(Instant::now()), ..Self::default() }
    }

    /// Returns whether the model was asked in this step, and something watches it.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Takes in a piece.
    pub(super) fn add(&self, piece: ModelDelta<'_>) {
        let Some(asked) = self.asked else { return };
        if let ModelDelta::Restart { .. } = piece {
            self.came_after.store(0, Ordering::Relaxed);
        } else if self.came_after.load(Ordering::Relaxed) == 0 {
            let micros = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.came_after.store(micros.max(1), Ordering::Relaxed);
        }
    }

    pub(super) fn time(&self) -> Option<Duration> {
        let micros = self.came_after.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }
}
