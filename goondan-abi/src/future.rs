//! Owns futures on their way: one of this side for the other to poll, and one of the other side as one of this side.

use std::ffi::c_void;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use goondan_core::{Error, Result};

use crate::bytes::{Owned, error_buffer};
use crate::panic::{caught, logged};
use crate::room::Kept;
use crate::table::{self, Buffer, FAILED, FutureTable, OK, PANICKED, PENDING};
use crate::waker::{lend, with_context};

/// What has to be entered around every poll and drop: the runtime of this side, or a mark.
pub(crate) trait Around: Send {
    /// Leaves when it is dropped.
    type Guard;
    /// Enters.
    fn enter(&self) -> Self::Guard;
}

/// Nothing to enter.
pub(crate) struct Nothing;

impl Around for Nothing {
    type Guard = ();

    fn enter(&self) {}
}

struct Exported<A, F> {
    around: A,
    /// Never moved once it is there: see `poll`. Ends when it is ready, inside of `around`, which then need not be entered once more.
    future: Option<F>,
}

/// A future for the other side, which polls it inside of `around`.
///
/// # Safety
/// The other side must end it, by the contract, before what `future` and `around` borrow ends.
pub(crate) unsafe fn export<A, F>(around: A, future: F) -> table::Future
where
    A: Around,
    F: Future<Output = Result<Buffer>> + Send,
{
    let data = Kept::new(Exported { around, future: Some(future) }).into_raw();
    table::Future { data: data.cast(), table: Exported::<A, F>::TABLE }
}

/// Room for one future that the other side polls where it lies, instead of in a box of its own.
#[cfg(feature = "host")]
pub(crate) struct Room<A, F>(Exported<A, F>);

#[cfg(feature = "host")]
impl<A: Around, F: Future<Output = Result<Buffer>> + Send> Room<A, F> {
    pub(crate) fn new(around: A) -> Self {
        Self(Exported { around, future: None })
    }

    /// A future for the other side, which polls it inside of `around`.
    ///
    /// # Safety
    /// This must not be used or moved before the other side has ended the future, which it must do, by the contract, before
    /// what `future` and `around` borrow ends.
    pub(crate) unsafe fn lend(&mut self, future: F) -> table::Future {
        self.0.future = Some(future);
        table::Future { data: (&raw mut self.0).cast(), table: Exported::<A, F>::LENT }
    }
}

impl<A: Around, F: Future<Output = Result<Buffer>> + Send> Exported<A, F> {
    const TABLE: &'static FutureTable =
        &FutureTable { size: size_of::<FutureTable>(), poll: Self::poll, drop: Self::drop };
    /// Of futures in a `Room`.
    #[cfg(feature = "host")]
    const LENT: &'static FutureTable =
        &FutureTable { size: size_of::<FutureTable>(), poll: Self::poll, drop: Self::clear };

    unsafe extern "C" fn poll(data: *mut c_void, waker: *const table::Waker, output: *mut Buffer) -> i32 {
        let polled = caught(|| {
            // SAFETY: The contract gives back the data that came with the table, not ended yet and not polled by anyone else.
            let this = unsafe { &mut *data.cast::<Self>() };
            let _inside = this.around.enter();
            // SAFETY: What is kept or lent is not moved out of; the future is only dropped in place.
            let mut future = unsafe { Pin::new_unchecked(&mut this.future) };
            let Some(running) = future.as_mut().as_pin_mut() else {
                return Poll::Ready(Err(Error::msg("a future was polled after its end")));
            };
            // SAFETY: The contract lends the waker for this call.
            let polled = unsafe { with_context(waker, |cx| running.poll(cx)) };
            if polled.is_ready() {
                future.set(None);
            }
            polled
        });
        let (status, buffer) = match polled {
            Ok(Poll::Pending) => return PENDING,
            Ok(Poll::Ready(Ok(buffer))) => (OK, buffer),
            Ok(Poll::Ready(Err(error))) => (FAILED, error_buffer(error)),
            Err(text) => (PANICKED, Buffer::bytes(text.into_bytes())),
        };
        // SAFETY: The contract makes `output` writable.
        unsafe { output.write(buffer) };
        status
    }

    unsafe extern "C" fn drop(data: *mut c_void) {
        logged("dropping a future", || {
            // SAFETY: The contract gives back, once, the data that `export` made.
            let mut this = unsafe { Kept::from_raw(data.cast::<Self>()) };
            if this.future.is_some() {
                let _inside = this.around.enter();
                this.future = None;
            }
            // `around` ends outside, because it may be what keeps the inside there.
        });
    }

    #[cfg(feature = "host")]
    unsafe extern "C" fn clear(data: *mut c_void) {
        logged("dropping a future", || {
            // SAFETY: The contract gives back, once, the data that `lend` made, of which nobody has another use.
            let this = unsafe { &mut *data.cast::<Self>() };
            if this.future.is_some() {
                let _inside = this.around.enter();
                this.future = None;
            }
        });
    }
}

/// A future of the other side. Its panics go on here as panics, so that whoever would meet them without the border does.
pub(crate) struct Imported<A: Around> {
    raw: table::Future,
    around: A,
    over: bool,
}

// SAFETY: The contract lets a future be polled and ended on any thread, though never at the same time.
unsafe impl<A: Around> Send for Imported<A> {}
// SAFETY: A shared one cannot be used: polling and dropping take it whole.
unsafe impl<A: Around> Sync for Imported<A> {}

impl<A: Around + Unpin> Imported<A> {
    /// # Safety
    /// `raw` must come from the other side, and nobody else may hold it.
    pub(crate) unsafe fn new(raw: table::Future, around: A) -> Self {
        Self { raw, around, over: false }
    }
}

impl<A: Around + Unpin> Future for Imported<A> {
    type Output = Result<Owned>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Owned>> {
        if self.over {
            return Poll::Ready(Err(Error::msg("a future was polled after its end")));
        }
        let mut output = Buffer::EMPTY;
        let status = {
            let _inside = self.around.enter();
            // SAFETY: Tables live as long as the process.
            let table = unsafe { &*self.raw.table };
            // SAFETY: The data came with the table, the future is not over, and `&mut self` keeps others away.
            lend(cx.waker(), |waker| unsafe { (table.poll)(self.raw.data, waker, &raw mut output) })
        };
        if status == PENDING {
            return Poll::Pending;
        }
        self.over = true;
        // SAFETY: By the contract the other side has written a buffer for us to own.
        let output = unsafe { Owned::new(output) };
        match status {
            OK => Poll::Ready(Ok(output)),
            FAILED => Poll::Ready(Err(output.into_error())),
            _ => resume_unwind(Box::new(output.text())),
        }
    }
}

impl<A: Around> Drop for Imported<A> {
    fn drop(&mut self) {
        let _inside = self.around.enter();
        // SAFETY: Tables live as long as the process.
        let table = unsafe { &*self.raw.table };
        // SAFETY: The data came with the table, and this is the one end of the future.
        unsafe { (table.drop)(self.raw.data) };
    }
}
