//! Futures across the ABI: those of this binary for the other one to poll, and those of the other one as futures of
//! this.

use std::ffi::c_void;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use goondan_core::{Error, Result};

use crate::bytes::{OwnedBuffer, error_buffer};
use crate::panic::{catch, catch_or_log, drop_guarded};
use crate::pool::Pooled;
use crate::table::{self, Buffer, FAILED, FutureTable, OK, PANICKED, PENDING};
use crate::waker::{lend, with_context};

/// A scope that is entered around every poll and drop of a future: the runtime of this binary, or a mark on the
/// thread.
pub(crate) trait PollScope: Send {
    /// Leaves the scope when it is dropped.
    type Guard;
    /// Enters the scope.
    fn enter(&self) -> Self::Guard;

    /// Returns the extension whose code runs in the scope, for the log.
    fn owner(&self) -> &str {
        "the program"
    }
}

/// Enters nothing.
pub(crate) struct NoScope;

impl PollScope for NoScope {
    type Guard = ();

    fn enter(&self) {}
}

/// A future of this binary that the other one polls.
struct Exported<S, F> {
    scope: S,
    /// Pinned from its first poll on. It is dropped as soon as it is ready, within the scope of that poll, so that
    /// dropping `self` need not enter the scope again.
    future: Option<F>,
}

/// Passes a future to the other binary. It is polled within `scope`.
///
/// # Safety
/// The contract must make the other binary drop the future before the borrows of `scope` and `future` end.
pub(crate) unsafe fn export<S, F>(scope: S, future: F) -> table::Future
where
    S: PollScope,
    F: Future<Output = Result<Buffer>> + Send,
{
    let data = Pooled::new(Exported { scope, future: Some(future) }).into_raw();
    table::Future { data: data.cast(), table: Exported::<S, F>::POOLED }
}

/// Storage for one future that the other binary polls in place, which saves an allocation.
#[cfg(feature = "host")]
pub(crate) struct FutureSlot<S, F>(Exported<S, F>);

#[cfg(feature = "host")]
impl<S: PollScope, F: Future<Output = Result<Buffer>> + Send> FutureSlot<S, F> {
    pub(crate) fn new(scope: S) -> Self {
        Self(Exported { scope, future: None })
    }

    /// Stores `future` and lends it to the other binary. It is polled within the scope of the slot.
    ///
    /// # Safety
    /// The slot must be neither used nor moved until the other binary has dropped the future. The contract must make
    /// it do so before the borrows of the slot and of `future` end.
    pub(crate) unsafe fn lend(&mut self, future: F) -> table::Future {
        self.0.future = Some(future);
        table::Future { data: (&raw mut self.0).cast(), table: Exported::<S, F>::IN_SLOT }
    }
}

impl<S: PollScope, F: Future<Output = Result<Buffer>> + Send> Exported<S, F> {
    /// The table of futures that `export` moved to the heap.
    const POOLED: &'static FutureTable =
        &FutureTable { size: size_of::<FutureTable>(), poll: Self::poll, drop: Self::drop };
    /// The table of futures in a `FutureSlot`.
    #[cfg(feature = "host")]
    const IN_SLOT: &'static FutureTable =
        &FutureTable { size: size_of::<FutureTable>(), poll: Self::poll, drop: Self::clear };

    unsafe extern "C" fn poll(data: *mut c_void, waker: *const table::Waker, output: *mut Buffer) -> i32 {
        let polled = catch(|| {
            // SAFETY: The contract makes the caller pass the data that came with the table, not dropped yet, and not
            // from two threads at a time.
            let this = unsafe { &mut *data.cast::<Self>() };
            let _guard = this.scope.enter();
            // SAFETY: Neither the pool nor the slot moves the value; the future is only dropped in place.
            let mut future = unsafe { Pin::new_unchecked(&mut this.future) };
            let Some(running) = future.as_mut().as_pin_mut() else {
                let error = Error::msg("a future was polled after its end");
                return Poll::Ready(Err(error_buffer(error, this.scope.owner())));
            };
            // SAFETY: The contract makes the caller lend a valid waker for this call.
            let polled = unsafe { with_context(waker, |cx| running.poll(cx)) };
            if polled.is_ready() {
                future.set(None);
            }
            polled.map_err(|error| error_buffer(error, this.scope.owner()))
        });
        let (status, buffer) = match polled {
            Ok(Poll::Pending) => return PENDING,
            Ok(Poll::Ready(Ok(buffer))) => (OK, buffer),
            Ok(Poll::Ready(Err(error))) => (FAILED, error),
            Err(text) => (PANICKED, Buffer::bytes(text.into_bytes())),
        };
        // SAFETY: The contract makes the caller pass a writable `output`.
        unsafe { output.write(buffer) };
        status
    }

    /// Drops the future if it has not ended.
    fn cancel(&mut self) {
        let Self { scope, future } = self;
        if future.is_some() {
            drop_guarded(scope.owner(), || {
                let _guard = scope.enter();
                *future = None;
            });
        }
    }

    unsafe extern "C" fn drop(data: *mut c_void) {
        catch_or_log("dropping a future", || {
            // SAFETY: The contract makes the caller pass, once, the data that `export` returned.
            let mut this = unsafe { Pooled::from_raw(data.cast::<Self>()) };
            this.cancel();
            // The scope is dropped after it was left, because it may be the last reference to the runtime.
        });
    }

    #[cfg(feature = "host")]
    unsafe extern "C" fn clear(data: *mut c_void) {
        catch_or_log("dropping a future", || {
            // SAFETY: The contract makes the caller pass, once, the data that `lend` returned; the caller of `lend`
            // guarantees that the slot is valid and not used otherwise.
            unsafe { &mut *data.cast::<Self>() }.cancel();
        });
    }
}

/// A future of the other binary. It is polled and dropped within `scope`. A panic that the other binary reports is
/// resumed here, so that it reaches the code that would catch it in a linked extension.
pub(crate) struct Imported<S: PollScope> {
    raw: table::Future,
    scope: S,
    is_over: bool,
}

// SAFETY: The contract allows polling and dropping a future on any thread, though not concurrently.
unsafe impl<S: PollScope> Send for Imported<S> {}
// SAFETY: No method takes `&self`: polling and dropping have exclusive access.
unsafe impl<S: PollScope> Sync for Imported<S> {}

impl<S: PollScope + Unpin> Imported<S> {
    /// # Safety
    /// `raw` must be a future that the other binary returned, and must have no other owner.
    pub(crate) unsafe fn new(raw: table::Future, scope: S) -> Self {
        Self { raw, scope, is_over: false }
    }
}

impl<S: PollScope + Unpin> Future for Imported<S> {
    type Output = Result<OwnedBuffer>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<OwnedBuffer>> {
        if self.is_over {
            return Poll::Ready(Err(Error::msg("a future was polled after its end")));
        }
        let mut output = Buffer::EMPTY;
        let status = {
            let _guard = self.scope.enter();
            // SAFETY: By the contract, tables are valid as long as the process runs.
            let table = unsafe { &*self.raw.table };
            // SAFETY: The data came with the table, the future is not over, and `&mut self` makes the access
            // exclusive.
            lend(cx.waker(), |waker| unsafe { (table.poll)(self.raw.data, waker, &raw mut output) })
        };
        if status == PENDING {
            return Poll::Pending;
        }
        self.is_over = true;
        // SAFETY: By the contract the other binary wrote a buffer for this one to own.
        let output = unsafe { OwnedBuffer::new(output) };
        match status {
            OK => Poll::Ready(Ok(output)),
            FAILED => Poll::Ready(Err(output.into_error())),
            _ => resume_unwind(Box::new(output.text())),
        }
    }
}

impl<S: PollScope> Drop for Imported<S> {
    fn drop(&mut self) {
        let _guard = self.scope.enter();
        // SAFETY: By the contract, tables are valid as long as the process runs.
        let table = unsafe { &*self.raw.table };
        // SAFETY: The data came with the table, and `self` is the only owner of the future.
        unsafe { (table.drop)(self.raw.data) };
    }
}
