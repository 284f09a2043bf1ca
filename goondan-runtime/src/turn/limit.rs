//! A timeout that costs nothing for a future that is ready at once.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Returns the output of `future`, or `None` if it is pending for longer than `limit`. The time counts from the first
/// poll that returns pending: a future that is ready at once needs neither a clock nor a timer.
pub(super) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut timer = pin!(None);
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        if timer.is_none() {
            // Unconstrained, so that it fires although `future` uses up the coop budget of the task in every poll.
            timer.set(Some(tokio::task::unconstrained(tokio::time::sleep(limit))));
        }
        match timer.as_mut().as_pin_mut() {
            Some(timer) => timer.poll(cx).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_future_is_dropped_at_the_limit() {
        let limit = Duration::from_secs(2);
        let after = |time| async move { tokio::time::sleep(time).await };
        assert_eq!(within(limit, std::future::ready(1)).await, Some(1));
        assert_eq!(within(limit, after(Duration::from_secs(1))).await, Some(()));
        assert_eq!(within(limit, after(Duration::from_secs(3))).await, None);
    }

    #[tokio::test]
    async fn a_future_that_never_yields_its_budget_is_dropped_too() {
        let busy = async {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            loop {
                let _ = sender.send(());
                receiver.recv().await;
            }
        };
        let ended: Option<()> = within(Duration::from_millis(1), busy).await;
        assert_eq!(ended, None);
    }
}
