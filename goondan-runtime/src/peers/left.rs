//! Turns of other agents that are cancelled, or were left open by a turn that was interrupted.
// D-40

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::live::{Asker, within};
use crate::ports::router::{AgentCall, Router};

/// The longest time that the end of a turn waits for the turns that are cancelled with it.
const ENDING: Duration = Duration::from_secs(5);

/// A request of a turn that was interrupted: another turn may have been left open for it.
pub(crate) struct Left {
    pub(super) router: Arc<dyn Router>,
    pub(super) call: AgentCall,
    pub(super) asker: Asker,
}

impl Left {
    /// Cancels the turns that were left open, and waits a while until they have ended.
    pub(crate) async fn cancel_all(all: Vec<Self>) {
        let ending = all.into_iter().map(|Self { router, call, asker }| {
            asker.cancel();
            tokio::spawn(async move { drop(router.request(call).await) })
        });
        wait_for(ending.collect()).await;
    }
}

/// Waits a while until the cancelled turns have ended.
#[cold]
pub(super) async fn wait_for(ending: Vec<JoinHandle<()>>) {
    let all = async {
        for turn in ending {
            // An error is a panic, which is logged where it happened.
            _ = turn.await;
        }
    };
    if within(ENDING, None, all).await.is_none() {
        tracing::warn!("a cancelled turn of another agent has not ended within {ENDING:?}");
    }
}
