//! A bundle in a directory of its own, and what is asserted of its faults.

use std::fs;

use goondan_bundle::{Bundle, Diagnostic};
use goondan_core::Error;
use tempfile::TempDir;

pub(crate) const MODEL: &str = "\
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml }
";

pub(crate) const EXTENSION: &str = "\
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: message-window, labels: { team: core } }
spec:
  entry: \"linked:message-window\"
  config: { maxMessages: 40, nested: { a: 1, b: 2 } }
";

pub(crate) const AGENT: &str = "\
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec:
  model: Model/main
";

pub(crate) fn bundle_of(documents: &[&str]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("goondan.yaml"), documents.join("---\n")).unwrap();
    fs::write(directory.path().join("script.yaml"), "- say: hello\n").unwrap();
    directory
}

/// A directory with these files, by their paths in it.
pub(crate) fn directory_of(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let file = directory.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    directory
}

pub(crate) fn load(documents: &[&str]) -> Result<Bundle, Error> {
    Bundle::load(bundle_of(documents).path())
}

/// The code of an error.
#[track_caller]
pub(crate) fn code(error: &Diagnostic) -> &str {
    error.code.as_ref().unwrap().as_str()
}

/// Loads the documents and asserts what is said: the code, the place, and words of the message and the suggestion.
#[track_caller]
pub(crate) fn assert_fault(documents: &[&str], code: &str, place: &str, words: &[&str]) {
    let directory = bundle_of(documents);
    let error = Bundle::load(directory.path()).unwrap_err();
    let prefix = format!("{}:{place}: ", directory.path().join("goondan.yaml").display());
    assert!(error.message().starts_with(&prefix), "expected {prefix}, got {error:?}");
    assert_eq!(error.code(), code, "{error:?}");
    assert!(error.suggestion().is_some(), "{error:?}");
    let said = format!("{}\n{}", error.message(), error.suggestion().unwrap());
    for word in words {
        assert!(said.contains(word), "`{word}` is missing: {error:?}");
    }
}

/// As `assert_fault`, for an agent whose spec is `spec`, which begins at line 5 of the only document of interest.
#[track_caller]
pub(crate) fn assert_agent_fault(spec: &str, code: &str, place: &str, words: &[&str]) {
    let agent = format!("apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: {{ name: main }}\nspec:\n{spec}");
    assert_fault(&[&agent, MODEL, EXTENSION], code, place, words);
}
