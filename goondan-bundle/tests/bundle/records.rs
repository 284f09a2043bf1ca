//! The file of a model's requests is a regular file inside of the bundle, and none that the bundle is made of.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use goondan_bundle::Bundle;
use tempfile::TempDir;

use crate::fixture::{AGENT, EXTENSION, MODEL, bundle_of, code};

/// A bundle with a model that records to `record`, a script, a library, and a link to a directory elsewhere.
fn bundle(record: &str) -> (TempDir, TempDir) {
    let model = MODEL.replace("script.yaml }", &format!("script.yaml, record: {record} }}"));
    let extension = EXTENSION.replace("linked:message-window", "./window");
    let directory = bundle_of(&[&model, AGENT, &extension]);
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("file"), "").unwrap();
    fs::write(directory.path().join(format!("{DLL_PREFIX}window{DLL_SUFFIX}")), "").unwrap();
    fs::write(directory.path().join("other.yaml"), AGENT.replace("name: main", "name: other")).unwrap();
    fs::create_dir(directory.path().join("log")).unwrap();
    symlink(elsewhere.path(), directory.path().join("out")).unwrap();
    symlink(elsewhere.path().join("file"), directory.path().join("link")).unwrap();
    symlink(directory.path().join("nothing"), directory.path().join("dangling")).unwrap();
    symlink(directory.path().join("goondan.yaml"), directory.path().join("again")).unwrap();
    (directory, elsewhere)
}

#[test]
fn a_record_that_would_damage_something_is_refused() {
    let library = format!("{DLL_PREFIX}window{DLL_SUFFIX}");
    for (record, why) in [
        ("./goondan.yaml", "is a file that the bundle is made of"),
        ("log/../goondan.yaml", "below the bundle's directory"),
        ("./again", "is a file that the bundle is made of"),
        ("./other.yaml", "is a file that the bundle is made of"),
        ("./script.yaml", "is a file that the bundle is made of"),
        (library.as_str(), "is a file that the bundle is made of"),
        ("./log", "is no regular file"),
        ("./socket", "is no regular file"),
        ("./link", "leads out of the bundle"),
        ("./out/requests.jsonl", "leads out of the bundle"),
        ("./dangling", "is a link to a file that does not exist"),
    ] {
        let (directory, _elsewhere) = bundle(record);
        let _socket = UnixListener::bind(directory.path().join("socket")).unwrap();
        let errors = Bundle::check(directory.path()).unwrap_err();
        let error = errors.first();
        assert_eq!(
            (code(error), error.path.as_str()),
            ("E_CONFIG_SCHEMA_INVALID", "spec.record"),
            "{record}: {errors}"
        );
        assert!(error.message.contains(why), "{record}: {error}");
    }
}

#[test]
fn a_record_may_be_new_or_a_file_of_its_own() {
    for record in ["./requests.jsonl", "./log/requests.jsonl", "./missing/requests.jsonl", "./old"] {
        let (directory, _elsewhere) = bundle(record);
        fs::write(directory.path().join("old"), "{}\n").unwrap();
        Bundle::check(directory.path()).unwrap_or_else(|errors| panic!("{record}: {errors}"));
    }
}
