//! Helpers: bundles in temporary directories, and assertions about their errors.

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

/// A temporary directory with these files, each with its path in the directory.
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

/// Loads the documents and asserts the code and the place of the first error, and words of its message and suggestion.
#[track_caller]
pub(crate) fn assert_error(documents: &[&str], code: &str, place: &str, words: &[&str]) {
    let directory = bundle_of(documents);
    let error = Bundle::load(directory.path()).unwrap_err();
    let prefix = format!("{}:{place}: ", directory.path().join("goondan.yaml").display());
    assert!(error.message().starts_with(&prefix), "expected {prefix}, got {error:?}");
    assert_eq!(error.code(), code, "{error:?}");
    assert!(error.suggestion().is_some(), "{error:?}");
    let text = format!("{}\n{}", error.message(), error.suggestion().unwrap());
    for word in words {
        assert!(text.contains(word), "`{word}` is missing: {error:?}");
    }
}

/// As `assert_error`, for an agent whose spec is `spec` and begins at line 5.
#[track_caller]
pub(crate) fn assert_agent_error(spec: &str, code: &str, place: &str, words: &[&str]) {
    let agent = format!("apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: {{ name: main }}\nspec:\n{spec}");
    assert_error(&[&agent, MODEL, EXTENSION], code, place, words);
}
