//! What the tool calls of one step share.

use goondan_core::host::{AsOf, ReplySize};
use goondan_core::{Message, Span, StepRef, ToolCallRef, ToolCatalog, ToolRequest, TurnInfo};

use super::report::Reporter;
use super::requests::Requests;
use super::workdir::Workdir;
use crate::attach::Generation;

/// It lasts for one call, or for several that run concurrently.
#[derive(Clone, Copy)]
pub(super) struct StepCalls<'a> {
    pub(super) turn: &'a TurnInfo,
    pub(super) workdir: &'a Workdir,
    pub(super) generation: &'a Generation,
    pub(super) reporter: &'a Reporter<'a>,
    pub(super) requests: Requests<'a>,
    pub(super) catalog: &'a ToolCatalog,
    /// The message that asked for the calls.
    pub(super) message: &'a Message,
    /// The conversation as it was when that message was appended.
    pub(super) conversation: AsOf<'a>,
    pub(super) step_index: u32,
    pub(super) step_span: Span,
    /// Whether a call before these waits for a decision, so that they do not run.
    // ASK-01
    pub(super) are_held: bool,
    /// Whether calls of the step have waited.
    pub(super) have_waited: bool,
    /// How large the reply to each call may be.
    pub(super) max_reply: ReplySize,
}

impl StepCalls<'_> {
    /// Returns how many bytes the output files of the conversation may have together.
    pub(super) fn max_output(&self) -> u64 {
        self.generation.spec.policy.max_output_bytes.get().into()
    }

    /// Names a call in runtime events.
    pub(super) fn reference(&self, request: &ToolRequest) -> ToolCallRef {
        let step_id = StepRef::new(&self.turn.turn, self.step_index).step_id;
        ToolCallRef::new(step_id, request.id.clone(), request.name.clone())
    }
}
