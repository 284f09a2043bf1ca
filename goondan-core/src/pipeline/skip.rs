//! Layers of extensions whose failures are skipped: `onError: skip`.
//!
//! Such a layer is two layers of the chain, [`Skipping`] and right inside of it a [`Probe`]. `Skipping` runs the
//! middleware, and the middleware's `next` runs the probe, which records how far `next` has come and shares its result
//! before the middleware can change it. If the middleware fails, `Skipping` therefore knows whether to run the rest of
//! the chain itself, or to return the shared result. All other layers cost as much as without it.
// FAIL-01

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use goondan_lock::Lock;

use super::frame::{at_layer, next_not_run};
use super::next::NamedMiddleware;
use super::{Kind, LayerInfo, Middleware, MiddlewareKind, Next};
use crate::BoxFuture;
use crate::crossing::Crossing;
use crate::error::{Error, Result};
use crate::panic::{Guarded, catch_unless};

/// The limit of a layer's own code, and the timer that measures it.
#[derive(Clone, Copy, Debug)]
pub struct LayerTimeout {
    /// The longest time before `next`, and again after it.
    pub after: Duration,
    /// Returns a timer of the runtime.
    pub sleep: fn(Duration) -> BoxFuture<'static, ()>,
}

impl LayerTimeout {
    /// No timeout.
    pub const NONE: Self = Self { after: Duration::MAX, sleep: |_| Box::pin(std::future::pending()) };
}

/// Returns the two layers that replace `layer`. Its own code may take `timeout` before `next`, and again after it.
pub(super) fn skipping<K: Kind>(
    info: &LayerInfo,
    layer: Arc<dyn Middleware<K>>,
    timeout: LayerTimeout,
) -> [NamedMiddleware<K>; 2] {
    let named = |layer: Arc<dyn Middleware<K>>| (info.extension.clone(), layer);
    [named(Arc::new(Skipping { info: info.clone(), layer, timeout })), named(Arc::new(Probe))]
}

/// The point that `next` of a skipping layer has reached in one run.
enum Progress<K: Kind> {
    NotRun,
    /// It runs, or the layer has dropped it before its end.
    Started,
    Failed,
    /// With the result that the layer got.
    Ended(K::Output),
}

/// The progress, which a [`Skipping`] and its [`Probe`] share during one run.
struct Watch<K: Kind>(Lock<Progress<K>>);

/// The part of a layer's own code that runs: the part before `next`, or after `next` has succeeded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnPart {
    Before,
    After,
}

impl<K: Kind> Watch<K> {
    /// Returns which part of its own code the layer runs, or `None` if its failure cannot be skipped: while `next`
    /// runs, and after the layer dropped or failed `next`.
    fn own_part(&self) -> Option<OwnPart> {
        match *self.0.lock() {
            Progress::NotRun => Some(OwnPart::Before),
            Progress::Ended(_) => Some(OwnPart::After),
            Progress::Started | Progress::Failed => None,
        }
    }
}

/// Runs the middleware of a skipping layer.
struct Skipping<K: Kind> {
    info: LayerInfo,
    layer: Arc<dyn Middleware<K>>,
    timeout: LayerTimeout,
}

impl<K: Kind> Middleware<K> for Skipping<K> {
    fn handle<'a>(&'a self, ctx: &'a mut K::Context<'_>, next: Next<'a, K>) -> BoxFuture<'a, Result<K::Output>> {
        Box::pin(async move {
            let rest = next.rest();
            let watch = Arc::new(Watch::<K>(Lock::new(Progress::NotRun)));
            K::frame(ctx).watch = Some(Arc::clone(&watch) as Arc<_>);
            let outcome = self.run(ctx, next, &watch).await;
            // A probe that has not run must not find the watch: the layer is over.
            K::frame(ctx).watch = None;
            let progress = std::mem::replace(&mut *watch.0.lock(), Progress::Started);
            let error = match outcome {
                // NEXT-01: the result cannot belong to this run.
                Ok(_) if matches!(progress, Progress::NotRun) => next_not_run(&self.info),
                // A request for another run is no failure. Nothing runs a turn again.
                Err(error) if error.retry_delay().is_none() || K::KIND == MiddlewareKind::Turn => error,
                other => return other,
            };
            if !K::run_host(ctx).may_skip(&self.info.extension) {
                return Err(error);
            }
            match progress {
                Progress::NotRun => {
                    self.report(ctx, false, error);
                    Next::new(rest).run(ctx).await
                }
                Progress::Ended(result) => {
                    self.report(ctx, true, error);
                    Ok(result)
                }
                // An error that comes from further in, or there is no result to go on with.
                Progress::Started | Progress::Failed => Err(error),
            }
        })
    }
}

impl<K: Kind> Skipping<K> {
    /// Runs the middleware. A panic of its own, and too much time, become errors.
    async fn run(&self, ctx: &mut K::Context<'_>, next: Next<'_, K>, watch: &Watch<K>) -> Result<K::Output> {
        let layer = async { self.layer.handle(ctx, next).await };
        let mut layer = pin!(Guarded::new(&self.info.extension, layer));
        let mut timer = pin!(None);
        let mut timed = None;
        poll_fn(|cx| {
            // Panics from further in pass on, as they pass through other layers.
            match catch_unless(|| layer.as_mut().poll(cx), || watch.own_part().is_none()) {
                Ok(Poll::Ready(result)) => return Poll::Ready(result),
                Err(text) => return Poll::Ready(Err(Error::panicked(&text))),
                Ok(Poll::Pending) => {}
            }
            let part = watch.own_part();
            if part != timed {
                timed = part;
                // Unconstrained, so that it fires although the layer uses up the coop budget of the task in every poll.
                timer.set(part.map(|_| (self.timeout.sleep)(self.timeout.after)));
            }
            match timer.as_mut().as_pin_mut() {
                Some(timer) => timer.poll(cx).map(|()| Err(self.too_slow())),
                None => Poll::Pending,
            }
        })
        .await
    }

    #[cold]
    fn too_slow(&self) -> Error {
        Error::msg(format!("it took longer than {:?} without `next`", self.timeout.after))
            .suggest("look for what hangs, or raise the time limit of layers: `policy.layerTimeoutMs`")
    }

    #[cold]
    fn report(&self, ctx: &K::Context<'_>, after_next: bool, error: Error) {
        let error = at_layer(error, &self.info);
        tracing::error!(
            extension = %self.info.extension,
            code = %error.code(),
            "the failure of a layer is skipped: {}",
            error.report()
        );
        K::run_host(ctx).report_skipped(&self.info, after_next, &error);
    }
}

/// Records how far `next` of the layer around it has come.
struct Probe;

impl<K: Kind> Middleware<K> for Probe {
    fn handle<'a>(&'a self, ctx: &'a mut K::Context<'_>, next: Next<'a, K>) -> BoxFuture<'a, Result<K::Output>> {
        Box::pin(async move {
            let watch = K::frame(ctx).watch.take().and_then(|watch| watch.downcast::<Watch<K>>().ok());
            // Without a watch, the layer has failed and is skipped.
            let Some(watch) = watch else { return next.run(ctx).await };
            *watch.0.lock() = Progress::Started;
            let result = next.run(ctx).await;
            let (progress, result) = match result {
                Ok(result) => {
                    let (kept, result) = result.share();
                    (Progress::Ended(kept), Ok(result))
                }
                Err(error) => (Progress::Failed, Err(error)),
            };
            *watch.0.lock() = progress;
            result
        })
    }
}
