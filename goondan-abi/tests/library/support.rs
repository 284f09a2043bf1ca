//! Shared by the tests: the library, built once, and its extensions in both linkages.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use abi_fixture::{Blocking, Everything, Modes, Panicking, Pooled};
use goondan_abi::{Library, Loaded};
use goondan_core::{Extension, ExtensionDescriptor};
use goondan_libraries::Build;
use goondan_runtime::{Agent, AgentBuilder, ScriptItem, ScriptedModel};
use serde_json::Value;

/// How an extension reaches the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    Linked,
    Library,
}

pub(crate) const BOTH: [Linkage; 2] = [Linkage::Linked, Linkage::Library];

impl Linkage {
    pub(crate) fn extension(self, name: &str) -> &'static ExtensionDescriptor {
        match (self, name) {
            (Self::Linked, "blocking") => Blocking::DESCRIPTOR,
            (Self::Linked, "everything") => Everything::DESCRIPTOR,
            (Self::Linked, "modes") => Modes::DESCRIPTOR,
            (Self::Linked, "panicking") => Panicking::DESCRIPTOR,
            (Self::Linked, "pooled") => Pooled::DESCRIPTOR,
            (Self::Linked, _) => panic!("the tests do not link `{name}`"),
            (Self::Library, name) => loaded().extension(Some(name)).unwrap(),
        }
    }
}

/// Returns the library of the fixture, built by cargo.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| Build::new("abi-fixture").run(env!("CARGO_TARGET_TMPDIR")))
}

/// Returns the same library, built in release as users build theirs.
pub(crate) fn optimized() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| Build::new("abi-fixture").profile("release").run(env!("CARGO_TARGET_TMPDIR")))
}

pub(crate) fn loaded() -> &'static Loaded {
    static LOADED: OnceLock<Loaded> = OnceLock::new();
    LOADED.get_or_init(|| Library::inspect(library()).unwrap().load().unwrap())
}

/// Returns an agent whose model plays `script`.
pub(crate) fn agent(script: impl IntoIterator<Item = ScriptItem>) -> AgentBuilder {
    Agent::builder("assistant").model(ScriptedModel::new(script))
}

/// Returns the same with the extension `modes`, whose behaviour `config` selects.
pub(crate) fn modes(linkage: Linkage, config: Value, script: impl IntoIterator<Item = ScriptItem>) -> AgentBuilder {
    agent(script).described_extension("modes", linkage.extension("modes"), config)
}
