//! Owns wakers on their way: each side lends its own, unwraps its own when it comes back, and forwards those of the other.

use std::mem::ManuallyDrop;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};

use crate::panic::logged;
use crate::table;

/// A waker of this side, lent for one poll.
#[repr(C)]
struct Lent<'a> {
    head: table::Waker,
    waker: &'a Waker,
}

/// A waker of this side that the other side keeps.
#[repr(C)]
struct Kept {
    head: table::Waker,
    waker: Waker,
}

/// Runs `poll` with `waker` in the form of the contract.
pub(crate) fn lend<T>(waker: &Waker, poll: impl FnOnce(*const table::Waker) -> T) -> T {
    if std::ptr::eq(waker.vtable(), &FOREIGN) {
        // It is the other side's, or a third one's: it goes on as it is instead of getting one more wrapping.
        return poll(waker.data().cast());
    }
    let lent = Lent { head: table::Waker { table: &LENT }, waker };
    poll((&raw const lent).cast())
}

/// Runs `poll` with what `waker` is to this side.
///
/// # Safety
/// `waker` must be one that was lent by the contract for the length of the call.
pub(crate) unsafe fn with_context<T>(waker: *const table::Waker, poll: impl FnOnce(&mut Context<'_>) -> T) -> T {
    // SAFETY: The caller guarantees a waker, whose first field is its table.
    let table = unsafe { (*waker).table };
    if std::ptr::eq(table, &LENT) {
        // SAFETY: Only `lend` of this side writes that table, into a `Lent` that lives as long as its poll, which this call
        // is inside of.
        let lent = unsafe { &*waker.cast::<Lent<'_>>() };
        return poll(&mut Context::from_waker(lent.waker));
    }
    if std::ptr::eq(table, &KEPT) {
        // SAFETY: Only `keep` of this side writes that table, and whoever lends the waker keeps it alive for the call.
        let kept = unsafe { &*waker.cast::<Kept>() };
        return poll(&mut Context::from_waker(&kept.waker));
    }
    // Borrowed: what is lent is not ended here.
    // SAFETY: The table does with the waker what a `RawWaker` asks for, by the contract from any thread.
    let waker = ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(waker.cast(), &FOREIGN)) });
    poll(&mut Context::from_waker(&waker))
}

/// A waker of the other side, as one of this side. Its address says so: there is one for each binary.
static FOREIGN: RawWakerVTable =
    RawWakerVTable::new(foreign::clone, foreign::wake, foreign::wake_by_ref, foreign::drop);

mod foreign {
    use super::{FOREIGN, RawWaker, table};

    /// # Safety
    /// `data` must be a waker of the other side that lives.
    unsafe fn table(data: *const ()) -> &'static table::WakerTable {
        // SAFETY: The caller guarantees a waker.
        let table = unsafe { (*data.cast::<table::Waker>()).table };
        // SAFETY: Tables live as long as the process.
        unsafe { &*table }
    }

    pub(super) unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: `Waker` calls this with the data that it was made from.
        let table = unsafe { table(data) };
        // SAFETY: As above.
        let waker = unsafe { (table.clone)(data.cast()) };
        RawWaker::new(waker.cast(), &FOREIGN)
    }

    pub(super) unsafe fn wake(data: *const ()) {
        // SAFETY: `Waker` calls this with the data that it was made from.
        let table = unsafe { table(data) };
        // SAFETY: As above, and does not use it afterwards.
        unsafe { (table.wake)(data.cast()) }
    }

    pub(super) unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: `Waker` calls this with the data that it was made from.
        let table = unsafe { table(data) };
        // SAFETY: As above.
        unsafe { (table.wake_by_ref)(data.cast()) }
    }

    pub(super) unsafe fn drop(data: *const ()) {
        // SAFETY: `Waker` calls this with the data that it was made from.
        let table = unsafe { table(data) };
        // SAFETY: As above, and does not use it afterwards.
        unsafe { (table.drop)(data.cast()) }
    }
}

static LENT: table::WakerTable = table::WakerTable {
    size: size_of::<table::WakerTable>(),
    clone: lent::clone,
    wake: lent::wake,
    wake_by_ref: lent::wake,
    drop: lent::drop,
};

static KEPT: table::WakerTable = table::WakerTable {
    size: size_of::<table::WakerTable>(),
    clone: kept::clone,
    wake: kept::wake,
    wake_by_ref: kept::wake_by_ref,
    drop: kept::drop,
};

/// A copy that the other side owns.
fn keep(waker: &Waker) -> *const table::Waker {
    let cloned = logged("cloning a waker", || waker.clone()).unwrap_or_else(|| Waker::noop().clone());
    Box::into_raw(Box::new(Kept { head: table::Waker { table: &KEPT }, waker: cloned })).cast()
}

mod lent {
    use super::{Lent, keep, logged, table};

    pub(super) unsafe extern "C" fn clone(waker: *const table::Waker) -> *const table::Waker {
        // SAFETY: This table stands only in a `Lent`, which lives for the poll that it was lent for.
        let lent = unsafe { &*waker.cast::<Lent<'_>>() };
        keep(lent.waker)
    }

    pub(super) unsafe extern "C" fn wake(waker: *const table::Waker) {
        // SAFETY: This table stands only in a `Lent`, which lives for the poll that it was lent for.
        let lent = unsafe { &*waker.cast::<Lent<'_>>() };
        logged("waking a task", || lent.waker.wake_by_ref());
    }

    /// What is lent is not owned: there is nothing to end.
    pub(super) unsafe extern "C" fn drop(_: *const table::Waker) {}
}

mod kept {
    use super::{Kept, keep, logged, table};

    pub(super) unsafe extern "C" fn clone(waker: *const table::Waker) -> *const table::Waker {
        // SAFETY: This table stands only in a `Kept`, and who calls owns it.
        let kept = unsafe { &*waker.cast::<Kept>() };
        keep(&kept.waker)
    }

    pub(super) unsafe extern "C" fn wake_by_ref(waker: *const table::Waker) {
        // SAFETY: This table stands only in a `Kept`, and who calls owns it.
        let kept = unsafe { &*waker.cast::<Kept>() };
        logged("waking a task", || kept.waker.wake_by_ref());
    }

    pub(super) unsafe extern "C" fn wake(waker: *const table::Waker) {
        // SAFETY: This table stands only in a `Kept` out of `keep`, and who calls gives it up.
        let kept = unsafe { Box::from_raw(waker.cast_mut().cast::<Kept>()) };
        logged("waking a task", || kept.waker.wake());
    }

    pub(super) unsafe extern "C" fn drop(waker: *const table::Waker) {
        // SAFETY: This table stands only in a `Kept` out of `keep`, and who calls gives it up.
        let kept = unsafe { Box::from_raw(waker.cast_mut().cast::<Kept>()) };
        logged("ending a waker", || std::mem::drop(kept));
    }
}
