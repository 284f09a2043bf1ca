//! The two linkages in which a case gets its extensions (LINK-01): linked into this program, or loaded from the
//! library that cargo builds of the same crate. The attribute `#[both_linkages]` runs a case in each.

use std::sync::OnceLock;

use goondan::Value;
use goondan::agent::AgentBuilder;
use goondan::extension::Extension;
use goondan::plugin::{Library, Loaded};
use goondan_breaking::interruptible;
use goondan_libraries::Build;

/// How a case gets its extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    Linked,
    Loaded,
}

tokio::task_local! {
    /// The linkage of the running case.
    static LINKAGE: Linkage;
}

impl Linkage {
    pub(crate) const BOTH: [Self; 2] = [Self::Linked, Self::Loaded];

    /// Returns the name of the test that runs the case in this linkage.
    pub(crate) fn of_case() -> &'static str {
        match LINKAGE.get() {
            Self::Linked => "linked",
            Self::Loaded => "loaded",
        }
    }

    /// Runs `case` in this linkage.
    pub(crate) async fn run<T>(self, case: impl Future<Output = T>) -> T {
        LINKAGE.scope(self, case).await
    }
}

/// The library of the extensions, built and loaded once.
pub(crate) fn library() -> &'static Loaded {
    static LIBRARY: OnceLock<Loaded> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let file = Build::new("conformance-extensions").run(env!("CARGO_TARGET_TMPDIR"));
        Library::inspect(file).unwrap().load().unwrap()
    })
}

/// Adds extensions to an agent, in the linkage of the running case.
pub(crate) trait Extended: Sized {
    /// Adds the extension `E` under its own name.
    fn with<E: Extension>(self, config: Value) -> Self {
        self.with_named(E::DESCRIPTOR.name, E::DESCRIPTOR.name, config)
    }

    /// Adds `extension` under the name `name`.
    fn with_named(self, name: impl Into<String>, extension: &str, config: Value) -> Self;
}

impl Extended for AgentBuilder {
    fn with_named(self, name: impl Into<String>, extension: &str, config: Value) -> Self {
        let agent = interruptible(self);
        match LINKAGE.get() {
            Linkage::Linked => agent.linked_extension(name, extension, config),
            Linkage::Loaded => agent.described_extension(name, library().extension(Some(extension)).unwrap(), config),
        }
    }
}
