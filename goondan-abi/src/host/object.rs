//! Objects of a library, as middlewares and handlers of the core.

use std::ffi::c_void;
use std::mem::offset_of;
use std::pin::pin;
use std::ptr::NonNull;

use goondan_core::linkage::depth::from_json;
use goondan_core::linkage::{WireShownCall, WireVerdict};
use goondan_core::{
    AnswerReviewer, AnswerVerdict, BoxFuture, CleanupHandler, Event, EventHandler, Middleware, Next, Presentation,
    Presenter, Result, Review, ShownCall, ToolContext, ToolHandler, ToolReply,
};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::call::{Call, CallContext, MiddlewareCall};
use super::kind::HostKind;
use super::next::{InlineNext, run_next};
use super::result;
use super::runtime::PollingScope;
use crate::bytes::{OwnedBuffer, ask};
use crate::future::Imported;
use crate::table::{Buffer, Object, ObjectTable, Text};

/// The entry of an object that presents its calls to people.
type PresentFn = unsafe extern "C" fn(*mut c_void, Text, *mut Buffer) -> i32;

/// An object that a library registered. Dropping it drops the object in the library.
pub(super) struct LibraryObject {
    object: Object,
    /// The runtime that the extension was registered in; callbacks of the library run in it.
    runtime: Option<Handle>,
}

// SAFETY: The contract allows calling and dropping an object on any thread.
unsafe impl Send for LibraryObject {}
// SAFETY: As above; the calls may be concurrent.
unsafe impl Sync for LibraryObject {}

/// The pointer by which a library names its call.
struct CallHandle(*const c_void);

// SAFETY: The library may use the pointer on any thread, because `Call` is `Sync`.
unsafe impl Send for CallHandle {}

impl CallHandle {
    const NONE: Self = Self(std::ptr::null());

    fn new(call: &Call<'_>) -> Self {
        Self(std::ptr::from_ref(call).cast())
    }
}

impl LibraryObject {
    pub(super) fn new(object: Object, runtime: Option<Handle>) -> Self {
        Self { object, runtime }
    }

    /// Starts one call.
    ///
    /// # Safety
    /// `call` must be null or valid until the future is dropped.
    unsafe fn call(&self, call: CallHandle, input: &[u8]) -> Imported<PollingScope> {
        // SAFETY: By the contract, tables are valid as long as the process runs.
        let entry = unsafe { (*self.object.table).call };
        // SAFETY: The data came with the table. The input is borrowed for the function; the caller guarantees that
        // the call is valid until the future is dropped.
        let future = unsafe { entry(self.object.data, call.0, Text::new(input)) };
        // SAFETY: The library just returned the future, which has no other owner.
        unsafe { Imported::new(future, PollingScope) }
    }

    /// Returns the function that presents the calls, if the object is a tool that has one.
    fn present(&self) -> Option<PresentFn> {
        const END: usize = offset_of!(ObjectTable, present) + size_of::<Option<PresentFn>>();
        let table = self.object.table;
        // SAFETY: By the contract, tables are valid as long as the process runs, and begin with their size. A reference
        // to the table would be one to an entry that a library of version 1.0 does not have.
        if unsafe { (*table).size } < END {
            return None;
        }
        // SAFETY: The size covers the entry.
        unsafe { (*table).present }
    }

    fn call_with(&self, context: CallContext) -> Call<'_> {
        Call { context, runtime: self.runtime.as_ref() }
    }
}

impl Drop for LibraryObject {
    fn drop(&mut self) {
        // SAFETY: By the contract, tables are valid as long as the process runs.
        let entry = unsafe { (*self.object.table).drop };
        // SAFETY: The data came with the table. No future of the object is left, because the futures below borrow
        // `self`.
        unsafe { entry(self.object.data) };
    }
}

impl<K: HostKind> Middleware<K> for LibraryObject
where
    CallContext: From<MiddlewareCall<K>>,
{
    fn handle<'a>(&'a self, ctx: &'a mut K::Context<'_>, next: Next<'a, K>) -> BoxFuture<'a, Result<K::Output>> {
        Box::pin(async move {
            let mut next = pin!(InlineNext::new(ctx, next, self.runtime.as_ref(), run_next::<K>));
            let (ctx, next) = next.as_mut().parts();
            let call = self.call_with(MiddlewareCall { ctx, next }.into());
            // SAFETY: `call` and the `InlineNext` are locals of this boxed future, so they do not move. The future of
            // the library is a temporary of this statement, so it is dropped before them.
            let output = unsafe { self.call(CallHandle::new(&call), b"") }.await?;
            result::from_library::<K>(output)
        })
    }
}

/// A reviewer of answers.
pub(super) struct LibraryReviewer(LibraryObject);

impl LibraryReviewer {
    /// Takes the ownership of an object.
    pub(super) fn new(object: &Object, runtime: Option<&Handle>) -> Self {
        Self(LibraryObject::new(Object { data: object.data, table: object.table }, runtime.cloned()))
    }
}

impl AnswerReviewer for LibraryReviewer {
    async fn review(&self, review: Review<'_>) -> Result<AnswerVerdict> {
        let call = self.0.call_with(CallContext::Review(NonNull::from(&review).cast()));
        let input = serde_json::to_vec(review.answer())?;
        // SAFETY: `call` and `review` are locals of this future, which was pinned before it was polled. The future of
        // the library is a temporary of this statement, so it is dropped before them.
        let output = unsafe { self.0.call(CallHandle::new(&call), &input) }.await?;
        from_json::<WireVerdict>(output.bytes()).map(AnswerVerdict::from)
    }
}

/// The handler of a tool.
pub(super) struct LibraryTool(pub(super) LibraryObject);

impl ToolHandler for LibraryTool {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move {
            let call = self.0.call_with(CallContext::Tool(NonNull::from(ctx).cast()));
            let input = serde_json::to_vec(&input)?;
            // SAFETY: `call` is a local of this boxed future, so it does not move. The future of the library is a
            // temporary of this statement, so it is dropped before the call.
            let output: OwnedBuffer = unsafe { self.0.call(CallHandle::new(&call), &input) }.await?;
            if output.is_reply() {
                return ToolReply::from_json(output.bytes());
            }
            output.parse::<Value>().map(ToolReply::from)
        })
    }

    fn presenter(&self) -> Option<&dyn Presenter> {
        self.0.present().is_some().then_some(self)
    }
}

impl Presenter for LibraryTool {
    fn present(&self, call: &ShownCall<'_>) -> Result<Presentation> {
        let Some(present) = self.0.present() else { return Ok(Presentation::default()) };
        let call = serde_json::to_vec(&WireShownCall::from(call))?;
        // SAFETY: The data came with the table, and `self` has not dropped the object. The text is borrowed for the
        // function.
        let presented = ask(|output| unsafe { present(self.0.object.data, Text::new(&call), output) })?;
        presented.map_or_else(|| Ok(Presentation::default()), |json| json.parse())
    }
}

impl EventHandler for LibraryObject {
    fn handle<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let input = serde_json::to_vec(&json!({ "name": event.name(), "args": event.args() }))?;
            // SAFETY: The call is null.
            unsafe { self.call(CallHandle::NONE, &input) }.await.map(drop)
        })
    }
}

impl CleanupHandler for LibraryObject {
    fn clean_up(&self) -> BoxFuture<'_, Result<()>> {
        // SAFETY: The call is null.
        Box::pin(async move { unsafe { self.call(CallHandle::NONE, b"") }.await.map(drop) })
    }
}
