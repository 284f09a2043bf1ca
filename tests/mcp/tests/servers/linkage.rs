//! The linkage of the running case: the extension linked into this program, or loaded from its library.

use std::sync::OnceLock;

use goondan::Value;
use goondan::agent::AgentBuilder;
use goondan::plugin::{Library, Loaded};
use goondan_libraries::Build;
// Nothing else names the crate, and the linker would leave it out.
use mcp as _;

/// How a case gets the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    Linked,
    Loaded,
}

tokio::task_local! {
    static LINKAGE: Linkage;
}

impl Linkage {
    /// Runs `case` in this linkage.
    pub(crate) async fn run(self, case: impl Future<Output = ()>) {
        LINKAGE.scope(self, case).await;
    }
}

fn library() -> &'static Loaded {
    static LIBRARY: OnceLock<Loaded> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let file = Build::new("mcp").run(env!("CARGO_TARGET_TMPDIR"));
        Library::inspect(file).unwrap().load().unwrap()
    })
}

/// Adds servers to an agent, in the linkage of the running case.
pub(crate) trait WithServer {
    /// Adds an extension `mcp` with the name `name`.
    fn server(self, name: &str, config: Value) -> Self;
}

impl WithServer for AgentBuilder {
    fn server(self, name: &str, config: Value) -> Self {
        match LINKAGE.get() {
            Linkage::Linked => self.linked(name, "mcp", config),
            Linkage::Loaded => self.described(name, library().extension(Some("mcp")).unwrap(), config),
        }
    }
}
