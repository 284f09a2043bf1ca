//! Owns the rest of the onion while a library's middleware runs: its future lies in the future of that middleware.

use std::ffi::c_void;
use std::pin::Pin;
use std::ptr::NonNull;

use goondan_core::{Error, ErrorCode, Kind, Next, Result};
use tokio::runtime::Handle;

use super::call::{HostKind, Run};
use super::result;
use super::runtime::InHost;
use crate::future::{Nothing, Room, export};
use crate::table::{self, Buffer};

/// `next`, until a library runs it, and the room for its future, which is made by `make`.
pub(super) struct Rest<'a, 'b, K: Kind, M, F> {
    ctx: NonNull<K::Context<'b>>,
    /// `None` once it ran (NEXT-03).
    next: Option<Next<'a, K>>,
    make: M,
    room: Room<InHost<'a>, F>,
}

// SAFETY: The context is `Send`, and so are the other parts.
unsafe impl<K: Kind, M: Send, F: Send> Send for Rest<'_, '_, K, M, F> {}

/// Runs the rest of the onion.
pub(super) async fn go_on<K: HostKind>(ctx: &mut K::Context<'_>, next: Next<'_, K>) -> Result<Buffer> {
    Ok(result::into_handle::<K>(next.run(ctx).await?))
}

impl<'a, 'b, K, M, F> Rest<'a, 'b, K, M, F>
where
    K: HostKind,
    K::Context<'b>: 'a,
    M: Fn(&'a mut K::Context<'b>, Next<'a, K>) -> F,
    F: Future<Output = Result<Buffer>> + Send,
{
    pub(super) fn new(ctx: &'a mut K::Context<'b>, next: Next<'a, K>, host: Option<&'a Handle>, make: M) -> Self {
        Self { ctx: NonNull::from(ctx), next: Some(next), make, room: Room::new(InHost(host)) }
    }

    /// What a call holds of it.
    pub(super) fn run(self: Pin<&mut Self>) -> Run<K> {
        // SAFETY: Nothing is moved out: `enter` makes the future where it stays.
        let this = unsafe { self.get_unchecked_mut() };
        Run { ctx: this.ctx.cast(), next: Start { rest: NonNull::from(this).cast(), start: Self::enter } }
    }

    /// # Safety
    /// `rest` must be that of a [`Start`] of this type, whose pin still holds. Nothing else may use the call until the future
    /// is dropped, which must be before the call ends.
    unsafe fn enter(rest: NonNull<c_void>) -> table::Future {
        // SAFETY: The caller guarantees what `start` has put there, and keeps others away.
        let this = unsafe { rest.cast::<Self>().as_mut() };
        let Some(next) = this.next.take() else {
            let error = Error::new(ErrorCode::EXT_NEXT, "the middleware ran `next` a second time")
                .suggest("run `next` once; to retry, return `Error::retry_after`");
            // SAFETY: The future borrows nothing.
            return unsafe { export(Nothing, async { Err(error) }) };
        };
        // SAFETY: The context is borrowed for `'a`, and the caller keeps others away.
        let ctx = unsafe { this.ctx.as_mut() };
        // SAFETY: `this` is pinned, and the caller ends the future before the call.
        unsafe { this.room.lend((this.make)(ctx, next)) }
    }
}

/// Starts a [`Rest`] whose type has no name.
pub(super) struct Start {
    rest: NonNull<c_void>,
    start: unsafe fn(NonNull<c_void>) -> table::Future,
}

// SAFETY: A `Rest` is `Send` when its parts are, and `Rest::new` takes no others.
unsafe impl Send for Start {}
// SAFETY: It is used by `start` alone, whose caller keeps others away.
unsafe impl Sync for Start {}

impl Start {
    /// # Safety
    /// As for [`Rest::enter`].
    pub(super) unsafe fn start(&self) -> table::Future {
        // SAFETY: `Rest::run` made the two for each other, and the caller guarantees the rest.
        unsafe { (self.start)(self.rest) }
    }
}
