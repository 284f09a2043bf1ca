//! The parts of extensions that the host calls: middlewares, handlers and cleanups.

use std::sync::Arc;

use goondan_core::linkage::{Crossing, Layer, Returned, WireReply};
use goondan_core::{CleanupHandler, Event, EventHandler, Presentation, Result, ShownCall, ToolContext, ToolHandler};
use serde::Deserialize;
use serde_json::Value;

use super::call::CallRef;
use super::kind::GuestKind;
use super::object::Callable;
use super::result;
use super::run::MiddlewareRun;
use super::tool::ToolRun;
use crate::table::Buffer;

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
