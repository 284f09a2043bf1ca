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
    /// `toolTimeoutMs`: the timeout of a tool call.
    pub tool_timeout: Option<Duration>,
}

impl Policy {
    pub(crate) fn read(cursor: &Cursor<'_>) -> Option<Self> {
        let policy = MapReader::new(cursor, &POLICY)?;
        let number = |key| policy.get(key).and_then(|number| number.positive(u32::MAX.into()));
        Some(Self {
            max_steps_per_turn: number("maxStepsPerTurn").and_then(|steps| NonZeroU32::new(steps.try_into().ok()?)),
            tool_timeout: number("toolTimeoutMs").map(Duration::from_millis),
        })
    }

    /// Returns this policy, completed by the limits of `outer`.
    pub(crate) fn or(self, outer: Self) -> Self {
        Self {
            max_steps_per_turn: self.max_steps_per_turn.or(outer.max_steps_per_turn),
            tool_timeout: self.tool_timeout.or(outer.tool_timeout),
        }
    }
}
