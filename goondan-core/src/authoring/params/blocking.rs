//! Runs a blocking tool on its own thread. It uses the standard library alone, because extensions build without an
//! async runtime.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread;

use goondan_lock::Lock;

use crate::error::{Error, Result};
use crate::panic::catch;

/// The state that the thread and the future share.
struct BlockingState<T> {
    outcome: Option<Result<T>>,
    waker: Option<Waker>,
}

/// Runs `work` on a new thread, which is spawned when the future is first polled. A panic becomes `E_EXT_PANIC`.
///
/// Dropping the future detaches the thread: it runs to its end, and its outcome is dropped.
///
/// # Errors
/// The error of `work`, and `E_EXT_RUNTIME` when the thread cannot be spawned.
pub async fn run_blocking<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let shared = Arc::new(Lock::new(BlockingState { outcome: None, waker: None }));
    let of_thread = Arc::clone(&shared);
    // The tool's log lines go to the subscriber and the span of its turn.
    let (span, log) = (tracing::Span::current(), tracing::dispatcher::get_default(Clone::clone));
    let work = move || tracing::dispatcher::with_default(&log, || span.in_scope(work));
    let run = move || {
        let outcome = catch(work).unwrap_or_else(|text| Err(Error::panicked(&text)));
        let mut shared = of_thread.lock();
        shared.outcome = Some(outcome);
        let waker = shared.waker.take();
        drop(shared);
        waker.into_iter().for_each(Waker::wake);
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|error| {
        Error::msg(format!("the tool `{name}` got no thread from the system")).caused_by(error).retryable(true)
    })?;

    poll_fn(|cx| {
        let mut shared = shared.lock();
        match shared.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                shared.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;
    use std::time::Duration;

    use super::*;
    use crate::error::ErrorCode;

    /// Unparks the thread that waits.
    struct Unpark(thread::Thread);

    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn wait<F: Future>(future: F) -> F::Output {
        let waker = Arc::new(Unpark(thread::current())).into();
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => thread::park_timeout(Duration::from_secs(10)),
            }
        }
    }

    #[test]
    fn work_runs_on_another_thread() {
        let here = thread::current().id();
        let (open, gate) = std::sync::mpsc::channel();
        let work = move || {
            gate.recv()?;
            assert_ne!(thread::current().id(), here);
            Ok(thread::current().name().map(str::to_owned))
        };
        let mut work = pin!(run_blocking("a__b", work));
        assert!(work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "the gate is closed");
        open.send(()).unwrap();
        assert_eq!(wait(work).unwrap().as_deref(), Some("a__b"));
        assert_eq!(wait(run_blocking("a__b", || Ok(3))).unwrap(), 3);
    }

    #[test]
    fn errors_and_panics_are_returned() {
        let refused: Result<()> = wait(run_blocking("a__b", || Err(Error::new("E_OWN", "no"))));
        assert_eq!(refused.unwrap_err().code(), "E_OWN");
        let panicked: Result<()> = wait(run_blocking("a__b", || panic!("out of {}", "luck")));
        let error = panicked.unwrap_err();
        assert_eq!((error.code(), &*error.message()), (&ErrorCode::EXT_PANIC, "panicked: out of luck"));
    }

    #[test]
    fn work_runs_to_its_end_when_its_future_is_dropped() {
        let (sender, receiver) = std::sync::mpsc::channel();
        {
            let mut dropped = pin!(run_blocking("a__b", move || Ok(sender.send(())?)));
            let _started = dropped.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        receiver.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}
