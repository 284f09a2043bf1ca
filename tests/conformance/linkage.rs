//! Owns the two ways in which a case gets its extensions (LINK-01): linked into this program, or out of the library that cargo
//! makes of the same crate. The attribute `#[both_linkages]` runs a case once in each.

use std::sync::OnceLock;

use goondan::{AgentBuilder, Extension, Library, Loaded, Value};
use goondan_libraries::Build;

/// Where a case finds its extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    Linked,
    Loaded,
}

tokio::task_local! {
    /// That of the case that runs.
    static LINKAGE: Linkage;
}

impl Linkage {
    pub(crate) const BOTH: [Self; 2] = [Self::Linked, Self::Loaded];

    /// Runs `case` in this linkage.
    pub(crate) async fn run(self, case: impl Future<Output = ()>) {
        LINKAGE.scope(self, case).await;
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

/// How a case adds its extensions: in the linkage in which it runs.
pub(crate) trait Extended: Sized {
    /// Adds the extension `E`.
    fn with<E: Extension>(self, config: Value) -> Self {
        self.with_named(E::DESCRIPTOR.name, E::DESCRIPTOR.name, config)
    }

    /// Adds `extension`, called `name`.
    fn with_named(self, name: impl Into<String>, extension: &str, config: Value) -> Self;
}

impl Extended for AgentBuilder {
    fn with_named(self, name: impl Into<String>, extension: &str, config: Value) -> Self {
        match LINKAGE.get() {
            Linkage::Linked => self.linked(name, extension, config),
            Linkage::Loaded => self.described(name, library().extension(Some(extension)).unwrap(), config),
        }
    }
}
