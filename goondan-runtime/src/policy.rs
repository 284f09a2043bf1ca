//! The limits of a turn.

use std::num::NonZeroU32;
use std::time::Duration;

use goondan_core::host::ReplySize;

/// The limits of a turn. Start from [`Policy::default`] and set the fields that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The most steps of a turn; then it ends with `max_steps`. Defaults to 32.
    // D-22
    pub max_steps_per_turn: NonZeroU32,
    /// The most retries in a row of a step or a tool call that a middleware runs again. Defaults to 3.
    pub max_retries: u32,
    /// The most resumptions of a turn that come no further than the one before; then it fails with
    /// `E_TURN_RESUMED_TOO_OFTEN`, such as a turn that ends its process each time. Defaults to 5.
    // RESUME-01
    pub max_resumptions: u32,
    /// The longest time of a tool call's handler; then the call ends with `E_TOOL_TIMEOUT` and the turn continues.
    /// Defaults to 120 s.
    // TIME-01
    pub tool_timeout: Duration,
    /// The longest time of a model call. Defaults to 10 minutes.
    // TIME-01
    pub model_timeout: Duration,
    /// The longest time of a turn, including its middlewares. Defaults to 30 minutes.
    // TIME-01
    pub turn_timeout: Duration,
    /// The longest time of the `#[init]` of an extension; then the conversation does not open. Defaults to 30 s.
    // TIME-01
    pub init_timeout: Duration,
    /// The longest time of a layer's code before its `next`, and again after it, if failures of its extension are
    /// skipped; then the layer is skipped. The time of the layers inside does not count. Defaults to 120 s.
    // FAIL-01
    pub layer_timeout: Duration,
    /// The most characters of a tool's error message that the model reads. Defaults to 1000.
    // F-TOOL
    pub error_message_limit: usize,
    /// The most bytes of text and JSON in the result of a tool call; all of a larger one is in a file in the working
    /// directory, and the model reads an excerpt. The results of one answer together have eight times as much at most.
    /// Defaults to 512 kB.
    // SIZE-01
    pub max_result_bytes: NonZeroU32,
    /// The most bytes of the files in the working directory that hold whole outputs, together. The rest is cut, and the
    /// model reads that. Defaults to 1 GB.
    // SIZE-01
    pub max_output_bytes: NonZeroU32,
    /// The number of tool calls of an answer that run at the same time, if all of them only read or may run beside
    /// others. Defaults to 16.
    // SIZE-01
    pub max_parallel_calls: NonZeroU32,
    /// Whether the runtime event `step.started` contains the messages that the model is sent. Defaults to false,
    /// because every subscriber could read the conversation.
    pub report_model_input: bool,
}

impl Policy {
    /// Returns how large the result of the only call of an answer may be.
    pub(crate) fn max_reply(&self) -> ReplySize {
        ReplySize::of_one(usize::try_from(self.max_result_bytes.get()).unwrap_or(usize::MAX))
    }

    pub(crate) fn parallel_calls(&self) -> usize {
        usize::try_from(self.max_parallel_calls.get()).unwrap_or(usize::MAX)
    }
}

impl Default for Policy {
    fn default() -> Self {
        const DEFAULT_STEPS: NonZeroU32 = NonZeroU32::new(32).unwrap();
        const DEFAULT_RESULT: NonZeroU32 = NonZeroU32::new(512 << 10).unwrap();
        const DEFAULT_OUTPUT: NonZeroU32 = NonZeroU32::new(1_000_000_000).unwrap();
        const DEFAULT_CALLS: NonZeroU32 = NonZeroU32::new(16).unwrap();
        Self {
            max_steps_per_turn: DEFAULT_STEPS,
            max_retries: 3,
            max_resumptions: 5,
            tool_timeout: Duration::from_secs(120),
            model_timeout: Duration::from_secs(600),
            turn_timeout: Duration::from_secs(30 * 60),
            init_timeout: Duration::from_secs(30),
            layer_timeout: Duration::from_secs(120),
            error_message_limit: 1000,
            max_result_bytes: DEFAULT_RESULT,
            max_output_bytes: DEFAULT_OUTPUT,
            max_parallel_calls: DEFAULT_CALLS,
            report_model_input: false,
        }
    }
}
