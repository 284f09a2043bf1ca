//! `goondan new extension`: the crate that it creates, and the names and directories that it rejects.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use goondan_libraries::without_the_package_of_the_test;
use tempfile::TempDir;

use crate::support::{checkout, goondan, on_a_terminal, piped, stderr, stdout};

fn new_extension(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = goondan();
    command.args(["new", "extension"]).args(arguments).current_dir(directory);
    command.env("GOONDAN_STATE_ROOT", directory.join("state")).output().unwrap()
}

const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");

/// Returns the target directory of the workspace.
fn target() -> &'static Path {
    Path::new(SCRATCH).parent().unwrap()
}

/// Returns a command that runs cargo in the new crate without network: its dependencies are also those of this
/// workspace, whose profiles and target directory it uses, so that few are built again.
fn cargo(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).arg("--offline").current_dir(directory);
    without_the_package_of_the_test(&mut command);
    command.env("CARGO_TARGET_DIR", target()).env("CARGO_PROFILE_DEV_DEBUG", "none").env("CARGO_INCREMENTAL", "0");
    command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1").env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    command
}

fn finish(command: &mut Command, input: &str) -> Output {
    let mut child = piped(command);
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}\n{}", stdout(&output), stderr(&output));
    output
}

#[test]
fn a_new_extension_passes_its_test_and_answers_on_the_terminal() {
    let crates = Path::new(SCRATCH).join("new-extension");
    if crates.exists() {
        fs::remove_dir_all(&crates).unwrap();
    }
    fs::create_dir_all(&crates).unwrap();

    let output = new_extension(&crates, &["my-weather"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    for step in ["cd my-weather", "cargo test", "cargo run --example run", "cargo build --release", "goondan run"] {
        assert!(stdout(&output).contains(step), "{}", stdout(&output));
    }
    let created = crates.join("my-weather");
    let lines = fs::read_to_string(created.join("src/lib.rs")).unwrap().lines().count();
    assert!(lines <= 60, "the first extension that an author reads must be short, not {lines} lines");

    // Use the versions of this workspace, which have been downloaded.
    fs::copy(checkout().join("Cargo.lock"), created.join("Cargo.lock")).unwrap();
    let tested = finish(&mut cargo(&created, &["test"]), "");
    assert!(stdout(&tested).contains("1 passed"), "{}", stdout(&tested));
    let ran = finish(&mut cargo(&created, &["run", "--example", "run"]), "hi\nhi\nhi\nhi\n");
    let greeted = "[my-weather__greet: Ok]\nI greeted you.\n".repeat(3);
    let refused = "[my-weather__greet: Error]\nI may not greet you again.\n";
    assert_eq!(stdout(&ran), greeted + refused);

    // The bundle names the library in cargo's default target directory.
    symlink(target(), created.join("target")).unwrap();
    finish(&mut cargo(&created, &["build", "--release"]), "");
    let mut goondan = goondan();
    // No question: the user has made the bundle.
    goondan.args(["run", "--state-root", "../state"]).current_dir(&created);
    let ran = finish(&mut goondan, "hi\nhi\nhi\nhi\n");
    assert_eq!(stdout(&ran), "I greeted you.\n".repeat(3) + "I may not greet you again.\n");
    let (page, code) = on_a_terminal(goondan.args(["--instance", "other", "--input", "hi"]), "");
    assert_eq!((code, page.contains("Run it?"), page.contains("I greeted you.")), (Some(0), false, true), "{page}");
}

#[test]
fn an_invalid_name_exits_with_2_and_suggests_a_valid_one() {
    let dir = TempDir::new().unwrap();
    let output = new_extension(dir.path(), &["MyWeather"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("try `my-weather`"), "{}", stderr(&output));
    let output = new_extension(dir.path(), &["async"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("try `async-extension`"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was created");
}

#[test]
fn existing_files_are_not_overwritten() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("full")).unwrap();
    fs::write(dir.path().join("full/mine"), "mine").unwrap();
    for occupied in ["full", "full/mine"] {
        let output = new_extension(dir.path(), &["weather", "--path", occupied]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
        assert!(stderr(&output).contains("--path"), "{}", stderr(&output));
    }
    assert_eq!(fs::read_dir(dir.path().join("full")).unwrap().count(), 1);
    fs::create_dir(dir.path().join("empty")).unwrap();
    let output = new_extension(dir.path(), &["weather", "--path", "empty"]);
    assert_eq!(output.status.code(), Some(0), "an empty directory is accepted");
    assert!(dir.path().join("empty/Cargo.toml").is_file());
}
