//! The replacement of the generation that a conversation runs with: between two turns, or between two steps of one.

use std::sync::Arc;

use goondan_core::host::panic::drop_guarded;
use goondan_core::{Error, ErrorCode, ReloadEffect, Result};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::Instrument;
use tracing::instrument::WithSubscriber;

use super::active::deactivate;
use super::generation::{Generation, Newest};
use super::register::Staged;
use super::services::Services;
use super::waiting_reload::StepReload;
use crate::spec::AgentSpec;

/// Registers the extensions of `spec` and activates them, and then cleans up those of `current` that were not kept.
/// After a failure nothing has changed.
pub(crate) async fn replace(
    current: &Arc<Generation>,
    spec: Arc<AgentSpec>,
    services: &Arc<Services>,
    newest: &Newest,
) -> Result<Arc<Generation>> {
    let before = &current.registered.extensions;
    let staged = Staged::register_all(&spec, services, before).await?;
    let new = Arc::new(Generation { spec, registered: staged.activate() });
    newest.set(&new);
    let kept = &new.registered.extensions;
    let is_removed = |active: &&Arc<_>| !kept.iter().any(|kept| Arc::ptr_eq(kept, active));
    let removed: Vec<_> = before.iter().filter(is_removed).map(Arc::clone).collect();
    deactivate(&removed, services).await;
    Ok(new)
}

/// Generations that a turn has replaced between its steps. They belong to the conversation and not to the turn, which
/// can be dropped at any moment.
#[derive(Default)]
pub(crate) struct Replaced {
    under_way: Option<JoinHandle<Option<Arc<Generation>>>>,
    newest: Option<Arc<Generation>>,
}

impl Replaced {
    /// Returns the generation of later turns, if it was replaced. Waits for a replacement that is under way.
    pub(crate) async fn take(&mut self) -> Option<Arc<Generation>> {
        self.settle().await;
        self.newest.take()
    }

    async fn settle(&mut self) {
        if let Some(under_way) = &mut self.under_way {
            // If the task panicked, the reload that waits for its outcome fails.
            if let Ok(Some(new)) = under_way.await {
                let old = self.newest.replace(new);
                drop_guarded("the program", || drop(old));
            }
            self.under_way = None;
        }
    }
}

/// The generations that the steps of one turn run with.
pub(crate) struct StepGenerations<'a> {
    /// That of the turn, whose layers are running.
    pub(crate) first: &'a Arc<Generation>,
    pub(crate) services: &'a Arc<Services>,
    pub(crate) newest: &'a Arc<Newest>,
    pub(crate) replaced: &'a mut Replaced,
}

impl StepGenerations<'_> {
    /// Returns the generation that the next step runs with, if it is not the first: a reload that waits takes place
    /// now.
    #[inline]
    pub(crate) async fn next(&mut self) -> Option<Arc<Generation>> {
        if self.services.waiting_reload.exists() {
            Box::pin(self.reload()).await;
        }
        self.replaced.newest.clone()
    }

    #[cold]
    async fn reload(&mut self) {
        let current = self.replaced.newest.as_ref().unwrap_or(self.first);
        let Some(StepReload { spec, outcome }) =
            self.services.waiting_reload.take_if(|spec| current.effect_of(spec) == ReloadEffect::NextStep)
        else {
            return;
        };
        let current = Arc::clone(current);
        let (services, newest) = (Arc::clone(self.services), Arc::clone(self.newest));
        // In a task, so that it ends even if the turn is dropped.
        let work = async move {
            let (new, result) = match replace(&current, spec, &services, &newest).await {
                Ok(new) => (Some(new), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // The caller of the reload may be gone.
            let _ = outcome.send(result);
            new
        };
        self.replaced.under_way = Some(tokio::spawn(work.in_current_span().with_current_subscriber()));
        self.replaced.settle().await;
    }
}

/// Returns the error for a reload whose task has panicked.
pub(crate) fn reload_failed(_: oneshot::error::RecvError) -> Error {
    Error::new(ErrorCode::EXT_PANIC, "the reload was interrupted by a panic, or because the program ends")
}
