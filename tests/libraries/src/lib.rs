//! Builds crates of this workspace as libraries, for the tests that load them, and tells tests how long they may run.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A build of a package as a library. The defaults are the profile `dev`, the toolchain of this workspace, and the
/// default features of the package.
#[derive(Clone, Debug)]
pub struct Build {
    /// What cargo is called with.
    arguments: Vec<String>,
    /// Where it puts the library, below the directory of the profile.
    library: PathBuf,
    profile: String,
    toolchain: Option<String>,
    default_features: bool,
}

impl Build {
    /// A build of `package` with the defaults, as an author of an extension builds it.
    pub fn new(package: &str) -> Self {
        let library = format!("lib{}.so", package.replace('-', "_"));
        Self::with(&["rustc", "--lib", "--crate-type", "cdylib", "--package", package], library)
    }

    /// A build of the crate in `plugins/` with this name, out of the examples of this package: all of them have the
    /// same features of the same dependencies, so that none of these is built twice.
    pub fn ready_made(name: &str) -> Self {
        let example = name.replace('-', "_");
        Self::with(&["build", "--features", "libraries", "--example", &example], format!("examples/lib{example}.so"))
    }

    /// A build of an example of the workspace, with the features that `cargo test --workspace` builds it with: for what
    /// needs the runtime, which is in the tests already.
    pub fn of_workspace(example: &str) -> Self {
        Self::with(&["build", "--workspace", "--example", example], format!("examples/lib{example}.so"))
    }

    fn with(arguments: &[&str], library: String) -> Self {
        Self {
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            library: library.into(),
            profile: "dev".to_owned(),
            toolchain: None,
            default_features: true,
        }
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

    /// Builds the library and returns its path. `directory` is the `CARGO_TARGET_TMPDIR` of the test. The library is
    /// made in the target directory in use, where crates that have the same features are built already. The crates of
    /// tests are made into libraries by nothing else, so that none replaces another.
    ///
    /// # Panics
    /// When the build fails.
    pub fn run(&self, directory: &str) -> PathBuf {
        let Self { arguments, library, profile, toolchain, default_features } = self;
        let (mut cargo, target) = match toolchain {
            None => (Command::new(env!("CARGO")), Path::new(directory).parent().unwrap().to_owned()),
            // In a shared directory, each toolchain would rebuild what another one has built.
            Some(toolchain) => {
                let mut rustup = Command::new("rustup");
                rustup.args(["run", toolchain, "cargo"]);
                (rustup, Path::new(directory).join(toolchain))
            }
        };
        without_the_package_of_the_test(&mut cargo);
        cargo.args(arguments).args(["--quiet", "--profile", profile]).arg("--target-dir").arg(&target);
        if !default_features {
            cargo.arg("--no-default-features");
        }
        finish(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
        let directory = if profile == "dev" { "debug" } else { profile };
        target.join(directory).join(library)
    }
}

/// Returns how many random inputs a test tries: the number in `GOONDAN_RUNS`, which `.ci/long` sets, or else `sample`.
///
/// # Panics
/// When `GOONDAN_RUNS` is no number.
pub fn runs(sample: u32) -> u32 {
    std::env::var("GOONDAN_RUNS").map_or(sample, |runs| runs.parse().unwrap())
}

/// Returns whether tests may take long, as in `.ci/long`.
pub fn is_long_run() -> bool {
    std::env::var_os("GOONDAN_RUNS").is_some()
}

/// Removes the variables that cargo sets for a test. Build scripts read them, and would run again for each package that
/// builds a library.
pub fn without_the_package_of_the_test(cargo: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
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
