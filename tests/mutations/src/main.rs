//! Breaks the code on purpose, one place at a time, and runs the test of the requirement that is then broken: it must fail.
//!
//! `cargo run -p goondan-mutations` does all of them, in a copy of the checkout; `cargo run -p goondan-mutations -- NEXT-01`
//! does those of one requirement. It takes some minutes.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use serde::Deserialize;

/// One way to break the code.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    /// The requirement that is then broken.
    row: String,
    /// The test that must notice: a test or a case of the test binary `conformance`.
    test: String,
    /// The file to change.
    file: String,
    /// What stands there, exactly once.
    from: String,
    /// What to put in its place.
    to: String,
}

fn mutations() -> Result<Vec<Mutation>, serde_json::Error> {
    serde_json::from_str(include_str!("../mutations.json"))
}

/// The checkout that this program was built from.
fn checkout() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let only = std::env::args().nth(1);
    let copy = tempfile::tempdir()?;
    let copied = Command::new("git").arg("clone").arg("--quiet").arg(checkout()).arg(copy.path()).status()?;
    if !copied.success() {
        return Err(
            "the checkout could not be copied; this needs git, and what is to be tested must be committed".into()
        );
    }
    let mut survivors = 0;
    let mut done = 0;
    for mutation in mutations()?.iter().filter(|mutation| only.as_ref().is_none_or(|row| mutation.row == *row)) {
        let noticed = try_out(mutation, copy.path())?;
        println!("{:8} {:10} {}", if noticed { "noticed" } else { "SURVIVED" }, mutation.row, mutation.test);
        survivors += usize::from(!noticed);
        done += 1;
    }
    println!("{} of {done} mutations were noticed", done - survivors);
    Ok(if survivors == 0 && done > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the test fails under the mutation, although the code still compiles.
fn try_out(mutation: &Mutation, copy: &Path) -> Result<bool, Box<dyn Error>> {
    let file = copy.join(&mutation.file);
    let sound = fs::read_to_string(&file)?;
    fs::write(&file, mutate(mutation, &sound)?)?;
    let run = |arguments: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--quiet", "--locked", "--test", "conformance"]).args(arguments).current_dir(copy);
        // One target directory for all, beside the usual one, so that only what was changed is built again.
        cargo.env("CARGO_TARGET_DIR", checkout().join("target/mutations"));
        cargo.stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    let compiles = run(&["--no-run"])?.success();
    // A case that runs in both linkages is a module of two tests, of which the linked one needs no further build.
    let linked = format!("{}::linked", mutation.test);
    let passes = compiles && run(&["--", "--exact", &mutation.test, &linked])?.success();
    fs::write(&file, sound)?;
    if compiles { Ok(!passes) } else { Err(format!("{mutation:?} does not compile").into()) }
}

fn mutate(mutation: &Mutation, sound: &str) -> Result<String, String> {
    match sound.matches(&mutation.from).count() {
        1 => Ok(sound.replacen(&mutation.from, &mutation.to, 1)),
        count => Err(format!("{} stands {count} times in {}, not once", mutation.from, mutation.file)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_mutation_still_fits_the_code_and_names_a_test() {
        let mutations = mutations().unwrap();
        for mutation in &mutations {
            let sound = fs::read_to_string(checkout().join(&mutation.file)).unwrap();
            mutate(mutation, &sound).unwrap();
            let (module, test) = mutation.test.split_once("::").unwrap();
            let tests = fs::read_to_string(checkout().join(format!("tests/conformance/{module}.rs"))).unwrap();
            assert!(tests.contains(&format!("fn {test}(")), "{}", mutation.test);
        }
        let rows: BTreeSet<_> = mutations.iter().map(|mutation| &mutation.row).collect();
        assert!(rows.len() >= 20, "{}", rows.len());
    }
}
