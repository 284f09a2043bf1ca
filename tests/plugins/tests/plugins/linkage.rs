//! The linkage of the running case: the extensions linked into this program, or loaded from their libraries.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use goondan::agent::AgentBuilder;
use goondan::bundle::{Agents, Plugins};
use goondan::plugin::{Library, Loaded};
use goondan::store::MemoryStore;
use goondan::{Bundle, Value};
use goondan_libraries::Build;
// Nothing else names the crates, and the linker would leave them out.
use approval as _;
use ask as _;
use bash as _;
use basics as _;
use changesets as _;
use file_system as _;
use http_fetch as _;
use logging as _;
use mcp as _;
use message_compaction as _;
use message_window as _;
use oauth as _;
use plan as _;
use recipes as _;
use redact as _;
use retry as _;
use shared as _;
use skills as _;
use tool_output as _;
use tool_search as _;
use validate as _;

/// How a case gets the extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    Linked,
    Loaded,
}

/// The package with the extensions of `docs/recipes`, which is a test's.
const RECIPES: &str = "recipes";

tokio::task_local! {
    static LINKAGE: Linkage;
}

impl Linkage {
    /// Returns the name of the test that runs the case in this linkage.
    pub(crate) fn of_case() -> &'static str {
        match LINKAGE.get() {
            Self::Linked => "linked",
            Self::Loaded => "loaded",
        }
    }

    /// Runs `case` in this linkage.
    pub(crate) async fn run(self, case: impl Future<Output = ()>) {
        LINKAGE.scope(self, case).await;
    }
}

/// Returns the crate of a ready-made extension.
fn package_of(extension: &'static str) -> &'static str {
    match extension {
        "agents" | "subagents" | "json-query" | "text-transform" | "wait" => "basics",
        own => own,
    }
}

/// Returns the file of the library of `package`, which is built once.
fn file(package: &'static str) -> &'static Path {
    static FILES: Mutex<BTreeMap<&str, &Path>> = Mutex::new(BTreeMap::new());
    let mut files = FILES.lock().unwrap();
    let build = if package == RECIPES { Build::of_workspace(package) } else { Build::ready_made(package) };
    files.entry(package).or_insert_with(|| build.run(env!("CARGO_TARGET_TMPDIR")).leak())
}

fn library(package: &'static str) -> &'static Loaded {
    static LIBRARIES: Mutex<BTreeMap<&str, &Loaded>> = Mutex::new(BTreeMap::new());
    let mut libraries = LIBRARIES.lock().unwrap();
    libraries
        .entry(package)
        .or_insert_with(|| Box::leak(Box::new(Library::inspect(file(package)).unwrap().load().unwrap())))
}

/// Adds ready-made extensions to an agent, in the linkage of the running case.
pub(crate) trait WithPlugin {
    /// Adds the ready-made `extension` with the name `name`.
    fn plugin(self, name: &str, extension: &'static str, config: Value) -> Self;
    /// Adds the extension `name` of `package`, which has several.
    fn one_of(self, package: &'static str, name: &'static str, config: Value) -> Self;
    /// Adds an extension of `docs/recipes`.
    fn recipe(self, name: &'static str, config: Value) -> Self;
}

impl WithPlugin for AgentBuilder {
    fn plugin(self, name: &str, extension: &'static str, config: Value) -> Self {
        match LINKAGE.get() {
            Linkage::Linked => self.linked_extension(name, extension, config),
            Linkage::Loaded => {
                let library = library(package_of(extension));
                self.described_extension(name, library.extension(Some(extension)).unwrap(), config)
            }
        }
    }

    fn one_of(self, package: &'static str, name: &'static str, config: Value) -> Self {
        match LINKAGE.get() {
            Linkage::Linked => self.linked_extension(name, name, config),
            Linkage::Loaded => self.described_extension(name, library(package).extension(Some(name)).unwrap(), config),
        }
    }

    fn recipe(self, name: &'static str, config: Value) -> Self {
        self.one_of(RECIPES, name, config)
    }
}

/// Returns the entry of the extension of `package` for a bundle in `directory`.
pub(crate) fn entry(package: &'static str, directory: &Path) -> String {
    match LINKAGE.get() {
        Linkage::Linked => format!("linked:{package}"),
        Linkage::Loaded => {
            let copy = directory.join(format!("lib{}.so", package.replace('-', "_")));
            fs::hard_link(file(package), &copy).or_else(|_| fs::copy(file(package), &copy).map(drop)).unwrap();
            format!("./{}", package.replace('-', "_"))
        }
    }
}

/// Returns the agents of the bundle in `directory`.
pub(crate) async fn build(directory: &Path) -> Agents {
    Bundle::load(directory).unwrap().build_with(MemoryStore::new().with_directories(), &Plugins::new()).await.unwrap()
}
