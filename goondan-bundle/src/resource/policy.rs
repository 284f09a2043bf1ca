//! `spec.policy` of agents and swarms: the limits of a turn.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::read::{Cursor, MapReader};
use crate::schema::POLICY;

/// The limits of a turn; `None` for those that are not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// `maxStepsPerTurn`: the limit of steps in a turn.
    // D-22
    pub max_steps_per_turn: Option<NonZeroU32>,
    /// `maxRetries`: how often in a row a step or a tool call is run again because a middleware asks for it.
    pub max_retries: Option<u32>,
    /// `maxResumptions`: how often a turn is gone on with after an interruption without coming any further.
    // RESUME-01
    pub max_resumptions: Option<u32>,
    /// `turnTimeoutMs`: the timeout of a turn.
    pub turn_timeout: Option<Duration>,
    /// `modelTimeoutMs`: the timeout of a model call.
    pub model_timeout: Option<Duration>,
    /// `toolTimeoutMs`: the timeout of a tool call.
    pub tool_timeout: Option<Duration>,
    /// `layerTimeoutMs`: the timeout of the code of a layer whose failures are skipped.
    // FAIL-01
    pub layer_timeout: Option<Duration>,
    /// `maxResultBytes`: how many bytes of text and JSON the result of a tool call may have.
    // SIZE-01
    pub max_result_bytes: Option<NonZeroU32>,
    /// `maxOutputBytes`: how many bytes the files with whole outputs may have together.
    // SIZE-01
    pub max_output_bytes: Option<NonZeroU32>,
    /// `maxParallelCalls`: how many calls of an answer run at the same time.
    // SIZE-01
    pub max_parallel_calls: Option<NonZeroU32>,
}

impl Policy {
    pub(crate) fn read(cursor: &Cursor<'_>) -> Option<Self> {
        let policy = MapReader::new(cursor, &POLICY)?;
        let number = |key| policy.get(key).and_then(|number| number.whole(1));
        let timeout = |key| number(key).map(|millis| Duration::from_millis(millis.into()));
        Some(Self {
            max_steps_per_turn: number("maxStepsPerTurn").and_then(NonZeroU32::new),
            max_retries: policy.get("maxRetries").and_then(|number| number.whole(0)),
            max_resumptions: policy.get("maxResumptions").and_then(|number| number.whole(0)),
            turn_timeout: timeout("turnTimeoutMs"),
            model_timeout: timeout("modelTimeoutMs"),
            tool_timeout: timeout("toolTimeoutMs"),
            layer_timeout: timeout("layerTimeoutMs"),
            max_result_bytes: number("maxResultBytes").and_then(NonZeroU32::new),
            max_output_bytes: number("maxOutputBytes").and_then(NonZeroU32::new),
            max_parallel_calls: number("maxParallelCalls").and_then(NonZeroU32::new),
        })
    }

    /// Returns this policy, completed by the limits of `outer`.
    pub(crate) fn or(self, outer: Self) -> Self {
        Self {
            max_steps_per_turn: self.max_steps_per_turn.or(outer.max_steps_per_turn),
            max_retries: self.max_retries.or(outer.max_retries),
            max_resumptions: self.max_resumptions.or(outer.max_resumptions),
            turn_timeout: self.turn_timeout.or(outer.turn_timeout),
            model_timeout: self.model_timeout.or(outer.model_timeout),
            tool_timeout: self.tool_timeout.or(outer.tool_timeout),
            layer_timeout: self.layer_timeout.or(outer.layer_timeout),
            max_result_bytes: self.max_result_bytes.or(outer.max_result_bytes),
            max_output_bytes: self.max_output_bytes.or(outer.max_output_bytes),
            max_parallel_calls: self.max_parallel_calls.or(outer.max_parallel_calls),
        }
    }

    /// Returns the limits for the runtime, with its defaults for those that are not written.
    pub(crate) fn complete(self) -> goondan_runtime::Policy {
        let mut complete = goondan_runtime::Policy::default();
        let Self { max_steps_per_turn, max_retries, turn_timeout, model_timeout, tool_timeout, layer_timeout, .. } =
            self;
        complete.max_steps_per_turn = max_steps_per_turn.unwrap_or(complete.max_steps_per_turn);
        complete.max_retries = max_retries.unwrap_or(complete.max_retries);
        complete.max_resumptions = self.max_resumptions.unwrap_or(complete.max_resumptions);
        complete.turn_timeout = turn_timeout.unwrap_or(complete.turn_timeout);
        complete.model_timeout = model_timeout.unwrap_or(complete.model_timeout);
        complete.tool_timeout = tool_timeout.unwrap_or(complete.tool_timeout);
        complete.layer_timeout = layer_timeout.unwrap_or(complete.layer_timeout);
        complete.max_result_bytes = self.max_result_bytes.unwrap_or(complete.max_result_bytes);
        complete.max_output_bytes = self.max_output_bytes.unwrap_or(complete.max_output_bytes);
        complete.max_parallel_calls = self.max_parallel_calls.unwrap_or(complete.max_parallel_calls);
        complete
    }
}
