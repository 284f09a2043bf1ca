//! Owns what the host may call: the middlewares, handlers and clean-ups of the library.

use std::ffi::c_void;
use std::sync::Arc;

use goondan_core::linkage::{Crossing, Layer, Returned};
use goondan_core::{CleanupHandler, Event, EventHandler, Result, ToolContext, ToolHandler};
use serde::Deserialize;
use serde_json::Value;

use super::run::{GuestKind, Link, Run, handle_buffer};
use super::runtime::{InRuntime, User};
use super::tool::ToolRun;
use crate::future::{Around, export};
use crate::panic::logged;
use crate::table::{self, Buffer, Object, ObjectTable, Text};

/// Something that the host may call.
pub(super) trait Callable: Send + Sync + 'static {
    /// What a call is given.
    type Input: Send;
    /// Reads it; the bytes are gone when the future runs.
    fn read(input: &[u8]) -> Result<Self::Input>;
    /// One call.
    fn call(&self, link: Link, input: Self::Input) -> impl Future<Output = Result<Buffer>> + Send;
}

/// Hands `callable` to the host.
pub(super) fn object<C: Callable>(callable: C) -> Object {
    /// The callable, and what keeps the runtime there for it.
    struct Table<C>(C, User);

    impl<C: Callable> Table<C> {
        const TABLE: &'static ObjectTable =
            &ObjectTable { size: size_of::<ObjectTable>(), call: Self::call, drop: Self::drop };

        unsafe extern "C" fn call(data: *mut c_void, call: *const c_void, input: Text) -> table::Future {
            // SAFETY: The contract gives back the data of `object`, which ends after all its futures.
            let Self(callable, _) = unsafe { &*data.cast::<Self>() };
            // SAFETY: The contract makes `call` live until the future is dropped.
            let link = unsafe { Link::new(call) };
            // SAFETY: The text is borrowed for this call.
            let input = logged("reading the input of a call", || C::read(unsafe { input.bytes() }));
            match input {
                // SAFETY: The future borrows the object, which outlives it.
                Some(Ok(input)) => unsafe { export(InRuntime, callable.call(link, input)) },
                // SAFETY: The future borrows nothing.
                Some(Err(error)) => unsafe { export(InRuntime, async move { Err(error) }) },
                // SAFETY: The future borrows nothing.
                None => unsafe { export(InRuntime, async { Err(super::extension::broken("input")) }) },
            }
        }

        unsafe extern "C" fn drop(data: *mut c_void) {
            logged("dropping a part of an extension", || {
                // SAFETY: The contract gives back, once, the data of `object`.
                let Self(callable, _user) = *unsafe { Box::from_raw(data.cast::<Self>()) };
                let _inside = InRuntime.enter();
                std::mem::drop(callable);
            });
        }
    }

    Object { data: Box::into_raw(Box::new(Table(callable, User::new()))).cast(), table: Table::<C>::TABLE }
}

impl<K: GuestKind> Callable for Layer<K>
where
    K::Output: Crossing,
{
    type Input = ();

    fn read(_: &[u8]) -> Result<()> {
        Ok(())
    }

    async fn call(&self, link: Link, (): ()) -> Result<Buffer> {
        let mut run = Run::new(link);
        let result = self.run(K::host(&mut run)).await;
        // What the layer changed last goes to the host before the outer layers look, also after a failure.
        drop(run);
        match result?.into_returned()? {
            Returned::Remote(handle) => Ok(handle_buffer::<K>(handle)),
            Returned::Local(fields) => Buffer::json(&fields),
        }
    }
}

/// Answers the calls of a tool.
pub(super) struct Tool(pub(super) Arc<dyn ToolHandler>);

impl Callable for Tool {
    type Input = Value;

    fn read(input: &[u8]) -> Result<Value> {
        Ok(serde_json::from_slice(input)?)
    }

    async fn call(&self, link: Link, input: Value) -> Result<Buffer> {
        let run = ToolRun::new(link)?;
        Buffer::json(&self.0.call(&ToolContext::new(&run), input).await?)
    }
}

/// Handles events.
pub(super) struct Subscriber(pub(super) Arc<dyn EventHandler>);

#[derive(Deserialize)]
struct EventForm {
    name: String,
    args: Vec<Value>,
}

impl Callable for Subscriber {
    type Input = Event;

    fn read(input: &[u8]) -> Result<Event> {
        let EventForm { name, args } = serde_json::from_slice(input)?;
        Event::new(name, args)
    }

    async fn call(&self, _: Link, event: Event) -> Result<Buffer> {
        self.0.handle(&event).await.map(|()| Buffer::EMPTY)
    }
}

/// Runs before the extension goes away.
pub(super) struct Cleanup(pub(super) Arc<dyn CleanupHandler>);

impl Callable for Cleanup {
    type Input = ();

    fn read(_: &[u8]) -> Result<()> {
        Ok(())
    }

    async fn call(&self, _: Link, (): ()) -> Result<Buffer> {
        self.0.clean_up().await.map(|()| Buffer::EMPTY)
    }
}
