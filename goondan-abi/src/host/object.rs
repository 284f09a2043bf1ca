//! Owns the parts of a library that the host calls, as middlewares and handlers like any others.

use std::ffi::c_void;
use std::pin::pin;
use std::ptr::NonNull;

use goondan_core::{
    BoxFuture, CleanupHandler, Event, EventHandler, Middleware, Next, Result, ToolContext, ToolHandler,
};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::call::{Call, HostKind, Subject};
use super::rest::{self, Rest};
use super::result;
use super::runtime::Polling;
use crate::bytes::Owned;
use crate::future::Imported;
use crate::table::{Object, Text};

/// An object of a library; dropping it ends it there.
pub(super) struct Remote {
    object: Object,
    runtime: Option<Handle>,
}

// SAFETY: The contract lets an object be called and ended on any thread.
unsafe impl Send for Remote {}
// SAFETY: As above, also called at the same time.
unsafe impl Sync for Remote {}

/// What a library is given to name its call by.
struct CallHandle(*const c_void);

// SAFETY: It is passed on, not looked at; `Call` is `Sync`.
unsafe impl Send for CallHandle {}

impl CallHandle {
    const NONE: Self = Self(std::ptr::null());

    fn of(call: &Call<'_>) -> Self {
        Self(std::ptr::from_ref(call).cast())
    }
}

impl Remote {
    pub(super) fn new(object: Object, runtime: Option<Handle>) -> Self {
        Self { object, runtime }
    }

    /// Starts one call.
    ///
    /// # Safety
    /// `call` must live until the future is dropped.
    unsafe fn call(&self, call: CallHandle, input: &[u8]) -> Imported<Polling> {
        // SAFETY: Tables live as long as the process.
        let table = unsafe { &*self.object.table };
        // SAFETY: The data came with the table; the input is borrowed for the function, the call for the future.
        let future = unsafe { (table.call)(self.object.data, call.0, Text::new(input)) };
        // SAFETY: The future is new and ours.
        unsafe { Imported::new(future, Polling) }
    }

    fn subject(&self, subject: Subject) -> Call<'_> {
        Call { subject, runtime: self.runtime.as_ref() }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // SAFETY: Tables live as long as the process.
        let table = unsafe { &*self.object.table };
        // SAFETY: The data came with the table. Every future borrows `self`, so none is left.
        unsafe { (table.drop)(self.object.data) };
    }
}

impl<K: HostKind> Middleware<K> for Remote {
    fn handle<'a>(&'a self, ctx: &'a mut K::Context<'_>, next: Next<'a, K>) -> BoxFuture<'a, Result<K::Output>> {
        Box::pin(async move {
            let mut rest = pin!(Rest::new(ctx, next, self.runtime.as_ref(), rest::go_on::<K>));
            let call = self.subject(K::subject(rest.as_mut().run()));
            // SAFETY: `call` and `rest` lie in this future, which is boxed, and are dropped after what borrows them here.
            let output = unsafe { self.call(CallHandle::of(&call), b"") }.await?;
            result::given::<K>(output)
        })
    }
}

impl ToolHandler for Remote {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<Value>> {
        Box::pin(async move {
            let call = self.subject(Subject::Tool(NonNull::from(ctx).cast()));
            let input = serde_json::to_vec(&input)?;
            // SAFETY: `call` lies in this future, which is boxed, and is dropped after what borrows it here.
            let output: Owned = unsafe { self.call(CallHandle::of(&call), &input) }.await?;
            output.parse()
        })
    }
}

impl EventHandler for Remote {
    fn handle<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let input = serde_json::to_vec(&json!({ "name": event.name(), "args": event.args() }))?;
            // SAFETY: There is no call.
            unsafe { self.call(CallHandle::NONE, &input) }.await.map(drop)
        })
    }
}

impl CleanupHandler for Remote {
    fn clean_up(&self) -> BoxFuture<'_, Result<()>> {
        // SAFETY: There is no call.
        Box::pin(async move { unsafe { self.call(CallHandle::NONE, b"") }.await.map(drop) })
    }
}
