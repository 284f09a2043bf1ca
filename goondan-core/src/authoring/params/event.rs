//! The parameters of functions under `#[on]`.

use super::Used;
use crate::event::Event;
use crate::extension::ExtensionApi;

/// The slots that a function under `#[on]` has left: the event, and the handle of the extension.
#[derive(Debug)]
pub struct EventSlots<E, A> {
    event: E,
    api: A,
}

impl<E, A> EventSlots<E, A> {
    /// Both slots available.
    pub fn new(event: E, api: A) -> Self {
        Self { event, api }
    }

    /// Takes a parameter.
    #[doc(hidden)]
    pub fn take<P: EventParam<Self, EventSlots<E2, A2>>, E2, A2>(self) -> (P, EventSlots<E2, A2>) {
        P::take(self)
    }
}

/// A parameter that a function under `#[on]` may take, each at most once: `&Event` and `&ExtensionApi`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that a function under `#[on]` can take",
    label = "not under `#[on]`, or taken before",
    note = "it can take `event: &Event` and `api: &ExtensionApi`",
    note = "`event.payload::<T>()` reads what the event carries"
)]
pub trait EventParam<Slots, Rest>: Sized {
    /// Returns the parameter, and the slots without it.
    fn take(slots: Slots) -> (Self, Rest);
}

#[diagnostic::do_not_recommend]
impl<'a, A> EventParam<EventSlots<&'a Event, A>, EventSlots<Used, A>> for &'a Event {
    fn take(slots: EventSlots<Self, A>) -> (Self, EventSlots<Used, A>) {
        (slots.event, EventSlots { event: Used, api: slots.api })
    }
}

#[diagnostic::do_not_recommend]
impl<'a, E> EventParam<EventSlots<E, &'a ExtensionApi>, EventSlots<E, Used>> for &'a ExtensionApi {
    fn take(slots: EventSlots<E, Self>) -> (Self, EventSlots<E, Used>) {
        (slots.api, EventSlots { event: slots.event, api: Used })
    }
}
