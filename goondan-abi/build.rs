//! Passes the version of the compiler and the target to the crate, for the declaration of libraries.

use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().ok().and_then(|out| String::from_utf8(out.stdout).ok());
    println!("cargo::rustc-env=GOONDAN_RUSTC={}", version.as_deref().map_or("unknown", str::trim));
    println!("cargo::rustc-env=GOONDAN_TARGET={}", std::env::var("TARGET").unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
}
