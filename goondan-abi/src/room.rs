//! Owns the room of futures that have ended: the next ones take it. Layers come and go in the same order in every run, and
//! an allocator has a slow way for what is larger than a few words once many of them are inside of one another.

use std::cell::RefCell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Room for one future, as large and as aligned as those of layers need.
type Room = MaybeUninit<[u128; 16]>;

/// How many a thread keeps: 16 KiB at most.
const MOST: usize = 64;

/// A room that nobody is in. In a box, for it moves between the list and whoever takes it.
struct Spare(Box<Room>);

thread_local! {
    static SPARE: RefCell<Vec<Spare>> = const { RefCell::new(Vec::new()) };
}

/// A box whose memory is used again. What does not fit into a room has a box of its own.
pub(crate) struct Kept<T>(NonNull<T>);

impl<T> Kept<T> {
    const FITS: bool = size_of::<T>() <= size_of::<Room>() && align_of::<T>() <= align_of::<Room>();

    pub(crate) fn new(value: T) -> Self {
        if !Self::FITS {
            return Self(NonNull::from(Box::leak(Box::new(value))));
        }
        // A thread that ends has none.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        let room = spare.map_or_else(Box::new_uninit, |Spare(room)| room);
        let room = NonNull::from(Box::leak(room)).cast::<T>();
        // SAFETY: The room is ours, and large and aligned enough.
        unsafe { room.write(value) };
        Self(room)
    }

    /// Gives the value up without ending it.
    pub(crate) fn into_raw(self) -> *mut T {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// # Safety
    /// `raw` must be what [`Kept::into_raw`] gave, and this must be its one use.
    pub(crate) unsafe fn from_raw(raw: *mut T) -> Self {
        // SAFETY: The caller guarantees what `new` made.
        Self(unsafe { NonNull::new_unchecked(raw) })
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The value is ours until `self` ends.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As above.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if !Self::FITS {
            // SAFETY: `new` made a box of it.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
            return;
        }
        // Also when the value panics.
        let _room = Empty(self.0.cast());
        // SAFETY: The value is whole, and not used again.
        unsafe { self.0.drop_in_place() };
    }
}

/// A room without a value, on its way back.
struct Empty(NonNull<Room>);

impl Drop for Empty {
    fn drop(&mut self) {
        // SAFETY: `Kept::new` made a room of it, whose value has ended.
        let mut room = Some(Spare(unsafe { Box::from_raw(self.0.as_ptr()) }));
        // A thread that ends keeps none.
        _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < MOST {
                spare.extend(room.take());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Kept;

    #[test]
    fn values_of_all_sizes_are_kept_and_ended_once() {
        let shared = Arc::new(());
        let small: Vec<_> = (0..100).map(|number| Kept::new((number, Arc::clone(&shared)))).collect();
        let large = Kept::new(([0_u8; 1000], Arc::clone(&shared)));
        assert!(small.iter().map(|kept| (**kept).0).eq(0..100));
        assert_eq!(Arc::strong_count(&shared), 102);
        drop((small, large));
        assert_eq!(Arc::strong_count(&shared), 1);
        // In the room of another type.
        assert_eq!(*Kept::new("text".to_owned()), "text");
    }
}
