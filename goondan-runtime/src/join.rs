//! Runs several futures in one task.

use std::future::poll_fn;
use std::task::Poll;

/// Runs futures concurrently in this task, and returns their outputs in order.
pub async fn join<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    join_at_most(usize::MAX, futures).await
}

/// Runs futures like [`join`], but at most `most` at a time; they start in their order.
pub(crate) async fn join_at_most<F: Future>(most: usize, futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Some(Box::pin(future)), None)).collect();
    poll_fn(|cx| {
        let mut running = 0;
        for (future, output) in &mut futures {
            if running == most {
                break;
            }
            if let Some(started) = future {
                match started.as_mut().poll(cx) {
                    Poll::Ready(value) => (*future, *output) = (None, Some(value)),
                    Poll::Pending => running += 1,
                }
            }
        }
        if running > 0 { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    futures.into_iter().filter_map(|(_, output)| output).collect()
}
