//! One call of a library: the context that its functions `run_…` act on.

use std::ptr::NonNull;

use goondan_core::host::{ConversationHost, Reviewer, Snapshot, Transformer, TurnInfo};
use goondan_core::linkage::depth::check_map;
use goondan_core::linkage::{WireScope, WireToolItem};
use goondan_core::{AgentsApi, Kind, MessageEvent, Question, Result, Review, Step, ToolCall, ToolContext, Turn};
use serde_json::de::SliceRead;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::members::{ContextMembers, unknown};
use super::next::StartNext;
use crate::future::{NoScope, export};
use crate::json_map;
use crate::table::Future;

/// One call of a library. It is not moved until the future of the library is dropped.
///
/// The library uses it from any thread. By the contract it changes nothing while it reads, and does not use the call
/// at all while the future of `run_next` exists: the rules that the borrow checker enforces for a linked middleware.
pub(super) struct Call<'a> {
    pub(super) context: CallContext,
    pub(super) runtime: Option<&'a Handle>,
}

/// The context of a call. The pointers are valid as long as the call; their lifetime is `'static` only because the
/// type of a call cannot name the real one.
pub(super) enum CallContext {
    Turn(MiddlewareCall<Turn>),
    Step(MiddlewareCall<Step>),
    ToolCall(MiddlewareCall<ToolCall>),
    Tool(NonNull<ToolContext<'static>>),
    Review(NonNull<Review<'static>>),
}

/// The context of a middleware and the rest of the chain.
pub(super) struct MiddlewareCall<K: Kind> {
    pub(super) ctx: NonNull<K::Context<'static>>,
    pub(super) next: StartNext,
}

// SAFETY: The contexts and `Next` are `Send` and `Sync`, and the contract sets the rules that `Call` documents.
unsafe impl<K: Kind> Send for MiddlewareCall<K> {}
// SAFETY: As above.
unsafe impl<K: Kind> Sync for MiddlewareCall<K> {}
// SAFETY: A `ToolContext` and a `Review` are `Send` and `Sync`.
unsafe impl Send for CallContext {}
// SAFETY: As above.
unsafe impl Sync for CallContext {}

impl From<MiddlewareCall<Turn>> for CallContext {
    fn from(call: MiddlewareCall<Turn>) -> Self {
        Self::Turn(call)
    }
}

impl From<MiddlewareCall<Step>> for CallContext {
    fn from(call: MiddlewareCall<Step>) -> Self {
        Self::Step(call)
    }
}

impl From<MiddlewareCall<ToolCall>> for CallContext {
    fn from(call: MiddlewareCall<ToolCall>) -> Self {
        Self::ToolCall(call)
    }
}

impl<K: Kind> MiddlewareCall<K> {
    fn ctx(&self) -> &K::Context<'static> {
        // SAFETY: `LibraryObject` drops the call before the borrow that the pointer was made of ends, and the
        // contract forbids the library to change the context while it reads.
        unsafe { self.ctx.as_ref() }
    }

    /// # Safety
    /// Nothing else may use the context while the borrow lasts.
    #[expect(clippy::mut_from_ref, reason = "the contract guarantees exclusive access, which `&self` cannot express")]
    unsafe fn ctx_mut(&self) -> &mut K::Context<'static> {
        // SAFETY: As above for the validity; the caller guarantees exclusive access.
        unsafe { &mut *self.ctx.as_ptr() }
    }
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(value)?)
}

impl Call<'_> {
    fn tool<'c>(ctx: &'c NonNull<ToolContext<'static>>) -> &'c ToolContext<'static> {
        // SAFETY: `LibraryObject` drops the call before the borrow that the pointer was made of ends.
        unsafe { ctx.as_ref() }
    }

    fn scope(&self) -> Option<&TurnInfo> {
        match &self.context {
            CallContext::Turn(run) => Some(run.ctx().scope()),
            CallContext::Step(run) => Some(run.ctx().scope()),
            CallContext::ToolCall(run) => Some(run.ctx().scope()),
            CallContext::Tool(ctx) => Some(Self::tool(ctx).scope()),
            CallContext::Review(_) => None,
        }
    }

    fn metadata(&self) -> Option<&Map<String, Value>> {
        match &self.context {
            CallContext::Turn(run) => Some(run.ctx().metadata()),
            CallContext::Step(run) => Some(run.ctx().metadata()),
            CallContext::ToolCall(run) => Some(run.ctx().metadata()),
            CallContext::Tool(_) | CallContext::Review(_) => None,
        }
    }

    /// Returns a field as JSON.
    pub(super) fn read(&self, field: &str) -> Result<Vec<u8>> {
        match (field, &self.context) {
            ("metadata", _) => {
                let metadata = self.metadata().ok_or_else(|| unknown(field))?;
                check_map(metadata).map_err(|error| error.refuse("a value in the metadata"))?;
                json(metadata)
            }
            ("scope", _) => json(&WireScope::from(self.scope().ok_or_else(|| unknown(field))?)),
            ("isRepeated", CallContext::Turn(run)) => json(&run.ctx().is_repeated()),
            ("isRepeated", CallContext::Step(run)) => json(&run.ctx().is_repeated()),
            ("events", CallContext::Turn(_) | CallContext::Step(_) | CallContext::Tool(_)) => {
                json(self.conversation()?.message_events())
            }
            (_, CallContext::Step(run)) => run.ctx().read_field(field),
            ("tool", CallContext::ToolCall(run)) => json(&run.ctx().tool().map(WireToolItem::from)),
            ("workdir", CallContext::ToolCall(run)) => json(run.ctx().workdir()?),
            ("maxOutput", CallContext::ToolCall(run)) => json(&run.ctx().max_output_bytes()),
            ("decision", CallContext::ToolCall(run)) => json(&run.ctx().decisions()?),
            ("asked", CallContext::ToolCall(run)) => json(&run.ctx().is_asked()),
            (_, CallContext::ToolCall(run)) => run.ctx().read_field(field),
            (_, CallContext::Tool(ctx)) => read_tool(Self::tool(ctx), field),
            (_, CallContext::Turn(_) | CallContext::Review(_)) => Err(unknown(field)),
        }
    }

    /// Replaces a field by JSON, or applies a directive.
    ///
    /// # Safety
    /// Nothing else may use the call at the same time.
    pub(super) unsafe fn write(&self, field: &str, json: &[u8]) -> Result<()> {
        match (field, &self.context) {
            ("metadata", CallContext::Turn(run)) => {
                // SAFETY: The caller guarantees exclusive access.
                let ctx = unsafe { run.ctx_mut() };
                json_map::overwrite(ctx.metadata_mut(), SliceRead::new(json))?;
            }
            ("metadata", CallContext::Step(run)) => {
                // SAFETY: As above.
                let ctx = unsafe { run.ctx_mut() };
                json_map::overwrite(ctx.metadata_mut(), SliceRead::new(json))?;
            }
            ("metadata", CallContext::ToolCall(run)) => {
                // SAFETY: As above.
                let ctx = unsafe { run.ctx_mut() };
                json_map::overwrite(ctx.metadata_mut(), SliceRead::new(json))?;
            }
            ("ask", CallContext::ToolCall(run)) => {
                let question = serde_json::from_slice(json)?;
                // SAFETY: As above.
                unsafe { run.ctx_mut() }.ask(question);
            }
            ("show", CallContext::ToolCall(run)) => {
                let shown = serde_json::from_slice(json)?;
                // SAFETY: As above.
                unsafe { run.ctx_mut() }.show(shown);
            }
            // SAFETY: As above.
            (_, CallContext::Step(run)) => unsafe { run.ctx_mut() }.write(field, json)?,
            // SAFETY: As above.
            (_, CallContext::ToolCall(run)) => unsafe { run.ctx_mut() }.write(field, json)?,
            _ => return Err(unknown(field)),
        }
        Ok(())
    }

    pub(super) fn conversation(&self) -> Result<&dyn ConversationHost> {
        match &self.context {
            CallContext::Turn(run) => Ok(run.ctx().conversation().host()),
            CallContext::Step(run) => Ok(run.ctx().conversation().host()),
            CallContext::Tool(ctx) => Ok(Self::tool(ctx).conversation().host()),
            CallContext::ToolCall(_) | CallContext::Review(_) => Err(unknown("conversation")),
        }
    }

    /// Returns a field of the message at `cursor`, or `None` if there is no message.
    pub(super) fn read_message(&self, snapshot: Snapshot, cursor: usize, field: &str) -> Result<Option<Vec<u8>>> {
        let Some((message, _)) = self.conversation()?.message_from(snapshot, cursor) else { return Ok(None) };
        match field {
            "whole" => json(&message.to_message()),
            "text" => Ok(message.text().into_owned().into_bytes()),
            "content" => json(&*message.content()),
            "metadata" => json(message.to_message().metadata()),
            "createdAt" => json(&message.created_at()),
            "source" => json(&*message.source()),
            "turn" => json(&message.turn()),
            _ => Err(unknown(field)),
        }
        .map(Some)
    }

    /// Returns the value that an extension added to the message at `cursor`, as JSON.
    pub(super) fn message_metadata(&self, snapshot: Snapshot, cursor: usize, key: &str) -> Result<Option<Vec<u8>>> {
        let Some((message, _)) = self.conversation()?.message_from(snapshot, cursor) else { return Ok(None) };
        message.metadata(key).map(|value| json(&*value)).transpose()
    }

    pub(super) fn tool_catalog_revision(&self) -> u64 {
        if let CallContext::Step(run) = &self.context { run.ctx().tool_catalog().revision() } else { 0 }
    }

    /// # Safety
    /// Nothing else may use the call at the same time.
    pub(super) unsafe fn emit(&self, event: MessageEvent) -> Result<()> {
        match &self.context {
            // SAFETY: The caller guarantees exclusive access.
            CallContext::Turn(run) => unsafe { run.ctx_mut() }.emit(event),
            // SAFETY: As above.
            CallContext::Step(run) => unsafe { run.ctx_mut() }.emit(event),
            CallContext::ToolCall(_) | CallContext::Tool(_) | CallContext::Review(_) => {
                return Err(unknown("messages"));
            }
        }
        Ok(())
    }

    /// Starts the rest of the chain.
    ///
    /// # Safety
    /// Nothing else may use the call until the library drops the future, which must be before the end of the call.
    pub(super) unsafe fn next(&self) -> Future {
        let next = match &self.context {
            CallContext::Turn(run) => &run.next,
            CallContext::Step(run) => &run.next,
            CallContext::ToolCall(run) => &run.next,
            CallContext::Tool(_) | CallContext::Review(_) => {
                // SAFETY: The future borrows nothing.
                return unsafe { export(NoScope, async { Err(unknown("next")) }) };
            }
        };
        // SAFETY: The caller guarantees the requirements of `start`; the `InlineNext` is pinned until the call is
        // dropped.
        unsafe { next.start() }
    }

    pub(super) fn agents(&self) -> Result<AgentsApi<'_>> {
        match &self.context {
            CallContext::Turn(run) => Ok(run.ctx().agents()),
            CallContext::Step(run) => Ok(run.ctx().agents()),
            CallContext::Tool(ctx) => Ok(Self::tool(ctx).agents()),
            // SAFETY: `LibraryReviewer` drops the call before the borrow that the pointer was made of ends.
            CallContext::Review(review) => Ok(unsafe { review.as_ref() }.agents()),
            // AGENTS-02: a tool-call middleware reaches no other agents.
            CallContext::ToolCall(_) => Err(unknown("agents")),
        }
    }

    /// Sets a reviewer of the answer of the step.
    ///
    /// # Safety
    /// Nothing else may use the call at the same time.
    pub(super) unsafe fn review(&self, reviewer: Reviewer) -> Result<()> {
        match &self.context {
            // SAFETY: The caller guarantees exclusive access.
            CallContext::Step(run) => unsafe { run.ctx_mut() }.review(reviewer),
            _ => return Err(unknown("reviewers")),
        }
        Ok(())
    }

    /// Sets a transformer of the answer of the step.
    ///
    /// # Safety
    /// Nothing else may use the call at the same time.
    pub(super) unsafe fn transform(&self, transformer: Transformer) -> Result<()> {
        match &self.context {
            // SAFETY: The caller guarantees exclusive access.
            CallContext::Step(run) => unsafe { run.ctx_mut() }.transform(transformer),
            _ => return Err(unknown("transformers")),
        }
        Ok(())
    }

    pub(super) async fn ask(&self, question: Question) -> Result<Value> {
        match &self.context {
            CallContext::Tool(ctx) => Self::tool(ctx).ask_live_value(question).await,
            _ => Err(unknown("live questions")),
        }
    }

    pub(super) fn progress(&self, done: f64, total: Option<f64>, text: &str) {
        if let CallContext::Tool(ctx) = &self.context {
            Self::tool(ctx).progress(done, total, text);
        }
    }

    pub(super) fn logger(&self) -> Option<goondan_core::Logger<'_>> {
        if let CallContext::Tool(ctx) = &self.context { Some(Self::tool(ctx).logger()) } else { None }
    }
}

fn read_tool(ctx: &ToolContext<'_>, field: &str) -> Result<Vec<u8>> {
    match field {
        "callId" => json(ctx.call_id()),
        "toolName" => json(ctx.tool_name()),
        "message" => json(ctx.message()),
        "workdir" => json(ctx.workdir()?),
        "maxOutput" => json(&ctx.max_output_bytes()),
        "decision" => json(&ctx.decisions()?),
        "maxReply" => ctx.with_reply_limit(|limit| json(&limit.size)),
        _ => Err(unknown(field)),
    }
}
