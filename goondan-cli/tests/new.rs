//! `goondan new extension` as an author uses it: the crate that it makes, and what it refuses to make.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

fn new_extension(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goondan"));
    command.args(["new", "extension"]).args(arguments).current_dir(directory).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A place below the build directory of the workspace, so that nothing is left elsewhere, and what was built once stays.
fn place() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-extension")
}

/// Runs cargo in the new crate without network: everything that it needs, this workspace needed too.
fn cargo(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).arg("--offline").current_dir(directory);
    command.env("CARGO_TARGET_DIR", place().join("target")).env("CARGO_PROFILE_DEV_DEBUG", "none");
    command.env("CARGO_INCREMENTAL", "0").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finish(command: &mut Command, input: &str) -> Output {
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    output
}

#[test]
fn a_new_extension_passes_its_test_and_answers_on_the_terminal() {
    let crates = place().join("crates");
    if crates.exists() {
        fs::remove_dir_all(&crates).unwrap();
    }
    fs::create_dir_all(&crates).unwrap();

    let output = new_extension(&crates, &["my-weather"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    for step in ["cd my-weather", "cargo test", "cargo run --example run", "cargo build --release", "goondan run"] {
        assert!(text(&output.stdout).contains(step), "{}", text(&output.stdout));
    }
    let made = crates.join("my-weather");
    let lines = fs::read_to_string(made.join("src/lib.rs")).unwrap().lines().count();
    assert!(lines <= 60, "the first extension that somebody reads is short, not {lines} lines");

    // The versions that this workspace was built with are at hand.
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock"), made.join("Cargo.lock")).unwrap();
    let tested = finish(&mut cargo(&made, &["test"]), "");
    assert!(text(&tested.stdout).contains("1 passed"), "{}", text(&tested.stdout));
    let ran = finish(&mut cargo(&made, &["run", "--example", "run"]), "hi\nhi\nhi\nhi\n");
    let greeted = "[my-weather__greet: Ok]\nI greeted you.\n".repeat(3);
    let refused = "[my-weather__greet: Error]\nI may not greet you again.\n";
    assert_eq!(text(&ran.stdout), greeted + refused);

    // The bundle names the library where cargo writes it unless told otherwise.
    symlink(place().join("target"), made.join("target")).unwrap();
    let mut build = cargo(&made, &["build", "--release"]);
    finish(build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"), "");
    let mut goondan = Command::new(env!("CARGO_BIN_EXE_goondan"));
    goondan.args(["run", "--state-root", "state"]).current_dir(&made);
    let ran = finish(goondan.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()), "hi\nhi\nhi\nhi\n");
    assert_eq!(text(&ran.stdout), "I greeted you.\n".repeat(3) + "I may not greet you again.\n");
}

#[test]
fn a_name_that_is_not_legal_exits_with_2_and_one_that_is() {
    let place = TempDir::new().unwrap();
    let output = new_extension(place.path(), &["MyWeather"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("try `my-weather`"), "{}", text(&output.stderr));
    let output = new_extension(place.path(), &["async"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("try `async-extension`"), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn nothing_is_written_over() {
    let place = TempDir::new().unwrap();
    fs::create_dir(place.path().join("full")).unwrap();
    fs::write(place.path().join("full/mine"), "mine").unwrap();
    for occupied in ["full", "full/mine"] {
        let output = new_extension(place.path(), &["weather", "--path", occupied]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""));
        assert!(text(&output.stderr).contains("--path"), "{}", text(&output.stderr));
    }
    assert_eq!(fs::read_dir(place.path().join("full")).unwrap().count(), 1);
    fs::create_dir(place.path().join("empty")).unwrap();
    let output = new_extension(place.path(), &["weather", "--path", "empty"]);
    assert_eq!(output.status.code(), Some(0), "an empty directory is free");
    assert!(place.path().join("empty/Cargo.toml").is_file());
}
