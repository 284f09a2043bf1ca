//! The runtime of a library, which runs on without an extension.

use super::HOST;
use super::runtime::RuntimeRef;

/// Keeps tasks of a library running, until it is dropped: see [`keep_running`].
#[must_use = "tasks may end when it is dropped"]
pub struct KeepRunning(#[expect(dead_code, reason = "it is held for its `drop`")] Option<RuntimeRef>);

/// Keeps the tasks that extensions spawned running when their conversations are closed, as long as the returned guard
/// exists.
///
/// An extension that is loaded as a library spawns tasks on a tokio runtime of the library. That runtime ends with the
/// last extension of the library, and with it all that it runs: a connection that several conversations share would end
/// with the conversations that happen to be open. Whatever outlives them, such as a pool of connections, therefore
/// holds this guard instead of the `ExtensionApi` of a conversation.
///
/// In an extension that is linked into its program, tasks run on the runtime of the program, and the guard does
/// nothing.
///
/// ```
/// use std::time::Duration;
///
/// /// Runs beside conversations, also while none is open.
/// fn refresh_every_minute() {
///     let running = goondan::keep_running();
///     tokio::spawn(async move {
///         // Keep it until the end of the task.
///         let _running = running;
///         loop {
///             tokio::time::sleep(Duration::from_secs(60)).await;
///             // …
///         }
///     });
/// }
/// ```
///
/// A guard that is never dropped keeps the threads of a library that was replaced.
pub fn keep_running() -> KeepRunning {
    // Only in a library has a host passed its table.
    KeepRunning(HOST.get().map(|_| RuntimeRef::new()))
}

impl std::fmt::Debug for KeepRunning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeepRunning")
    }
}
