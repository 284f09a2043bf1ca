//! Waits for the first of two futures.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// The output of the future that completed first.
pub enum Either<L, R> {
    /// The first future.
    Left(L),
    /// The second future.
    Right(R),
}

/// Waits for the first of two futures and drops the other. `left` is polled first: it wins if both are ready.
pub async fn race<L: Future, R: Future>(left: L, right: R) -> Either<L::Output, R::Output> {
    let (mut left, mut right) = (pin!(left), pin!(right));
    poll_fn(|cx| {
        if let Poll::Ready(output) = left.as_mut().poll(cx) {
            return Poll::Ready(Either::Left(output));
        }
        right.as_mut().poll(cx).map(Either::Right)
    })
    .await
}
