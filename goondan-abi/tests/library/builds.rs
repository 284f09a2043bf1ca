//! Libraries that were built differently from the program: in another profile, with another allocator, by another
//! compiler (LINK-03).

use std::process::Command;

use goondan_abi::{Inspected, Library};
use goondan_covers::covers;
use goondan_libraries::{Build, is_long_run};

use crate::authoring::{linked, story};

fn build(build: &Build) -> Inspected {
    Library::inspect(build.run(env!("CARGO_TARGET_TMPDIR"))).unwrap()
}

/// Asserts that the extension `everything` of the library behaves like the linked one.
async fn works(library: Inspected) {
    let library = library.load().unwrap();
    assert_eq!(story(library.extension(Some("everything")).unwrap()).await, linked().await);
}

#[tokio::test]
#[covers("LINK-03")]
async fn a_library_built_in_debug_and_one_built_in_release_work_in_the_same_program() {
    for profile in ["dev", "release"] {
        works(build(&Build::new("abi-fixture").profile(profile))).await;
    }
}

#[tokio::test]
async fn a_library_with_another_allocator_works() {
    works(build(&Build::new("abi-fixture-allocating"))).await;
}

/// Returns the output of a program, or an empty text if there is no such program.
fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default()
}

/// Returns the installed toolchains, except the one in use, that can build this workspace: their names and the
/// versions of their compilers.
fn other_toolchains(own: &str) -> Vec<(String, String)> {
    let mut others: Vec<(String, String)> = Vec::new();
    for line in output_of("rustup", &["toolchain", "list"]).lines() {
        let name = line.split(' ').next().unwrap_or_default();
        let version = output_of("rustup", &["run", name, "rustc", "--version"]).trim().to_owned();
        let known = version == own || others.iter().any(|(_, other)| *other == version);
        if !known && minor(&version) >= minor(concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"))) {
            others.push((name.to_owned(), version));
        }
    }
    others
}

/// Returns the minor version, such as 95 of `rustc 1.95.0 (…)`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("rustc 1.")?.split('.').next()?.parse().ok()
}

#[tokio::test]
#[covers("LINK-03")]
async fn a_library_built_by_another_compiler_works() {
    let own = Library::inspect(crate::support::library()).unwrap().rustc().to_owned();
    assert!(minor(&own).is_some(), "{own}");
    // A build of everything below a library, for each of them.
    let others = if is_long_run() { other_toolchains(&own) } else { Vec::new() };
    println!("besides {own}: {others:?}");
    for (toolchain, version) in others {
        let library = build(&Build::new("abi-fixture").toolchain(&toolchain));
        assert_eq!(library.rustc(), version);
        works(library).await;
    }
}
