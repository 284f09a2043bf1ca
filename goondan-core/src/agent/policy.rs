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
    /// How long a model call may take. 10 minutes unless said otherwise (TIME-01).
    pub model_timeout: Duration,
    /// How long a turn may take, its middlewares included. 30 minutes unless said otherwise (TIME-01).
    pub turn_timeout: Duration,
    /// How many characters of a tool's error the model reads. 1000 unless said otherwise (F-TOOL).
    pub error_message_limit: usize,
    /// Whether `step.started` tells what the model is sent. Off unless said otherwise: whoever listens could read the
    /// conversation.
    pub report_model_input: bool,
}

impl Default for Policy {
    fn default() -> Self {
        const DEFAULT_STEPS: NonZeroU32 = NonZeroU32::new(32).unwrap();
        Self {
            max_steps_per_turn: DEFAULT_STEPS,
            max_retries: 3,
            tool_timeout: Duration::from_secs(120),
            model_timeout: Duration::from_secs(600),
            turn_timeout: Duration::from_secs(30 * 60),
            error_message_limit: 1000,
            report_model_input: false,
        }
    }
}
