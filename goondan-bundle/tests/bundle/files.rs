//! Bundles of several files: the files that are read, and errors that involve several of them.

use std::fs;
use std::path::Path;

use goondan_bundle::{Bundle, Diagnostics};
use goondan_covers::covers;

use crate::fixture::{AGENT, EXTENSION, MODEL, directory_of};

const SCRIPT: (&str, &str) = ("script.yaml", "- say: hello\n");
const BROKEN: &str = "apiVersion: goondan.ai/v1\nkind: [\n";

/// The files that a bundle read, relative to its root.
#[cfg(test)]
fn files(bundle: &Bundle) -> Vec<&str> {
    bundle.files().map(|file| file.strip_prefix(bundle.root()).unwrap().to_str().unwrap()).collect()
}

#[track_caller]
fn assert_one_error(root: &Path, errors: &Diagnostics, place: &str, words: &str) {
    assert_eq!(errors.len(), 1, "{errors}");
    let report = errors.to_string();
    assert!(
        report.starts_with(root.join(place).display().to_string().trim_end_matches('/')),
        "expected {place}, got {report}"
    );
    assert!(report.contains(words), "`{words}` is missing: {report}");
}

#[test]
#[covers("LOAD-04")]
fn resources_are_read_from_all_files() {
    let swarm = "apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: { name: team }\nspec: { agents: [ { ref: Agent/main } ], entryAgent: Agent/main }\n";
    let directory = directory_of(&[
        ("models/deep/main.yml", MODEL),
        ("agents/main.yaml", AGENT),
        ("z.yaml", EXTENSION),
        ("goondan.yaml", swarm),
        // The path of the script is relative to the bundle, not to the file that names it.
        SCRIPT,
    ]);
    let bundle = Bundle::load(directory.path()).unwrap();
    assert_eq!(files(&bundle), ["goondan.yaml", "z.yaml", "agents/main.yaml", "models/deep/main.yml"]);
    assert_eq!(bundle.workspace_name().unwrap(), "team");

    fs::remove_file(directory.path().join("goondan.yaml")).unwrap();
    let bundle = Bundle::load(directory.path()).unwrap();
    assert_eq!(bundle.workspace_name().unwrap(), "main", "a `goondan.yaml` need not exist");
}

#[test]
fn file_that_is_named_is_the_whole_bundle() {
    let directory = directory_of(&[SCRIPT, ("goondan.yaml", &[MODEL, AGENT].join("---\n")), ("z.yaml", BROKEN)]);
    assert!(Bundle::load(directory.path()).is_err());
    assert!(Bundle::load(directory.path().join("goondan.yaml")).is_ok());
}

#[test]
fn third_party_hidden_cache_and_bundle_directories_are_not_scanned() {
    let directory = directory_of(&[
        SCRIPT,
        ("goondan.yaml", &[MODEL, AGENT].join("---\n")),
        ("dist/a.yaml", BROKEN),
        ("node_modules/b/a.yaml", BROKEN),
        (".git/a.yaml", BROKEN),
        (".hidden/a.yaml", BROKEN),
        (".a.yaml", BROKEN),
        ("target/CACHEDIR.TAG", ""),
        ("target/debug/a.yaml", BROKEN),
        ("examples/other/goondan.yml", BROKEN),
        ("examples/other/agents/a.yaml", BROKEN),
        ("a.yaml.bak", BROKEN),
    ]);
    assert_eq!(files(&Bundle::load(directory.path()).unwrap()), ["goondan.yaml"]);
    fs::write(directory.path().join("examples/a.yaml"), BROKEN).unwrap();
    let errors = Bundle::check(directory.path()).unwrap_err();
    assert_one_error(directory.path(), &errors, "examples/a.yaml:2:7", "unclosed bracket");
}

#[test]
fn files_that_declare_nothing_are_ignored() {
    let directory = directory_of(&[
        SCRIPT,
        ("goondan.yaml", &[MODEL, AGENT].join("---\n")),
        ("unused-script.yaml", "- say: [\n"),
        ("chart.yaml", "{{- if .Values.on }}\na: 1\n"),
        ("data.yaml", &"a: b\n".repeat(400_000)),
        ("settings.yaml", "---\na: 1\n---\n  kind: x\n"),
        ("empty.yaml", ""),
    ]);
    fs::write(directory.path().join("binary.yaml"), b"\x7fELF\0\xff").unwrap();
    assert_eq!(files(&Bundle::load(directory.path()).unwrap()), ["goondan.yaml"]);
}

#[test]
fn limits_apply_to_each_file() {
    let root = directory_of(&[SCRIPT, ("goondan.yaml", &[MODEL, AGENT].join("---\n"))]);
    let file = root.path().join("more.yaml");
    let many = |count| AGENT.to_owned() + &"---\na: 1\n".repeat(count);
    fs::write(&file, many(99).replace("name: main", "name: other")).unwrap();
    assert!(Bundle::load(root.path()).is_ok());
    for (content, place, words) in [
        (many(100), "more.yaml:", "more than 100 documents"),
        (format!("kind: Agent\n{}", "a: b\n".repeat(400_000)), "more.yaml", "larger than"),
        ("kind: Agent\na: \0\n".to_owned(), "more.yaml:2:4", "binary"),
    ] {
        fs::write(&file, content).unwrap();
        let errors = Bundle::check(root.path()).unwrap_err();
        assert!(errors.to_string().contains(words), "{errors}");
        assert!(errors.to_string().contains(&root.path().join(place).display().to_string()), "{errors}");
    }
}

#[test]
fn name_in_two_files_is_reported_with_both_places() {
    let directory = directory_of(&[SCRIPT, ("goondan.yaml", &[MODEL, AGENT].join("---\n")), ("more/a.yaml", AGENT)]);
    let errors = Bundle::check(directory.path()).unwrap_err();
    let first = format!("another Agent `main` at {}:8:19", directory.path().join("goondan.yaml").display());
    assert_one_error(directory.path(), &errors, "more/a.yaml:3:19", &first);
}

#[test]
fn file_that_cannot_be_read_hides_no_other_error_and_causes_none() {
    let directory = directory_of(&[SCRIPT, ("a.yaml", AGENT), ("b.yaml", BROKEN)]);
    let errors = Bundle::check(directory.path()).unwrap_err();
    assert_one_error(directory.path(), &errors, "b.yaml:2:7", "unclosed bracket");
    let directory = directory_of(&[SCRIPT, ("a.yaml", &AGENT.replace("spec", "spce")), ("b.yaml", BROKEN)]);
    assert_eq!(Bundle::check(directory.path()).unwrap_err().len(), 2, "`spce` and the bracket");
}

#[test]
fn error_for_a_directory_of_bundles_names_one_of_them() {
    let directory = directory_of(&[("first/goondan.yaml", AGENT), ("second/goondan.yaml", AGENT)]);
    let errors = Bundle::check(directory.path()).unwrap_err();
    assert_one_error(directory.path(), &errors, "", "first`");
}

#[test]
fn bottomless_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("a/".repeat(40))).unwrap();
    let errors = Bundle::check(directory.path()).unwrap_err();
    assert!(errors.to_string().contains("directories in one another"), "{errors}");
}

#[cfg(unix)]
#[test]
fn links_to_files_are_read_and_links_to_directories_are_not() {
    let directory = directory_of(&[SCRIPT, ("goondan.yaml", AGENT), (".data/model.yaml", MODEL)]);
    let link =
        |from: &str, to: &str| std::os::unix::fs::symlink(directory.path().join(from), directory.path().join(to));
    link(".data/model.yaml", "model.yaml").unwrap();
    link("", "circle").unwrap();
    link("nowhere", "dangling.yaml").unwrap();
    assert_eq!(files(&Bundle::load(directory.path()).unwrap()), ["goondan.yaml", "model.yaml"]);
}
