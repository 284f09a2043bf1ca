//! Tasks.

use goondan_core::BoxFuture;
use tokio::task::AbortHandle;

/// Runs a future in a task of its own. Such tasks have one type, so that the code of a task is compiled once.
pub(crate) fn spawn(task: BoxFuture<'static, ()>) -> AbortHandle {
    tokio::spawn(task).abort_handle()
}
