//! Owns waiting for whichever of two things comes first.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// What came first.
pub(crate) enum First<A, B> {
    One(A),
    Other(B),
}

/// Waits for the first of two futures, and drops the other. When both are ready, `one` comes first.
pub(crate) async fn first<A: Future, B: Future>(one: A, other: B) -> First<A::Output, B::Output> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| {
        if let Poll::Ready(output) = one.as_mut().poll(cx) {
            return Poll::Ready(First::One(output));
        }
        other.as_mut().poll(cx).map(First::Other)
    })
    .await
}
