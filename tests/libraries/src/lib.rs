//! Owns building crates of this workspace as libraries, for the tests that load them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a crate is built.
#[derive(Clone, Debug)]
pub struct Build {
    package: String,
    profile: String,
    toolchain: Option<String>,
}

impl Build {
    /// In debug, by the toolchain of this workspace.
    pub fn new(package: &str) -> Self {
        Self { package: package.to_owned(), profile: "dev".to_owned(), toolchain: None }
    }

    /// In another profile.
    pub fn profile(self, profile: &str) -> Self {
        Self { profile: profile.to_owned(), ..self }
    }

    /// By another toolchain, as rustup calls it.
    pub fn toolchain(self, toolchain: &str) -> Self {
        Self { toolchain: Some(toolchain.to_owned()), ..self }
    }

    /// Builds the library and gives its file. `directory` is the `CARGO_TARGET_TMPDIR` of the test, the same for all of
    /// this workspace: libraries have a target directory of their own, because the one in use holds builds with other features.
    ///
    /// # Panics
    /// When it does not build.
    pub fn run(&self, directory: &str) -> PathBuf {
        let Self { package, profile, toolchain } = self;
        // Each toolchain would build anew what another one has built.
        let target = Path::new(directory).join(toolchain.as_deref().unwrap_or("libraries"));
        let mut cargo = match toolchain {
            None => Command::new(env!("CARGO")),
            Some(toolchain) => {
                let mut rustup = Command::new("rustup");
                rustup.args(["run", toolchain, "cargo"]);
                rustup
            }
        };
        cargo.args(["build", "--quiet", "--package", package, "--profile", profile]).arg("--target-dir").arg(&target);
        finish(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
        let directory = if profile == "dev" { "debug" } else { profile };
        target.join(directory).join(format!("lib{}.so", package.replace('-', "_")))
    }
}

/// The library that is written by hand against the frozen tables, compiled with `--cfg cfg`.
///
/// # Panics
/// When it does not compile.
pub fn by_hand(directory: &str, cfg: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goondan-abi/tests/frozen/plugin.rs");
    let library = Path::new(directory).join(format!("libfrozen_{cfg}.so"));
    // Several tests may compile it at the same time, in one process too.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let place = Path::new(directory).join(format!("frozen-{cfg}-{}-{count}", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    let built = place.join("lib.so");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--cfg", cfg]).arg("-o").arg(&built).arg(source);
    finish(rustc.args(["-A", "unexpected_cfgs"]));
    fs::rename(&built, &library).unwrap();
    fs::remove_dir_all(&place).unwrap();
    library
}

fn finish(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}
