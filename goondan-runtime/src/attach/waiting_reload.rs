//! The reload that waits for the next step of a turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use goondan_core::{ReloadEffect, Result};
use goondan_lock::Lock;
use tokio::sync::oneshot;

use super::reload_requests::Request;
use crate::spec::AgentSpec;

/// The reload that waits for the next step of the turn that runs, if any, and the requests for one.
#[derive(Default)]
pub(crate) struct WaitingReload {
    /// Whether there is one. Every step reads it.
    exists: AtomicBool,
    reload: Lock<Option<StepReload>>,
    /// The requests of extensions for one. Those that are answered are dropped elsewhere.
    requests: Lock<Vec<Weak<Request>>>,
}

/// A reload, which may take place between two steps of a turn.
pub(super) struct StepReload {
    pub(super) spec: Arc<AgentSpec>,
    pub(super) outcome: oneshot::Sender<Result<()>>,
}

impl WaitingReload {
    /// Lets a reload wait until the returned guard is dropped. One waits at a time: the agent reloads once at a time.
    pub(crate) fn enter(&self, spec: &Arc<AgentSpec>) -> (Waits<'_>, oneshot::Receiver<Result<()>>) {
        let (sender, outcome) = oneshot::channel();
        *self.reload.lock() = Some(StepReload { spec: Arc::clone(spec), outcome: sender });
        self.exists.store(true, Ordering::Release);
        (Waits(self), outcome)
    }

    /// Whether a reload waits.
    #[inline]
    pub(super) fn exists(&self) -> bool {
        self.exists.load(Ordering::Acquire)
    }

    /// Takes the reload if it `fits`.
    pub(super) fn take_if(&self, fits: impl FnOnce(&AgentSpec) -> bool) -> Option<StepReload> {
        let mut reload = self.reload.lock();
        let taken = reload.take_if(|reload| fits(&reload.spec));
        if taken.is_some() {
            self.exists.store(false, Ordering::Release);
        }
        taken
    }

    /// Records a request for a reload.
    pub(super) fn add_request(&self, request: &Arc<Request>) {
        let mut requests = self.requests.lock();
        requests.retain(|request| request.strong_count() > 0);
        requests.push(Arc::downgrade(request));
    }

    /// Answers all requests, for which a reload with this effect waits.
    pub(crate) fn answer_requests(&self, effect: ReloadEffect) {
        let requests = std::mem::take(&mut *self.requests.lock());
        requests.iter().filter_map(Weak::upgrade).for_each(|request| request.answer(effect, None));
    }
}

/// While it lives, a turn may take the reload.
pub(crate) struct Waits<'a>(&'a WaitingReload);

impl Waits<'_> {
    /// Whether no turn has taken the reload. None can take it any more.
    pub(crate) fn end(self) -> bool {
        self.0.take_if(|_| true).is_some()
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.take_if(|_| true);
    }
}
