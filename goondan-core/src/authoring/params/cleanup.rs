//! The parameter of the function under `#[cleanup]`.

use super::Used;
use crate::extension::ExtensionApi;

/// The slot that a function under `#[cleanup]` has left: the handle of the extension.
#[derive(Debug)]
pub struct CleanupSlots<A> {
    api: A,
}

impl<A> CleanupSlots<A> {
    /// The slot available.
    pub fn new(api: A) -> Self {
        Self { api }
    }

    /// Takes the parameter.
    #[doc(hidden)]
    pub fn take<P: CleanupParam<Self, CleanupSlots<A2>>, A2>(self) -> (P, CleanupSlots<A2>) {
        P::take(self)
    }
}

/// A parameter that the function under `#[cleanup]` may take, at most once: `&ExtensionApi`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that the function under `#[cleanup]` can take",
    label = "not under `#[cleanup]`, or taken before",
    note = "it can take `api: &ExtensionApi`"
)]
pub trait CleanupParam<Slots, Rest>: Sized {
    /// Returns the parameter, and the slots without it.
    fn take(slots: Slots) -> (Self, Rest);
}

#[diagnostic::do_not_recommend]
impl<'a> CleanupParam<CleanupSlots<&'a ExtensionApi>, CleanupSlots<Used>> for &'a ExtensionApi {
    fn take(slots: CleanupSlots<Self>) -> (Self, CleanupSlots<Used>) {
        (slots.api, CleanupSlots { api: Used })
    }
}
