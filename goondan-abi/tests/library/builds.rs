//! Libraries that were built otherwise than the program: optimized or not, with another allocator, by other compilers
//! (LINK-03).

use std::process::Command;

use goondan_abi::{Inspected, Library};
use goondan_covers::covers;
use goondan_libraries::Build;

use crate::authoring::{linked, story};

fn build(build: &Build) -> Inspected {
    Library::inspect(build.run(env!("CARGO_TARGET_TMPDIR"))).unwrap()
}

/// The extension that uses everything acts as the linked one does.
async fn works(library: Inspected) {
    let library = library.load().unwrap();
    assert_eq!(story(library.extension(Some("everything")).unwrap()).await, linked().await);
}

#[tokio::test]
async fn a_library_built_in_debug_and_one_built_in_release_work_in_the_same_program() {
    for profile in ["dev", "release"] {
        works(build(&Build::new("abi-fixture").profile(profile))).await;
    }
}

#[tokio::test]
async fn a_library_with_an_allocator_of_its_own_works() {
    works(build(&Build::new("abi-fixture-allocating"))).await;
}

/// What a program prints; nothing when there is no such program.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default()
}

/// The toolchains besides the own one that can build this workspace: their names, and what their compilers call themselves.
fn other_toolchains(own: &str) -> Vec<(String, String)> {
    let mut others: Vec<(String, String)> = Vec::new();
    for line in said("rustup", &["toolchain", "list"]).lines() {
        let name = line.split(' ').next().unwrap_or_default();
        let version = said("rustup", &["run", name, "rustc", "--version"]).trim().to_owned();
        let known = version == own || others.iter().any(|(_, other)| *other == version);
        if !known && minor(&version) >= minor(concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"))) {
            others.push((name.to_owned(), version));
        }
    }
    others
}

/// The 95 of `rustc 1.95.0 (…)`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("rustc 1.")?.split('.').next()?.parse().ok()
}

#[tokio::test]
#[covers("LINK-03")]
async fn a_library_built_by_another_compiler_works() {
    let own = Library::inspect(crate::support::library()).unwrap().rustc().to_owned();
    assert!(minor(&own).is_some(), "{own}");
    let others = other_toolchains(&own);
    println!("besides {own}: {others:?}");
    for (toolchain, version) in others {
        let library = build(&Build::new("abi-fixture").toolchain(&toolchain));
        assert_eq!(library.rustc(), version);
        works(library).await;
    }
}
