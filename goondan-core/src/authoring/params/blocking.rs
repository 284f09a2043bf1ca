//! Owns the thread of a blocking tool. It is made of the standard library alone, because extensions build without a
//! runtime.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

use crate::error::{Error, Result};
use crate::panic::panicked;

/// Where the thread leaves its outcome, and who waits for it.
struct Desk<T> {
    outcome: Option<Result<T>>,
    waiting: Option<Waker>,
}

/// Runs `work` on a thread of its own, which starts when the future is first polled. A panic becomes `E_EXT_PANIC`.
///
/// Who drops the future leaves the thread behind: it runs to its end, and its outcome goes nowhere.
///
/// # Errors
/// The error of `work`, and `E_EXT_RUNTIME` when the system gives no thread.
pub async fn run_blocking<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let ours = Arc::new(Mutex::new(Desk { outcome: None, waiting: None }));
    let theirs = Arc::clone(&ours);
    // Log lines of the tool go where those of its turn go.
    let (span, log) = (tracing::Span::current(), tracing::dispatcher::get_default(Clone::clone));
    let work = move || tracing::dispatcher::with_default(&log, || span.in_scope(work));
    let run = move || {
        // Whatever `work` left half done is dropped here, or was the extension's own.
        let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)));
        let mut desk = theirs.lock().unwrap_or_else(PoisonError::into_inner);
        desk.outcome = Some(outcome);
        let waiting = desk.waiting.take();
        drop(desk);
        waiting.into_iter().for_each(Waker::wake);
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|error| {
        Error::msg(format!("the tool `{name}` got no thread from the system")).caused_by(error).retryable(true)
    })?;

    poll_fn(|cx| {
        let mut desk = ours.lock().unwrap_or_else(PoisonError::into_inner);
        match desk.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                desk.waiting = Some(cx.waker().clone());
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

    /// Wakes the thread that it was made on.
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
    fn work_is_done_elsewhere() {
        let here = thread::current().id();
        let (open, gate) = std::sync::mpsc::channel();
        let work = move || {
            gate.recv()?;
            assert_ne!(thread::current().id(), here);
            Ok(thread::current().name().map(str::to_owned))
        };
        let mut work = pin!(run_blocking("a__b", work));
        assert!(work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "the gate is shut");
        open.send(()).unwrap();
        assert_eq!(wait(work).unwrap().as_deref(), Some("a__b"));
        assert_eq!(wait(run_blocking("a__b", || Ok(3))).unwrap(), 3);
    }

    #[test]
    fn errors_and_panics_come_back() {
        let refused: Result<()> = wait(run_blocking("a__b", || Err(Error::new("E_OWN", "no"))));
        assert_eq!(refused.unwrap_err().code(), "E_OWN");
        let panicked: Result<()> = wait(run_blocking("a__b", || panic!("out of {}", "luck")));
        let error = panicked.unwrap_err();
        assert_eq!((error.code(), &*error.message()), (&ErrorCode::EXT_PANIC, "panicked: out of luck"));
    }

    #[test]
    fn work_that_nobody_waits_for_runs_to_its_end() {
        let (sender, receiver) = std::sync::mpsc::channel();
        {
            let mut left = pin!(run_blocking("a__b", move || Ok(sender.send(())?)));
            let _started = left.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        receiver.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}
