//! The turn that waits for the answer of another agent, as that one knows it.
// D-40

use std::fmt;
use std::sync::Arc;

use goondan_core::TokenUsage;
use goondan_lock::Lock;
use tokio::sync::watch;

use super::clock::Clock;
use crate::updates::UpdateSender;

/// The tokens that the turns below a turn used, together.
pub(crate) struct Spent {
    above: Option<Arc<Self>>,
    tokens: Lock<Option<TokenUsage>>,
}

/// The turn that waits for the answer of a call.
#[derive(Clone)]
pub(crate) struct Asker {
    /// The clock of its deadlines, which stands still while a person is asked.
    // ASK-04
    pub(crate) clock: Clock,
    /// The place where the usage of the answer is added. `None` for a request that begins a tree of its own.
    pub(crate) spent: Option<Arc<Spent>>,
    /// Where the updates of the answering turn go, if they are wanted.
    pub(crate) updates: Option<UpdateSender>,
    cancelled: Arc<watch::Sender<bool>>,
}

impl Spent {
    /// Adds to `above` too.
    pub(crate) fn below(above: Option<Arc<Self>>) -> Self {
        Self { above, tokens: Lock::default() }
    }

    pub(crate) fn tokens(&self) -> Option<TokenUsage> {
        *self.tokens.lock()
    }

    pub(crate) fn add(&self, usage: TokenUsage) {
        let mut spent = self;
        loop {
            *spent.tokens.lock().get_or_insert_default() += usage;
            match &spent.above {
                Some(above) => spent = above,
                None => return,
            }
        }
    }
}

impl Asker {
    /// The asker of a request whose answer comes later.
    pub(crate) fn for_later() -> Self {
        Self { clock: Clock::default(), spent: None, updates: None, cancelled: Arc::new(watch::Sender::new(false)) }
    }

    /// A turn that waits for the answer.
    pub(crate) fn waiting(clock: Clock, spent: Arc<Spent>, updates: Option<UpdateSender>) -> Self {
        Self { clock, spent: Some(spent), updates, ..Self::for_later() }
    }

    /// Tells that the answer is not waited for any more.
    pub(crate) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Waits until the answer is not waited for any more.
    pub(crate) fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let sender = Arc::clone(&self.cancelled);
        async move {
            // The sender is kept, so that the channel does not close.
            _ = sender.subscribe().wait_for(|cancelled| *cancelled).await;
        }
    }
}

impl PartialEq for Asker {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cancelled, &other.cancelled)
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asker({:?})", self.clock)
    }
}
