//! Builds crates of this workspace as libraries, for the tests that load them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A build of a package as a library. The defaults are the profile `dev`, the toolchain of this workspace, and the
/// default features of the package.
#[derive(Clone, Debug)]
pub struct Build {
    package: String,
    library: String,
    profile: String,
    toolchain: Option<String>,
    default_features: bool,
}

impl Build {
    /// A build of `package` with the defaults.
    pub fn new(package: &str) -> Self {
        Self {
            package: package.to_owned(),
            library: package.replace('-', "_"),
            profile: "dev".to_owned(),
            toolchain: None,
            default_features: true,
        }
    }

    /// A build of the crate in `plugins/` with this name, whose package has the prefix `goondan-` and whose library
    /// has not.
    pub fn ready_made(name: &str) -> Self {
        Self { package: format!("goondan-{name}"), ..Self::new(name) }
    }

    /// Builds in this profile.
    pub fn profile(self, profile: &str) -> Self {
        Self { profile: profile.to_owned(), ..self }
    }

    /// Builds with this toolchain, named as rustup names it.
    pub fn toolchain(self, toolchain: &str) -> Self {
        Self { toolchain: Some(toolchain.to_owned()), ..self }
    }

    /// Builds without the default features of the package.
    pub fn no_default_features(self) -> Self {
        Self { default_features: false, ..self }
    }

    /// Builds the library and returns its path. `directory` is the `CARGO_TARGET_TMPDIR` of the test, which is the
    /// same for the whole workspace. Libraries have their own target directory in it, because builds with other
    /// features are in the one in use, and cargo would replace them.
    ///
    /// # Panics
    /// When the build fails.
    pub fn run(&self, directory: &str) -> PathBuf {
        let Self { package, library, profile, toolchain, default_features } = self;
        // In a shared directory, each toolchain would rebuild what another one has built.
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
        if !default_features {
            cargo.arg("--no-default-features");
        }
        finish(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
        let directory = if profile == "dev" { "debug" } else { profile };
        target.join(directory).join(format!("lib{library}.so"))
    }
}

/// Compiles the library that is written by hand against the frozen tables, with `--cfg cfg`, and returns its path.
///
/// # Panics
/// When it does not compile.
pub fn by_hand(directory: &str, cfg: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goondan-abi/tests/frozen/plugin.rs");
    let library = Path::new(directory).join(format!("libfrozen_{cfg}.so"));
    // Several tests may compile it at the same time, in other processes and in this one: each compiles in its own
    // directory and moves the result.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let scratch = Path::new(directory).join(format!("frozen-{cfg}-{}-{count}", std::process::id()));
    fs::create_dir_all(&scratch).unwrap();
    let built = scratch.join("lib.so");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--cfg", cfg]).arg("-o").arg(&built).arg(source);
    finish(rustc.args(["-A", "unexpected_cfgs"]));
    fs::rename(&built, &library).unwrap();
    fs::remove_dir_all(&scratch).unwrap();
    library
}

fn finish(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}
