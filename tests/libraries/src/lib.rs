//! Owns the building of the libraries that tests load. `directory` is always `env!("CARGO_TARGET_TMPDIR")` of the test: what
//! was built once stays there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The library of `package`, built by cargo. Libraries have a target directory of their own: the one in use holds builds with
/// other features.
///
/// # Panics
/// When it does not build.
pub fn of_package(directory: &str, package: &str, profile: &str) -> PathBuf {
    let target = Path::new(directory).join("libraries");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", package, "--profile", profile]).arg("--target-dir").arg(&target);
    finish(cargo.current_dir(CHECKOUT));
    let profile = if profile == "dev" { "debug" } else { profile };
    target.join(profile).join(format!("lib{}.so", package.replace('-', "_")))
}

/// The library that is written by hand against the frozen tables, compiled with `--cfg cfg`.
///
/// # Panics
/// When it does not compile.
pub fn by_hand(directory: &str, cfg: &str) -> PathBuf {
    let source = Path::new(CHECKOUT).join("goondan-abi/tests/frozen/plugin.rs");
    let library = Path::new(directory).join(format!("libfrozen_{cfg}.so"));
    // Several tests may compile it at the same time.
    let place = Path::new(directory).join(format!("frozen-{cfg}-{}", std::process::id()));
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
