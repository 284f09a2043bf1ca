//! Chains of events: each was emitted by a handler while it handled the one before. A long chain is a loop, such as
//! the loop of a handler that emits the event that it handles.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use goondan_core::{Error, ErrorCode, Event, ExtensionName, TurnInfo};

/// The longest chain of events that lead to one another.
pub(super) const MAX_CHAIN: u32 = 64;

/// The most events of a chain that an error shows: the newest.
const SHOWN: u32 = 8;

tokio::task_local! {
    /// The chain up to the event that this task handles. It is set while the future of the handler is polled. A library
    /// emits on the thread that polls it, so this holds for loaded extensions too. A task that the handler spawns has
    /// none.
    static HANDLED: Chain;
}

/// A chain of events that were handled. The default is empty: nothing led to the next event.
#[derive(Clone, Default)]
pub(crate) struct Chain {
    length: u32,
    /// The newest event, if it will be shown. Short chains are only counted, because every event of the runtime is one.
    newest: Option<Arc<Link>>,
    /// The turn in which the first event was emitted.
    cause: Option<Arc<TurnInfo>>,
}

/// An event of a chain.
struct Link {
    event: Arc<str>,
    /// The extension whose handler handled it. `None` is the embedding program.
    extension: Option<ExtensionName>,
    before: Option<Arc<Link>>,
}

impl Chain {
    /// Returns the chain that leads to an event that is emitted now.
    pub(crate) fn current() -> Self {
        HANDLED.try_with(Self::clone).unwrap_or_default()
    }

    /// Returns the chain, which the turn that runs has caused unless an earlier one has.
    pub(super) fn caused_by(mut self, turn: Option<&Arc<TurnInfo>>) -> Self {
        if self.cause.is_none() {
            self.cause = turn.map(Arc::clone);
        }
        self
    }

    /// Returns the turn that caused the next event.
    pub(super) fn into_cause(self) -> Option<Arc<TurnInfo>> {
        self.cause
    }

    /// Returns the chain with `event` at its end, which a handler of `extension` handles.
    pub(super) fn with(mut self, event: &Event, extension: Option<&ExtensionName>) -> Self {
        self.length += 1;
        if self.length > MAX_CHAIN - SHOWN {
            let (event, before) = (Arc::clone(event.shared_name()), self.newest.take());
            self.newest = Some(Arc::new(Link { event, extension: extension.cloned(), before }));
        }
        self
    }

    /// Polls `handling`, whose events follow this chain. It is passed by reference, because a future that owns another
    /// one is larger, and tasks are allocated often.
    pub(super) fn within<'a, F: Future>(
        self,
        handling: Pin<&'a mut F>,
    ) -> impl Future<Output = F::Output> + use<'a, F> {
        HANDLED.scope(self, handling)
    }

    /// Returns whether the chain is too long for another event.
    pub(super) fn is_loop(&self) -> bool {
        self.length >= MAX_CHAIN
    }

    /// Returns the extension whose handler handled the newest event.
    pub(super) fn extension(&self) -> Option<&ExtensionName> {
        self.newest.as_ref()?.extension.as_ref()
    }

    /// The error for `event`, which is refused.
    pub(super) fn error(&self, event: &Event) -> Error {
        let name = event.name();
        let message =
            format!("`{name}` was not emitted: {MAX_CHAIN} events led to one another, at last {self}`{name}`");
        let error = Error::new(ErrorCode::EVENT_LOOP, message)
            .suggest("emit another event than the one that leads to it, or stop when there is nothing left to do");
        match self.newest.as_deref() {
            Some(Link { event, extension: Some(extension), .. }) => {
                error.at(extension, format!("handler of `{event}`"))
            }
            _ => error,
        }
    }
}

/// Writes the newest events, until one occurs again.
impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut links: Vec<&Link> = Vec::new();
        let mut next = self.newest.as_deref();
        let is_same = |a: &Link, b: &Link| (&a.event, &a.extension) == (&b.event, &b.extension);
        while let Some(link) = next.filter(|link| !links.iter().any(|newer| is_same(newer, link))) {
            links.push(link);
            next = link.before.as_deref();
        }
        links.iter().rev().try_for_each(|link| match &link.extension {
            Some(extension) => write!(f, "`{}` (handled by `{extension}`) -> ", link.event),
            None => write!(f, "`{}` -> ", link.event),
        })
    }
}
