//! Background turns: those that extensions, tools and agents start while the host runs.
// WAKE-01

use std::fmt;
use std::future::pending;
use std::sync::Arc;

use goondan_runtime::{BackgroundTurns, BackgroundUpdate};
use tokio::sync::watch;

use crate::host::{Current, Host};
use crate::race::{Either, race};

/// The background turns of all agents of a host, also of those that a reload adds. Turns whose answer another agent
/// receives are left out. [`Host::background_turns`] returns it.
pub struct HostTurns {
    current: watch::Receiver<Arc<Current>>,
    /// `None` until there is an agent.
    turns: Option<BackgroundTurns>,
    /// Whether it has the turns whose answer another agent receives, and updates.
    watches: bool,
}

impl Host {
    /// Subscribes to the turns that end after this call and whose results are not returned to the program. Call it
    /// before [`Host::instance`] to miss none.
    pub fn background_turns(&self) -> HostTurns {
        let mut turns = HostTurns { current: self.inner.current.subscribe(), turns: None, watches: false };
        turns.follow();
        turns
    }
}

impl HostTurns {
    /// Adds the updates of the turns that begin afterwards, as [`BackgroundTurns::with_updates`] does, and the turns
    /// whose answer another agent receives: for those who watch conversations.
    #[must_use]
    pub fn with_updates(self) -> Self {
        Self { turns: self.turns.map(BackgroundTurns::with_updates), watches: true, ..self }
    }

    /// Waits for the next turn.
    pub async fn next(&mut self) -> BackgroundUpdate {
        loop {
            let turns = &mut self.turns;
            let next = async {
                match turns {
                    Some(turns) => turns.next().await,
                    None => pending().await,
                }
            };
            match race(self.current.changed(), next).await {
                Either::Left(Ok(())) => self.follow(),
                // The host is dropped.
                Either::Left(Err(_)) | Either::Right(None) => pending().await,
                Either::Right(Some(notice)) if self.watches || is_delivered(&notice) => return notice,
                Either::Right(Some(_)) => {}
            }
        }
    }

    /// Waits for the next turn that runs or is queued already, or that such a turn starts. Returns `None` when there is
    /// none.
    pub async fn next_pending(&mut self) -> Option<BackgroundUpdate> {
        self.follow();
        loop {
            let notice = self.turns.as_mut()?.next_pending().await?;
            if self.watches || is_delivered(&notice) {
                return Some(notice);
            }
        }
    }

    /// Adds the agents that there are now.
    fn follow(&mut self) {
        for agent in &self.current.borrow_and_update().agents {
            match &mut self.turns {
                Some(turns) => turns.follow(agent),
                None if self.watches => self.turns = Some(agent.subscribe_turns().with_updates()),
                None => self.turns = Some(agent.subscribe_turns()),
            }
        }
    }
}

fn is_delivered(notice: &BackgroundUpdate) -> bool {
    !matches!(notice, BackgroundUpdate::Ended(turn) if turn.input.reply_to.is_some())
}

impl fmt::Debug for HostTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostTurns").field(&self.turns).finish()
    }
}
