//! Tools that extensions register after `#[init]`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use goondan_core::host::panic::drop_guarded;
use goondan_core::{BoxFuture, ExtensionName, Result, ToolContext, ToolHandler, ToolItem, ToolReply};
use goondan_lock::Lock;
use serde_json::Value;

use crate::bus::Owner;

/// The late tools of one conversation, in the order in which they were registered.
#[derive(Default)]
pub(crate) struct LateTools {
    /// The number of tools that were added. As long as it is 0, no step takes the lock.
    changes: AtomicU64,
    tools: Lock<Vec<LateTool>>,
}

/// A tool, and the extension that registered it.
#[derive(Clone)]
pub(super) struct LateTool {
    pub(super) owner: Owner,
    pub(super) item: Arc<ToolItem>,
    pub(super) handler: Arc<dyn ToolHandler>,
}

impl LateTools {
    /// Adds a tool of `owner`, or replaces its tool of that name.
    pub(super) fn add(&self, owner: &Owner, item: Arc<ToolItem>, handler: Arc<dyn ToolHandler>) {
        let handler = Arc::new(GuardedHandler { extension: owner.extension().clone(), handler: Some(handler) });
        let new = LateTool { owner: owner.clone(), item, handler };
        let mut tools = self.tools.lock();
        let known = tools.iter().position(|known| known.owner == *owner && known.item.name == new.item.name);
        let replaced = known.map(|known| tools.remove(known));
        tools.push(new);
        self.changes.fetch_add(1, Ordering::Release);
        drop(tools);
        drop(replaced);
    }

    /// Removes the tools of `owner`.
    pub(super) fn remove(&self, owner: &Owner) {
        if self.changes() > 0 {
            let removed: Vec<_> = {
                let mut tools = self.tools.lock();
                tools.extract_if(.., |tool| tool.owner == *owner).collect()
            };
            drop(removed);
        }
    }

    /// Returns how often a tool was added.
    #[inline]
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns the tools, and how often one was added until now.
    pub(super) fn all(&self) -> (u64, Vec<LateTool>) {
        let tools = self.tools.lock();
        (self.changes(), tools.clone())
    }
}

/// A handler whose panics in `drop` are caught and logged.
struct GuardedHandler {
    extension: ExtensionName,
    /// `None` once it is being dropped.
    handler: Option<Arc<dyn ToolHandler>>,
}

impl ToolHandler for GuardedHandler {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        match &self.handler {
            Some(handler) => handler.call(ctx, input),
            None => Box::pin(std::future::pending()),
        }
    }
}

impl Drop for GuardedHandler {
    fn drop(&mut self) {
        drop_guarded(&self.extension, || drop(self.handler.take()));
    }
}
