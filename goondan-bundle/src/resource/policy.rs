//! Owns `spec.policy` of agents and swarms: the limits of a turn.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::field::Field;
use crate::shape::POLICY;

/// Limits of a turn; what is `None` is not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// `maxStepsPerTurn`: how many steps a turn may take (D-22).
    pub max_steps_per_turn: Option<NonZeroU32>,
    /// `toolTimeoutMs`: how long one tool call may take.
    pub tool_timeout: Option<Duration>,
}

impl Policy {
    pub(crate) fn read(field: &Field<'_>) -> Option<Self> {
        let policy = field.table(&POLICY)?;
        let number = |key| policy.get(key).and_then(|field| field.positive(u32::MAX.into()));
        Some(Self {
            max_steps_per_turn: number("maxStepsPerTurn").and_then(|steps| NonZeroU32::new(steps.try_into().ok()?)),
            tool_timeout: number("toolTimeoutMs").map(Duration::from_millis),
        })
    }

    /// This policy, with what it leaves open taken from `outer`.
    pub(crate) fn or(self, outer: Self) -> Self {
        Self {
            max_steps_per_turn: self.max_steps_per_turn.or(outer.max_steps_per_turn),
            tool_timeout: self.tool_timeout.or(outer.tool_timeout),
        }
    }
}
