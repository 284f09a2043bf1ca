//! Files that are no bundle: each is a clear error before it takes much time or memory.

use std::fs;
use std::path::Path;

use goondan_bundle::Bundle;
use goondan_core::Error;

use crate::fixture::{AGENT, EXTENSION, MODEL, assert_error, load};

#[track_caller]
fn assert_refused(path: &Path, words: &[&str]) -> Error {
    let error = Bundle::load(path).unwrap_err();
    assert_eq!(error.code(), "E_CONFIG_PARSE_ERROR", "{error:?}");
    assert!(error.message().starts_with(&path.display().to_string()), "{error:?}");
    assert!(error.suggestion().is_some(), "{error:?}");
    for word in words {
        assert!(error.message().contains(word), "`{word}` is missing: {error:?}");
    }
    error
}

#[track_caller]
fn assert_content_refused(content: impl AsRef<[u8]>, words: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bundle.yaml");
    fs::write(&file, content).unwrap();
    assert_refused(&file, words);
}

#[test]
fn missing_file_and_missing_bundle() {
    let directory = tempfile::tempdir().unwrap();
    assert_refused(&directory.path().join("nowhere"), &["no such file or directory"]);
    assert_refused(directory.path(), &["no `goondan.yaml`"]);
    fs::create_dir(directory.path().join("goondan.yaml")).unwrap();
    let error = Bundle::load(directory.path()).unwrap_err();
    assert!(error.message().ends_with("goondan.yaml: this is not a file"), "{error:?}");
}

#[test]
fn empty_file() {
    for content in ["", "\n", "# only a comment\n", "---\n---\n"] {
        assert_content_refused(content, &[":1:1: ", "the file is empty"]);
    }
    assert_error(&["a: 1\n"], "E_CONFIG_SCHEMA_INVALID", "1:1", &["declares nothing", "`kind`"]);
}

#[test]
fn content_that_is_not_text() {
    assert_content_refused(b"a: 1\nb: \xff\n", &[":2:4: ", "not UTF-8", "0xff"]);
    assert_content_refused(b"\x7fELF\x02\x01\0\0\xff", &[":1:", "binary"]);
    assert_content_refused(b"a: b\0", &[":1:5: ", "binary"]);
}

#[test]
fn byte_order_mark_is_no_error() {
    assert_error(&["\u{feff}kind: Agnet\napiVersion: goondan.ai/v1\n"], "E_CONFIG_UNKNOWN_KIND", "1:7", &["Agnet"]);
}

#[test]
fn too_large_a_file() {
    assert_content_refused("a: b\n".repeat(400_000), &["larger than 1048576 bytes"]);
}

#[test]
fn too_many_documents() {
    assert_content_refused("a: 1\n---\n".repeat(101), &[":201:1: ", "more than 100 documents"]);
    assert!(load(&[MODEL, AGENT, &"a: 1\n---\n".repeat(97)]).is_ok());
}

#[test]
fn too_many_values() {
    // The mapping, its key and the list are values, too; the 150,000 that follow are not read.
    let words = [":49999:3: ", "more than 50000 values"];
    assert_content_refused(format!("a:\n{}", "- x\n".repeat(200_000)), &words);
}

#[test]
fn yaml_that_does_not_parse() {
    assert_content_refused("a: [1\n", &[":1:4: ", "unclosed bracket"]);
    assert_content_refused("a:\n\tb: 1\n", &[":2:2: ", "tab"]);
    assert_content_refused("a: 1\nb: { c: 1, c: 2 }\n", &[":2:12: ", "key `c` is written twice"]);
    assert_content_refused("a: !include x.yaml\n", &[":1:", "the tag `!include` means nothing"]);
    assert_content_refused("a: *nowhere\n", &[":1:4: ", "anchor"]);
    assert_content_refused("a: .nan\n", &[":1:4: ", "not a finite number"]);
    assert_content_refused("? [a]\n: 1\n", &[":1:3: "]);
}

#[test]
fn error_of_a_document_before_broken_yaml_is_reported_first() {
    assert_error(&[&AGENT.replace("model:", "modle:"), "a: [1\n"], "E_CONFIG_SCHEMA_INVALID", "5:3", &["modle"]);
    assert_error(&[AGENT, "a: [1\n"], "E_CONFIG_PARSE_ERROR", "7:4", &["unclosed bracket"]);
}

#[test]
fn deep_nesting() {
    let words = ["nested more than 64 levels deep"];
    assert_content_refused(format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000)), &words);
    assert_content_refused(format!("a: {}1{}", "{a: ".repeat(10_000), "}".repeat(10_000)), &words);
    assert_content_refused("- ".repeat(10_000), &words);
    let steps: String = (0..1_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_content_refused(steps, &words);
}

#[test]
fn deep_nesting_within_the_limit_is_read_on_a_small_stack() {
    let config = format!("{}1{}", "{a: ".repeat(58), "}".repeat(58));
    let extension = EXTENSION.replace("{ maxMessages: 40, nested: { a: 1, b: 2 } }", &config);
    let load = move || load(&[&extension, MODEL, AGENT]).map(|bundle| bundle.extensions().len());
    let small = std::thread::Builder::new().stack_size(512 * 1024).spawn(load).unwrap();
    assert_eq!(small.join().unwrap().unwrap(), 1);
}

#[test]
fn alias_bombs() {
    let words = ["aliases repeat too much"];
    let level = |i: usize| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(", "));
    let bomb: String = (1..30).map(level).collect();
    assert_content_refused(format!("a0: &a0 [{}]\n{bomb}", ["x"; 9].join(", ")), &words);
    assert_content_refused(format!("a: &a x\nb: [{}]\n", ["*a"; 11].join(", ")), &words);
    assert_content_refused("a: &a [*a]\n", &["alias of itself"]);
    let merges: String =
        (1..30).map(|i| format!("a{i}: &a{i} {{ <<: [{}] }}\n", vec![format!("*a{}", i - 1); 9].join(", "))).collect();
    assert_content_refused(format!("a0: &a0 {{ x: 1 }}\n{merges}"), &[]);
    let chain: String = (1..3_000).map(|i| format!("a{i}: &a{i} {{ b: *a{} }}\n", i - 1)).collect();
    assert_content_refused(format!("a0: &a0 {{ x: 1 }}\n{chain}"), &[]);
}

#[cfg(unix)]
#[test]
fn file_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let (file, other) = (directory.path().join("goondan.yaml"), directory.path().join("other.yaml"));
    for file in [&file, &other] {
        fs::write(file, AGENT).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o000)).unwrap();
    }
    // The superuser can read everything.
    if fs::read(&file).is_err() {
        assert_refused(&file, &["permission denied"]);
        assert_eq!(Bundle::check(directory.path()).unwrap_err().len(), 2);
    }
}
