//! The three kinds of middleware and their numbers in the tables.

use goondan_core::linkage::Crossing;
use goondan_core::{Kind, Step, ToolCall, Turn};

use crate::table::{STEP, TOOL_CALL, TURN};

/// A kind of middleware whose results libraries can hold handles to.
pub(super) trait HostKind: Kind<Output: Crossing> {
    /// The number of the kind in the tables.
    const NUMBER: u32;
}

impl HostKind for Turn {
    const NUMBER: u32 = TURN;
}

impl HostKind for Step {
    const NUMBER: u32 = STEP;
}

impl HostKind for ToolCall {
    const NUMBER: u32 = TOOL_CALL;
}
