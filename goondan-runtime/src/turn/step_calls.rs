//! State that the tool calls of one step share.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;

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
    /// The place of the call among those that run side by side, if it waits for those before it.
    pub(super) place: Option<Place<'a>>,
    /// Whether calls of the step have waited.
    pub(super) have_waited: bool,
    /// The size limit of the reply to each call.
    pub(super) max_reply: ReplySize,
}

/// The progress of calls that run side by side.
// D-45
pub(super) struct SideBySide(Vec<AtomicU8>);

/// The place of a call among those that run side by side.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) calls: &'a SideBySide,
    pub(super) index: usize,
}

/// A call has not come to its core.
const BEFORE: u8 = 0;
/// A call has reached the core and asks nothing more, or it has ended.
const PASSED: u8 = 1;
/// A call waits for a decision.
const WAITS: u8 = 2;

impl SideBySide {
    pub(super) fn new(calls: usize) -> Self {
        Self((0..calls).map(|_| AtomicU8::new(BEFORE)).collect())
    }

    fn set(&self, index: usize, state: u8) {
        if let Some(call) = self.0.get(index) {
            call.store(state, Ordering::Relaxed);
        }
    }
}

impl Place<'_> {
    /// Waits until every call before this one has reached the core or ended. Returns whether one of them waits for a
    /// decision.
    pub(super) async fn turn_comes(self) -> bool {
        // The calls are polled in their order, in one task: no waker is needed.
        poll_fn(|_| {
            let before = self.calls.0.iter().take(self.index).map(|call| call.load(Ordering::Relaxed));
            let waits = before.map(|call| (call != BEFORE).then_some(call == WAITS)).collect::<Option<Vec<_>>>();
            waits.map_or(Poll::Pending, |waits| Poll::Ready(waits.contains(&true)))
        })
        .await
    }

    /// Lets the calls after this one start.
    pub(super) fn passed(self) {
        self.calls.set(self.index, PASSED);
    }

    /// Takes in that the call has ended, or waits for a decision.
    pub(super) fn ended(self, waits: bool) {
        self.calls.set(self.index, if waits { WAITS } else { PASSED });
    }
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
