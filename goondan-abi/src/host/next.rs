//! The rest of the chain while a middleware of a library runs: `run_next`, whose future is stored inside of the
//! future of that middleware.

use std::ffi::c_void;
use std::pin::Pin;
use std::ptr::NonNull;

use goondan_core::{Error, ErrorCode, Kind, Next, Result};
use tokio::runtime::Handle;

use super::kind::HostKind;
use super::result;
use super::runtime::HostScope;
use crate::future::{FutureSlot, NoScope, export};
use crate::table::{self, Buffer};

/// The context and `next` of a run, and storage for the future that `make` makes of them when the library calls
/// `run_next`.
pub(super) struct InlineNext<'a, 'b, K: Kind, M, F> {
    ctx: NonNull<K::Context<'b>>,
    /// NEXT-03: `None` after the first `run_next`.
    next: Option<Next<'a, K>>,
    make: M,
    slot: FutureSlot<HostScope<'a>, F>,
}

// SAFETY: The pointer replaces a `&mut` of the context, which is `Send`; the bounds make the other parts `Send`.
unsafe impl<K: Kind, M: Send, F: Send> Send for InlineNext<'_, '_, K, M, F> {}

/// Runs the rest of the chain and returns a handle to its result.
pub(super) async fn run_next<K: HostKind>(ctx: &mut K::Context<'_>, next: Next<'_, K>) -> Result<Buffer> {
    Ok(result::into_handle::<K>(next.run(ctx).await?))
}

impl<'a, 'b, K, M, F> InlineNext<'a, 'b, K, M, F>
where
    K: HostKind,
    K::Context<'b>: 'a,
    M: Fn(&'a mut K::Context<'b>, Next<'a, K>) -> F,
    F: Future<Output = Result<Buffer>> + Send,
{
    pub(super) fn new(ctx: &'a mut K::Context<'b>, next: Next<'a, K>, host: Option<&'a Handle>, make: M) -> Self {
        Self { ctx: NonNull::from(ctx), next: Some(next), make, slot: FutureSlot::new(HostScope(host)) }
    }

    /// Returns pointers to the context and to `self`, for a call of the library.
    pub(super) fn parts(self: Pin<&mut Self>) -> (NonNull<K::Context<'static>>, StartNext) {
        // SAFETY: Nothing is moved out of `self`: `start` creates the future within the slot.
        let this = unsafe { self.get_unchecked_mut() };
        (this.ctx.cast(), StartNext { inline: NonNull::from(this).cast(), start: Self::start })
    }

    /// # Safety
    /// `inline` must belong to a [`StartNext`] that `parts` of this type returned, and must still be pinned. Until
    /// the library drops the future, which must be before the end of the call, nothing else may use the call.
    unsafe fn start(inline: NonNull<c_void>) -> table::Future {
        // SAFETY: The caller guarantees the pointer that `parts` made of a `Self`, and exclusive access.
        let this = unsafe { inline.cast::<Self>().as_mut() };
        let Some(next) = this.next.take() else {
            let error = Error::new(ErrorCode::EXT_NEXT, "the middleware ran `next` a second time")
                .suggest("run `next` once; to retry, return `Error::retry_after`");
            // SAFETY: The future borrows nothing.
            return unsafe { export(NoScope, async { Err(error) }) };
        };
        // SAFETY: `new` borrowed the context for `'a`, and the caller guarantees exclusive access.
        let ctx = unsafe { this.ctx.as_mut() };
        // SAFETY: The caller guarantees that `this` stays pinned and unused until the library drops the future, which
        // is before the end of the call.
        unsafe { this.slot.lend((this.make)(ctx, next)) }
    }
}

/// Starts an [`InlineNext`] whose type is erased.
pub(super) struct StartNext {
    inline: NonNull<c_void>,
    start: unsafe fn(NonNull<c_void>) -> table::Future,
}

// SAFETY: An `InlineNext` is `Send` if its parts are, and `InlineNext::new` takes no others.
unsafe impl Send for StartNext {}
// SAFETY: Only `start` accesses the pointer, and its caller guarantees exclusive access.
unsafe impl Sync for StartNext {}

impl StartNext {
    /// # Safety
    /// The [`InlineNext`] must still be pinned. Until the library drops the future, which must be before the end of
    /// the call, nothing else may use the call.
    pub(super) unsafe fn start(&self) -> table::Future {
        // SAFETY: `parts` paired the pointer with the function, and the caller guarantees the rest.
        unsafe { (self.start)(self.inline) }
    }
}
