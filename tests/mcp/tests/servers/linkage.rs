//! The linkage of the running case: the extension linked into this program, or loaded from its library.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use goondan::agent::AgentBuilder;
use goondan::bundle::{Agents, Plugins};
use goondan::plugin::{Library, Loaded};
use goondan::store::MemoryStore;
use goondan::{Bundle, Value};
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

/// The library of the extension, built once.
fn file() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| Build::new("mcp").run(env!("CARGO_TARGET_TMPDIR")))
}

fn library() -> &'static Loaded {
    static LIBRARY: OnceLock<Loaded> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::inspect(file()).unwrap().load().unwrap())
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

/// Returns the entry of the extension for a bundle in `directory`.
pub(crate) fn entry(directory: &Path) -> &'static str {
    match LINKAGE.get() {
        Linkage::Linked => "linked:mcp",
        Linkage::Loaded => {
            fs::hard_link(file(), directory.join("libmcp.so"))
                .or_else(|_| fs::copy(file(), directory.join("libmcp.so")).map(drop))
                .unwrap();
            "./mcp"
        }
    }
}

/// Returns the agents of the bundle in `directory`.
pub(crate) async fn build(directory: &Path) -> Agents {
    Bundle::load(directory).unwrap().build_with(MemoryStore::new(), &Plugins::new()).await.unwrap()
}
