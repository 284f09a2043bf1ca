//! The limits of a turn.

use std::num::NonZeroU32;
use std::time::Duration;

/// The limits of a turn. Start from [`Policy::default`] and set the fields that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// How many steps a turn may have; then it ends with `max_steps`. Defaults to 32.
    // D-22
    pub max_steps_per_turn: NonZeroU32,
    /// How often in a row a step or a tool call is run again because a middleware asks for it. Defaults to 3.
    pub max_retries: u32,
    /// How long the handler of a tool call may take; then the call ends with `E_TOOL_TIMEOUT` and the turn continues.
    /// Defaults to 120 s.
    // TIME-01
    pub tool_timeout: Duration,
    /// How long a model call may take. Defaults to 10 minutes.
    // TIME-01
    pub model_timeout: Duration,
    /// How long a turn may take, including its middlewares. Defaults to 30 minutes.
    // TIME-01
    pub turn_timeout: Duration,
    /// How long the `#[init]` of an extension may take; then the conversation does not open. Defaults to 30 s.
    // TIME-01
    pub init_timeout: Duration,
    /// How long the code of a layer may take before its `next`, and again after it, if failures of its extension are
    /// skipped; then the layer is skipped. The time of the layers inside does not count. Defaults to 120 s.
    // FAIL-01
    pub layer_timeout: Duration,
    /// How many characters of a tool's error message the model reads. Defaults to 1000.
    // F-TOOL
    pub error_message_limit: usize,
    /// Whether the runtime event `step.started` contains the messages that the model is sent. Defaults to false,
    /// because every subscriber could read the conversation.
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
            init_timeout: Duration::from_secs(30),
            layer_timeout: Duration::from_secs(120),
            error_message_limit: 1000,
            report_model_input: false,
        }
    }
}
