//! A mutex that can be used after a panic of its holder.
//!
//! A panic that unwinds past the guard of a [`std::sync::Mutex`] poisons the mutex: each later `lock` is an error. That
//! protects values which a holder changes in several steps. goondan catches the panics of extensions, and a
//! conversation goes on after one; what one extension has locked must not fail for all others from then on. So the
//! values behind a [`Lock`] are changed in one step, or in steps that each leave them usable.
//!
//! ```
//! use std::panic::{AssertUnwindSafe, catch_unwind};
//!
//! use goondan_lock::Lock;
//!
//! let count = Lock::new(1);
//! let panicked = catch_unwind(AssertUnwindSafe(|| {
//!     let _count = count.lock();
//!     panic!("while it is locked");
//! }));
//! assert!(panicked.is_err());
//! *count.lock() += 1;
//! assert_eq!(count.into_inner(), 2);
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex that can be used after a panic of its holder.
#[derive(Debug, Default)]
pub struct Lock<T: ?Sized>(Mutex<T>);

impl<T> Lock<T> {
    /// A lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Lock<T> {
    /// Waits until no other thread holds the lock, and locks the value until the guard is dropped. A thread that holds
    /// the lock already deadlocks or panics.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value, which no other thread can use meanwhile.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
