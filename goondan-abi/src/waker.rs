//! Wakers across the ABI. Each binary lends its wakers in the form of the contract, unwraps its own when they come
//! back, and passes on those of other binaries unchanged.

use std::mem::ManuallyDrop;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};

use crate::panic::catch_or_log;
use crate::table;

/// A waker of this binary, lent to the other one for one poll.
#[repr(C)]
struct BorrowedWaker<'a> {
    head: table::Waker,
    waker: &'a Waker,
}

/// A waker of this binary that the other one owns.
#[repr(C)]
struct OwnedWaker {
    head: table::Waker,
    waker: Waker,
}

/// Calls `poll` with `waker` in the form of the contract.
pub(crate) fn lend<T>(waker: &Waker, poll: impl FnOnce(*const table::Waker) -> T) -> T {
    if std::ptr::eq(waker.vtable(), &FOREIGN) {
        // A waker of another binary is passed on as it is instead of being wrapped once more.
        return poll(waker.data().cast());
    }
    let borrowed = BorrowedWaker { head: table::Waker { table: &BORROWED }, waker };
    poll((&raw const borrowed).cast())
}

/// Calls `poll` with a task context for `waker`.
///
/// # Safety
/// `waker` must be a waker of the contract that is valid until this function returns.
pub(crate) unsafe fn with_context<T>(waker: *const table::Waker, poll: impl FnOnce(&mut Context<'_>) -> T) -> T {
    // SAFETY: The caller guarantees a valid waker, whose first field is its table.
    let table = unsafe { (*waker).table };
    if std::ptr::eq(table, &BORROWED) {
        // SAFETY: Only `lend` of this binary writes that table, into a `BorrowedWaker` that lives until its call of
        // `poll` returns; this function runs within that call.
        let borrowed = unsafe { &*waker.cast::<BorrowedWaker<'_>>() };
        return poll(&mut Context::from_waker(borrowed.waker));
    }
    if std::ptr::eq(table, &OWNED) {
        // SAFETY: Only `to_owned_waker` of this binary writes that table, into an `OwnedWaker`; the caller guarantees
        // that it is valid until this function returns.
        let owned = unsafe { &*waker.cast::<OwnedWaker>() };
        return poll(&mut Context::from_waker(&owned.waker));
    }
    // `ManuallyDrop`, because the waker is only borrowed. SAFETY: The functions of `FOREIGN` forward to the waker's
    // table, which the contract requires to be thread-safe and to clone, wake and drop as `RawWaker` demands.
    let waker = ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(waker.cast(), &FOREIGN)) });
    poll(&mut Context::from_waker(&waker))
}

/// The vtable of wakers of other binaries within this one. Each binary has its own copy at its own address, by which
/// `lend` recognizes such wakers.
static FOREIGN: RawWakerVTable =
    RawWakerVTable::new(foreign::clone, foreign::wake, foreign::wake_by_ref, foreign::drop);

mod foreign {
    use super::{FOREIGN, RawWaker, table};

    /// # Safety
    /// `data` must be a valid waker of another binary.
    unsafe fn table(data: *const ()) -> &'static table::WakerTable {
        // SAFETY: The caller guarantees a valid waker.
        let table = unsafe { (*data.cast::<table::Waker>()).table };
        // SAFETY: By the contract, tables are valid as long as the process runs.
        unsafe { &*table }
    }

    pub(super) unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: `Waker` passes the data that `with_context` or `clone` created it from.
        let table = unsafe { table(data) };
        // SAFETY: As above; the function belongs to that waker.
        let waker = unsafe { (table.clone)(data.cast()) };
        RawWaker::new(waker.cast(), &FOREIGN)
    }

    pub(super) unsafe fn wake(data: *const ()) {
        // SAFETY: `Waker` passes the data that `clone` created it from.
        let table = unsafe { table(data) };
        // SAFETY: As above; `Waker` owns the waker and does not use it afterwards.
        unsafe { (table.wake)(data.cast()) }
    }

    pub(super) unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: `Waker` passes the data that `with_context` or `clone` created it from.
        let table = unsafe { table(data) };
        // SAFETY: As above; the function belongs to that waker.
        unsafe { (table.wake_by_ref)(data.cast()) }
    }

    pub(super) unsafe fn drop(data: *const ()) {
        // SAFETY: `Waker` passes the data that `clone` created it from.
        let table = unsafe { table(data) };
        // SAFETY: As above; `Waker` owns the waker and does not use it afterwards.
        unsafe { (table.drop)(data.cast()) }
    }
}

static BORROWED: table::WakerTable = table::WakerTable {
    size: size_of::<table::WakerTable>(),
    clone: borrowed::clone,
    wake: borrowed::wake,
    wake_by_ref: borrowed::wake,
    drop: borrowed::drop,
};

static OWNED: table::WakerTable = table::WakerTable {
    size: size_of::<table::WakerTable>(),
    clone: owned::clone,
    wake: owned::wake,
    wake_by_ref: owned::wake_by_ref,
    drop: owned::drop,
};

/// Returns a clone of `waker` that the other binary owns.
fn to_owned_waker(waker: &Waker) -> *const table::Waker {
    let cloned = catch_or_log("cloning a waker", || waker.clone()).unwrap_or_else(|| Waker::noop().clone());
    Box::into_raw(Box::new(OwnedWaker { head: table::Waker { table: &OWNED }, waker: cloned })).cast()
}

mod borrowed {
    use super::{BorrowedWaker, catch_or_log, table, to_owned_waker};

    pub(super) unsafe extern "C" fn clone(waker: *const table::Waker) -> *const table::Waker {
        // SAFETY: Only a `BorrowedWaker` has this table; by the contract the other binary uses it only during the
        // poll that it was lent for.
        let borrowed = unsafe { &*waker.cast::<BorrowedWaker<'_>>() };
        to_owned_waker(borrowed.waker)
    }

    pub(super) unsafe extern "C" fn wake(waker: *const table::Waker) {
        // SAFETY: Only a `BorrowedWaker` has this table; by the contract the other binary uses it only during the
        // poll that it was lent for.
        let borrowed = unsafe { &*waker.cast::<BorrowedWaker<'_>>() };
        catch_or_log("waking a task", || borrowed.waker.wake_by_ref());
    }

    /// Does nothing, because a borrowed waker is not owned.
    pub(super) unsafe extern "C" fn drop(_: *const table::Waker) {}
}

mod owned {
    use super::{OwnedWaker, catch_or_log, table, to_owned_waker};

    pub(super) unsafe extern "C" fn clone(waker: *const table::Waker) -> *const table::Waker {
        // SAFETY: Only an `OwnedWaker` has this table; by the contract the caller owns it.
        let owned = unsafe { &*waker.cast::<OwnedWaker>() };
        to_owned_waker(&owned.waker)
    }

    pub(super) unsafe extern "C" fn wake_by_ref(waker: *const table::Waker) {
        // SAFETY: Only an `OwnedWaker` has this table; by the contract the caller owns it.
        let owned = unsafe { &*waker.cast::<OwnedWaker>() };
        catch_or_log("waking a task", || owned.waker.wake_by_ref());
    }

    pub(super) unsafe extern "C" fn wake(waker: *const table::Waker) {
        // SAFETY: Only a box that `to_owned_waker` leaked has this table; by the contract the caller gives up its
        // ownership.
        let owned = unsafe { Box::from_raw(waker.cast_mut().cast::<OwnedWaker>()) };
        catch_or_log("waking a task", || owned.waker.wake());
    }

    pub(super) unsafe extern "C" fn drop(waker: *const table::Waker) {
        // SAFETY: Only a box that `to_owned_waker` leaked has this table; by the contract the caller gives up its
        // ownership.
        let owned = unsafe { Box::from_raw(waker.cast_mut().cast::<OwnedWaker>()) };
        catch_or_log("ending a waker", || std::mem::drop(owned));
    }
}
