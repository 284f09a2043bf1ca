//! Owns the limits of a turn.

use std::num::NonZeroU32;
use std::time::Duration;

/// The limits of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// How many steps a turn may have; then it ends with `max_steps`. 32 unless said otherwise (D-22).
    pub max_steps_per_turn: NonZeroU32,
    /// How often in a row a step, or a tool call, may be run again because a middleware asked for it. 3 unless said
    /// otherwise.
    pub max_retries: u32,
    /// How long the handler of a tool call may take; then the call ends with `E_TOOL_TIMEOUT` and the turn goes on
    /// (TIME-01). 120 s unless said otherwise.
    pub tool_timeout: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        const DEFAULT_STEPS: NonZeroU32 = NonZeroU32::new(32).unwrap();
        Self { max_steps_per_turn: DEFAULT_STEPS, max_retries: 3, tool_timeout: Duration::from_secs(120) }
    }
}
