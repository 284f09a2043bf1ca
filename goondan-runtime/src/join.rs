//! Runs several futures in one task.

use std::future::poll_fn;
use std::task::Poll;

/// Runs futures concurrently in this task, and returns their outputs in order.
pub async fn join<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Some(Box::pin(future)), None)).collect();
    poll_fn(|cx| {
        let mut pending = false;
        for (future, output) in &mut running {
            if let Some(running) = future {
                match running.as_mut().poll(cx) {
                    Poll::Ready(value) => (*future, *output) = (None, Some(value)),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}
