//! Owns a call of a library: what its functions `run_…` act on.

use std::ptr::NonNull;

use goondan_core::host::{ConversationHost, Snapshot, TurnInfo};
use goondan_core::linkage::{Crossing, WireScope, WireToolItem};
use goondan_core::{
    AgentsApi, Error, Kind, MessageEvent, Result, Step, StepContext, ToolCall, ToolCallContext, ToolContext, ToolItem,
    Turn,
};
use serde_json::de::SliceRead;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::rest::Start;
use crate::future::{Nothing, export};
use crate::map;
use crate::table::{Future, STEP, TOOL_CALL, TURN};

/// One call of a library. It lies still until the library's future is dropped.
///
/// The library uses it from any thread, but by the contract changes nothing while it reads, and does nothing at all while
/// the future of `next` runs: the rules that borrowing sets to a linked middleware.
pub(super) struct Call<'a> {
    pub(super) subject: Subject,
    pub(super) runtime: Option<&'a Handle>,
}

/// What is called. The pointers lead to what the call was made from, and live as long; that they say `'static` means only
/// that no lifetime can be written here.
pub(super) enum Subject {
    Turn(Run<Turn>),
    Step(Run<Step>),
    ToolCall(Run<ToolCall>),
    Tool(NonNull<ToolContext<'static>>),
}

/// A run of a middleware.
pub(super) struct Run<K: Kind> {
    pub(super) ctx: NonNull<K::Context<'static>>,
    pub(super) next: Start,
}

// SAFETY: The contexts and `Next` are `Send` and `Sync`, and the contract sets the rules above.
unsafe impl<K: Kind> Send for Run<K> {}
// SAFETY: As above.
unsafe impl<K: Kind> Sync for Run<K> {}
// SAFETY: A `ToolContext` is `Send` and `Sync`.
unsafe impl Send for Subject {}
// SAFETY: As above.
unsafe impl Sync for Subject {}

/// A kind of middleware, as a call of a library.
pub(super) trait HostKind: Kind<Output: Crossing> {
    /// The number of the kind in the tables.
    const NUMBER: u32;
    fn subject(run: Run<Self>) -> Subject;
}

macro_rules! host_kind {
    ($kind:ident, $number:expr) => {
        impl HostKind for $kind {
            const NUMBER: u32 = $number;

            fn subject(run: Run<Self>) -> Subject {
                Subject::$kind(run)
            }
        }
    };
}

host_kind!(Turn, TURN);
host_kind!(Step, STEP);
host_kind!(ToolCall, TOOL_CALL);

impl<K: HostKind> Run<K> {
    fn ctx(&self) -> &K::Context<'static> {
        // SAFETY: The call lives as long as the borrow that the pointer came from, and nobody changes what it reads.
        unsafe { self.ctx.as_ref() }
    }

    /// # Safety
    /// Nothing else may use the context meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the contract makes sure of what borrowing cannot")]
    unsafe fn ctx_mut(&self) -> &mut K::Context<'static> {
        // SAFETY: The call lives as long as the borrow that the pointer came from, and the caller keeps others away.
        unsafe { &mut *self.ctx.as_ptr() }
    }
}

/// The library asked for something that its kind of call does not have.
fn unknown(what: &str) -> Error {
    Error::msg(format!("this call has no `{what}`"))
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(value)?)
}

impl Call<'_> {
    fn tool<'c>(ctx: &'c NonNull<ToolContext<'static>>) -> &'c ToolContext<'static> {
        // SAFETY: The call lives as long as the borrow that the pointer came from.
        unsafe { ctx.as_ref() }
    }

    fn scope(&self) -> &TurnInfo {
        match &self.subject {
            Subject::Turn(run) => run.ctx().scope(),
            Subject::Step(run) => run.ctx().scope(),
            Subject::ToolCall(run) => run.ctx().scope(),
            Subject::Tool(ctx) => Self::tool(ctx).scope(),
        }
    }

    fn metadata(&self) -> Option<&Map<String, Value>> {
        match &self.subject {
            Subject::Turn(run) => Some(run.ctx().metadata()),
            Subject::Step(run) => Some(run.ctx().metadata()),
            Subject::ToolCall(run) => Some(run.ctx().metadata()),
            Subject::Tool(_) => None,
        }
    }

    /// The JSON of a field.
    pub(super) fn read(&self, field: &str) -> Result<Vec<u8>> {
        match (field, &self.subject) {
            ("metadata", _) => json(self.metadata().ok_or_else(|| unknown(field))?),
            ("scope", _) => json(&WireScope::from(self.scope())),
            ("events", Subject::Turn(_) | Subject::Step(_)) => json(self.conversation()?.message_events()),
            (_, Subject::Step(run)) => read_step(run.ctx(), field),
            (_, Subject::ToolCall(run)) => read_tool_call(run.ctx(), field),
            (_, Subject::Tool(ctx)) => read_tool(Self::tool(ctx), field),
            (_, Subject::Turn(_)) => Err(unknown(field)),
        }
    }

    /// Puts JSON in the place of a field.
    ///
    /// # Safety
    /// Nothing else may use the call meanwhile.
    pub(super) unsafe fn write(&self, field: &str, json: &[u8]) -> Result<()> {
        match (field, &self.subject) {
            ("metadata", Subject::Turn(run)) => {
                // SAFETY: The caller keeps others away.
                let ctx = unsafe { run.ctx_mut() };
                map::replace(ctx.metadata_mut(), SliceRead::new(json))?;
            }
            ("metadata", Subject::Step(run)) => {
                // SAFETY: As above.
                let ctx = unsafe { run.ctx_mut() };
                map::replace(ctx.metadata_mut(), SliceRead::new(json))?;
            }
            ("metadata", Subject::ToolCall(run)) => {
                // SAFETY: As above.
                let ctx = unsafe { run.ctx_mut() };
                map::replace(ctx.metadata_mut(), SliceRead::new(json))?;
            }
            ("toolCatalog", Subject::Step(run)) => {
                let items: Vec<WireToolItem<'_>> = serde_json::from_slice(json)?;
                // SAFETY: As above.
                *unsafe { run.ctx_mut() }.tool_catalog_mut() = items.into_iter().map(ToolItem::from).collect();
            }
            // SAFETY: As above.
            ("args", Subject::ToolCall(run)) => *unsafe { run.ctx_mut() }.args_mut() = serde_json::from_slice(json)?,
            _ => return Err(unknown(field)),
        }
        Ok(())
    }

    pub(super) fn conversation(&self) -> Result<&dyn ConversationHost> {
        match &self.subject {
            Subject::Turn(run) => Ok(run.ctx().conversation().host()),
            Subject::Step(run) => Ok(run.ctx().conversation().host()),
            Subject::ToolCall(_) | Subject::Tool(_) => Err(unknown("conversation")),
        }
    }

    /// A field of the message at `cursor`.
    pub(super) fn read_message(&self, snapshot: Snapshot, cursor: usize, field: &str) -> Result<Option<Vec<u8>>> {
        let Some((message, _)) = self.conversation()?.message_from(snapshot, cursor) else { return Ok(None) };
        match field {
            "" => json(&message.to_message()),
            "text" => Ok(message.text().into_owned().into_bytes()),
            "content" => json(&*message.content()),
            "metadata" => json(message.to_message().metadata()),
            "createdAt" => json(&message.created_at()),
            "source" => json(&*message.source()),
            _ => Err(unknown(field)),
        }
        .map(Some)
    }

    /// # Safety
    /// Nothing else may use the call meanwhile.
    pub(super) unsafe fn emit(&self, event: MessageEvent) -> Result<()> {
        match &self.subject {
            // SAFETY: The caller keeps others away.
            Subject::Turn(run) => unsafe { run.ctx_mut() }.emit(event),
            // SAFETY: As above.
            Subject::Step(run) => unsafe { run.ctx_mut() }.emit(event),
            Subject::ToolCall(_) | Subject::Tool(_) => return Err(unknown("messages")),
        }
        Ok(())
    }

    /// Starts the rest of the onion.
    ///
    /// # Safety
    /// Nothing else may use the call until the future is dropped, which must be before the call ends.
    pub(super) unsafe fn next(&self) -> Future {
        match &self.subject {
            // SAFETY: The caller guarantees what `start` asks for.
            Subject::Turn(Run { next, .. }) | Subject::Step(Run { next, .. }) | Subject::ToolCall(Run { next, .. }) => unsafe {
                next.start()
            },
            // SAFETY: The future borrows nothing.
            Subject::Tool(_) => unsafe { export(Nothing, async { Err(unknown("next")) }) },
        }
    }

    pub(super) fn agents(&self) -> Result<AgentsApi<'_>> {
        match &self.subject {
            Subject::Turn(run) => Ok(run.ctx().agents()),
            Subject::Step(run) => Ok(run.ctx().agents()),
            Subject::Tool(ctx) => Ok(Self::tool(ctx).runtime()),
            // AGENTS-02.
            Subject::ToolCall(_) => Err(unknown("agents")),
        }
    }

    pub(super) fn logger(&self) -> Option<goondan_core::Logger<'_>> {
        if let Subject::Tool(ctx) = &self.subject { Some(Self::tool(ctx).logger()) } else { None }
    }
}

fn read_step(ctx: &StepContext<'_>, field: &str) -> Result<Vec<u8>> {
    match field {
        "stepIndex" => json(&ctx.step_index()),
        "toolCatalog" => json(&ctx.tool_catalog().iter().map(WireToolItem::from).collect::<Vec<_>>()),
        _ => Err(unknown(field)),
    }
}

fn read_tool_call(ctx: &ToolCallContext<'_>, field: &str) -> Result<Vec<u8>> {
    match field {
        "stepIndex" => json(&ctx.step_index()),
        "callId" => json(ctx.call_id()),
        "toolName" => json(ctx.tool_name()),
        "args" => json(ctx.args()),
        _ => Err(unknown(field)),
    }
}

fn read_tool(ctx: &ToolContext<'_>, field: &str) -> Result<Vec<u8>> {
    match field {
        "callId" => json(ctx.call_id()),
        "toolName" => json(ctx.tool_name()),
        "message" => json(ctx.message()),
        "workdir" => json(ctx.workdir()?),
        _ => Err(unknown(field)),
    }
}
