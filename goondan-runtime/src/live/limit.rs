//! A timeout that costs nothing for a future that is ready at once.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::sleep;

use super::clock::Clock;

/// The time after which a timeout looks at its clock again, if it was about to fire.
const STANDING: Duration = Duration::from_secs(1);

/// Returns the output of `future`, or `None` if it is pending for longer than `limit`, not counting how long `clock`
/// stands still meanwhile. The time counts from the first poll that returns pending: a future that is ready at once
/// needs neither a clock nor a timer.
// The timer is boxed, so that the futures around a future that is ready at once stay small.
pub(crate) async fn within<F: Future>(limit: Duration, clock: Option<&Clock>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut expired = None;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            let expired = expired.get_or_insert_with(|| Box::pin(expiry(limit, clock)));
            expired.as_mut().poll(cx).map(|()| None)
        }
    })
    .await
}

/// Waits for a time in which `clock` does not stand still.
async fn expiry(limit: Duration, clock: Option<&Clock>) {
    let stood = || clock.map(Clock::stood).unwrap_or_default();
    let (mut wait, mut before) = (limit, stood());
    loop {
        // Unconstrained, so that it fires although the limited future uses up the coop budget of the task in every
        // poll.
        tokio::task::unconstrained(sleep(wait)).await;
        let now = stood();
        if now == before {
            return;
        }
        // It may stand still again, or still: it is asked later.
        wait = (now - before).max(STANDING);
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_future_is_dropped_at_the_limit() {
        let limit = Duration::from_secs(2);
        let after = |time| async move { tokio::time::sleep(time).await };
        assert_eq!(within(limit, None, std::future::ready(1)).await, Some(1));
        assert_eq!(within(limit, None, after(Duration::from_secs(1))).await, Some(()));
        assert_eq!(within(limit, None, after(Duration::from_secs(3))).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn time_for_which_the_clock_stands_still_does_not_count() {
        let (limit, clock) = (Duration::from_secs(10), Clock::default());
        let seconds = Duration::from_secs;
        drop({
            let stop = clock.stop();
            sleep(seconds(100)).await;
            stop
        });
        let asks = |before, asked, after| {
            let clock = &clock;
            async move {
                sleep(seconds(before)).await;
                let stop = clock.stop();
                sleep(seconds(asked)).await;
                drop(stop);
                sleep(seconds(after)).await;
            }
        };
        assert_eq!(within(limit, Some(&clock), asks(5, 600, 4)).await, Some(()));
        assert_eq!(within(limit, Some(&clock), asks(9, 5, 0)).await, Some(()));
        let start = Instant::now();
        assert_eq!(within(limit, Some(&clock), asks(5, 600, 600)).await, None);
        assert!(start.elapsed() - seconds(610) <= STANDING, "{:?}", start.elapsed());
        assert_eq!(within(limit, Some(&clock), asks(11, 5, 0)).await, None, "it was too late before");
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
        let ended: Option<()> = within(Duration::from_millis(1), None, busy).await;
        assert_eq!(ended, None);
    }
}
