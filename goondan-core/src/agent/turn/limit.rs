//! Owns the limits of time.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// The output of `future`, or none when it is not there after `limit`. The time counts from when there is something to wait
/// for: what is ready at once needs neither a clock nor a timer.
pub(super) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut timer = pin!(None);
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        if timer.is_none() {
            // Also while the future uses up what tokio lets a task do at once.
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
    async fn what_is_ready_in_time_is_given_and_what_is_not_ends() {
        let limit = Duration::from_secs(2);
        let after = |time| async move { tokio::time::sleep(time).await };
        assert_eq!(within(limit, std::future::ready(1)).await, Some(1));
        assert_eq!(within(limit, after(Duration::from_secs(1))).await, Some(()));
        assert_eq!(within(limit, after(Duration::from_secs(3))).await, None);
    }

    #[tokio::test]
    async fn a_future_that_is_always_busy_ends_too() {
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
