//! A free list for the memory of exported futures. Layers start and end in the same order in every run, so the memory
//! of the last run fits; an allocator is slower for blocks of more than a few words when many are nested.
//!
//! With `Box` instead, a loaded layer that only calls `next` takes 3 allocations instead of 2, and a fifth more
//! instructions (`benches/benches/loaded.rs`; `benches/tests/budget.rs` asserts the allocations).

use std::cell::RefCell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Memory for one future, as large and as aligned as the futures of layers need.
type Block = MaybeUninit<[u128; 20]>;

/// The most free blocks that a thread keeps, which is at most 20 KiB.
const MAX_FREE: usize = 64;

/// A block without a value. Boxed, because it moves between the list and its users.
struct FreeBlock(Box<Block>);

thread_local! {
    static FREE: RefCell<Vec<FreeBlock>> = const { RefCell::new(Vec::new()) };
}

/// A box whose memory comes from the free list of the thread, and is returned to the list of the thread that drops
/// it. A value that does not fit into a block has a box of its own.
pub(crate) struct Pooled<T>(NonNull<T>);

impl<T> Pooled<T> {
    const FITS: bool = size_of::<T>() <= size_of::<Block>() && align_of::<T>() <= align_of::<Block>();

    pub(crate) fn new(value: T) -> Self {
        if !Self::FITS {
            return Self(NonNull::from(Box::leak(Box::new(value))));
        }
        // A thread that is ending has no list any more.
        let free = FREE.try_with(|free| free.borrow_mut().pop()).ok().flatten();
        let block = free.map_or_else(Box::new_uninit, |FreeBlock(block)| block);
        let value_in_block = NonNull::from(Box::leak(block)).cast::<T>();
        // SAFETY: The block was just leaked, so it has no other user; by `FITS` it is large and aligned enough.
        unsafe { value_in_block.write(value) };
        Self(value_in_block)
    }

    /// Returns a pointer to the value, without dropping the value.
    pub(crate) fn into_raw(self) -> *mut T {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// # Safety
    /// `raw` must have been returned by [`Pooled::into_raw`], and must not be used otherwise afterwards.
    pub(crate) unsafe fn from_raw(raw: *mut T) -> Self {
        // SAFETY: The caller guarantees a pointer of `into_raw`, which is not null.
        Self(unsafe { NonNull::new_unchecked(raw) })
    }
}

impl<T> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `new` wrote the value, which `self` owns.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As above; `&mut self` makes the access exclusive.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for Pooled<T> {
    fn drop(&mut self) {
        if !Self::FITS {
            // SAFETY: `new` leaked a box for a value of this size, and `self` is its only owner.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
            return;
        }
        // A guard, so that the block is returned even if dropping the value panics.
        let _return = ReturnOnDrop(self.0.cast());
        // SAFETY: `new` wrote the value, and it is not used afterwards.
        unsafe { self.0.drop_in_place() };
    }
}

/// A block whose value was dropped. Dropping this returns it to the free list.
struct ReturnOnDrop(NonNull<Block>);

impl Drop for ReturnOnDrop {
    fn drop(&mut self) {
        // SAFETY: `Pooled::new` leaked the block, and `Pooled::drop` has dropped its value.
        let mut block = Some(FreeBlock(unsafe { Box::from_raw(self.0.as_ptr()) }));
        // A thread that is ending has no list any more; then the block is freed.
        _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < MAX_FREE {
                free.extend(block.take());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Pooled;

    #[test]
    fn values_of_all_sizes_are_stored_and_dropped_once() {
        let shared = Arc::new(());
        let small: Vec<_> = (0..100).map(|number| Pooled::new((number, Arc::clone(&shared)))).collect();
        let large = Pooled::new(([0_u8; 1000], Arc::clone(&shared)));
        assert!(small.iter().map(|pooled| (**pooled).0).eq(0..100));
        assert_eq!(Arc::strong_count(&shared), 102);
        drop((small, large));
        assert_eq!(Arc::strong_count(&shared), 1);
        // In the block of a value of another type.
        assert_eq!(*Pooled::new("text".to_owned()), "text");
    }
}
