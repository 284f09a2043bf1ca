//! The objects that the host calls: middlewares, handlers and cleanups of the library.

use std::ffi::c_void;
use std::sync::Arc;

use goondan_core::linkage::{Crossing, Layer, Returned, WireReply, WireShownCall};
use goondan_core::{
    CleanupHandler, Event, EventHandler, ExtensionName, Presentation, Result, ShownCall, ToolContext, ToolHandler,
};
use serde::Deserialize;
use serde_json::Value;

use super::call::CallRef;
use super::kind::GuestKind;
use super::run::MiddlewareRun;
use super::runtime::{ExtensionScope, RuntimeRef, RuntimeScope};
use super::tool::ToolRun;
use super::{missing, result};
use crate::bytes::answer;
use crate::future::{PollScope, export};
use crate::panic::{catch_or_log, drop_guarded};
use crate::table::{self, Buffer, Object, ObjectTable, Text};

/// A part of an extension that the host can call.
pub(super) trait Callable: Send + Sync + 'static {
    /// The input of a call.
    type Input: Send;
    /// Parses the input, whose bytes are borrowed only until the future is created.
    fn read(input: &[u8]) -> Result<Self::Input>;
    /// Runs one call.
    fn call(&self, call: CallRef, input: Self::Input) -> impl Future<Output = Result<Buffer>> + Send;
    /// Whether [`Callable::present`] returns something.
    const PRESENTS: bool = false;
    /// Returns the presentation of a call.
    fn present(&self, _: &ShownCall<'_>) -> Result<Option<Presentation>> {
        Ok(None)
    }
}

/// Passes the ownership of `callable`, a part of `extension`, to the host.
pub(super) fn object<C: Callable>(extension: &ExtensionName, callable: C) -> Object {
    /// The callable, its extension, and a reference that keeps the runtime running for it.
    struct ObjectData<C>(C, ExtensionName, RuntimeRef);

    impl<C: Callable> ObjectData<C> {
        const TABLE: &'static ObjectTable = &ObjectTable {
            size: size_of::<ObjectTable>(),
            call: Self::call,
            drop: Self::drop,
            present: if C::PRESENTS { Some(Self::present) } else { None },
        };

        unsafe extern "C" fn call(data: *mut c_void, call: *const c_void, input: Text) -> table::Future {
            // SAFETY: The contract makes the host pass the data of this object, which it drops after all its futures.
            let Self(callable, extension, _) = unsafe { &*data.cast::<Self>() };
            // SAFETY: The contract makes `call` valid until the future is dropped.
            let call = unsafe { CallRef::new(call) };
            // SAFETY: The contract makes the text valid for this call.
            let input = catch_or_log("reading the input of a call", || C::read(unsafe { input.bytes() }));
            match input {
                // SAFETY: The future borrows the object, which the host drops after it.
                Some(Ok(input)) => unsafe { export(ExtensionScope(extension), callable.call(call, input)) },
                // SAFETY: The future borrows nothing.
                Some(Err(error)) => unsafe { export(ExtensionScope(extension), async move { Err(error) }) },
                // SAFETY: The future borrows nothing.
                None => unsafe { export(ExtensionScope(extension), async { Err(missing("input")) }) },
            }
        }

        unsafe extern "C" fn present(data: *mut c_void, call: Text, output: *mut Buffer) -> i32 {
            let present = || {
                // SAFETY: The contract makes the host pass the data of this object, which it has not dropped.
                let Self(callable, ..) = unsafe { &*data.cast::<Self>() };
                // SAFETY: The contract makes the text valid for this call.
                let call: WireShownCall = serde_json::from_slice(unsafe { call.bytes() })?;
                callable.present(&call.call())?.as_ref().map(Buffer::json).transpose()
            };
            // SAFETY: The contract makes the host pass a writable `output`.
            unsafe { answer(output, present) }
        }

        unsafe extern "C" fn drop(data: *mut c_void) {
            catch_or_log("dropping a part of an extension", || {
                // SAFETY: The contract makes the host pass, once, the data of this object, which is the box below.
                let Self(callable, extension, _runtime) = *unsafe { Box::from_raw(data.cast::<Self>()) };
                drop_guarded(extension, || {
                    let _guard = RuntimeScope.enter();
                    std::mem::drop(callable);
                });
            });
        }
    }

    let data = Box::into_raw(Box::new(ObjectData(callable, extension.clone(), RuntimeRef::new())));
    Object { data: data.cast(), table: ObjectData::<C>::TABLE }
}

impl<K: GuestKind> Callable for Layer<K>
where
    K::Output: Crossing,
{
    type Input = ();

    fn read(_: &[u8]) -> Result<()> {
        Ok(())
    }

    async fn call(&self, call: CallRef, (): ()) -> Result<Buffer> {
        let mut run = MiddlewareRun::new(call);
        let result = self.run(K::host(&mut run)).await;
        let result = result.and_then(|result| run.write_back().map(|()| result));
        // Dropping writes the last changes to the host before the outer layers read them, also after a failure.
        drop(run);
        match result?.into_returned()? {
            Returned::Remote(result) => Ok(result::into_handle(K::NUMBER, result)),
            Returned::Local(fields) => Buffer::json(&fields),
        }
    }
}

/// The handler of a tool.
pub(super) struct Tool(pub(super) Arc<dyn ToolHandler>);

/// The handler of a tool that has a presenter.
pub(super) struct PresentedTool(pub(super) Tool);

impl Callable for PresentedTool {
    type Input = Value;

    fn read(input: &[u8]) -> Result<Value> {
        Tool::read(input)
    }

    fn call(&self, call: CallRef, input: Value) -> impl Future<Output = Result<Buffer>> + Send {
        self.0.call(call, input)
    }

    const PRESENTS: bool = true;

    fn present(&self, call: &ShownCall<'_>) -> Result<Option<Presentation>> {
        self.0.0.presenter().map(|presenter| presenter.present(call)).transpose()
    }
}

impl Callable for Tool {
    type Input = Value;

    fn read(input: &[u8]) -> Result<Value> {
        Ok(serde_json::from_slice(input)?)
    }

    async fn call(&self, call: CallRef, input: Value) -> Result<Buffer> {
        let run = ToolRun::new(call)?;
        let ctx = ToolContext::new(&run);
        let mut reply = self.0.call(&ctx, input).await?.checked()?;
        if !reply.is_small() {
            // Here, because the program would have it twice: as JSON, and read from it.
            reply = ctx.with_reply_limit(|limit| reply.within(limit));
        }
        match reply.into_value() {
            Ok(value) => Buffer::json(&value),
            Err(reply) => Buffer::reply(&WireReply(reply)),
        }
    }
}

/// The handler of a subscription.
pub(super) struct Subscriber(pub(super) Arc<dyn EventHandler>);

#[derive(Deserialize)]
struct WireEvent {
    name: String,
    args: Vec<Value>,
}

impl Callable for Subscriber {
    type Input = Event;

    fn read(input: &[u8]) -> Result<Event> {
        let WireEvent { name, args } = serde_json::from_slice(input)?;
        Ok(Event::from_values(name, args))
    }

    async fn call(&self, _: CallRef, event: Event) -> Result<Buffer> {
        self.0.handle(&event).await.map(|()| Buffer::EMPTY)
    }
}

/// Code that runs before the extension is dropped.
pub(super) struct Cleanup(pub(super) Arc<dyn CleanupHandler>);

impl Callable for Cleanup {
    type Input = ();

    fn read(_: &[u8]) -> Result<()> {
        Ok(())
    }

    async fn call(&self, _: CallRef, (): ()) -> Result<Buffer> {
        self.0.clean_up().await.map(|()| Buffer::EMPTY)
    }
}
