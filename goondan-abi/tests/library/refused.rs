//! A library that cannot be used once its code runs: the error is `E_EXT_LOAD` with the reason, or names the schema.

use std::fs;

use goondan_abi::Library;
use goondan_core::{Error, ErrorCode};

use crate::frozen;

fn refusal(cfg: &'static str) -> Error {
    Library::inspect(frozen::build(cfg)).unwrap().load().unwrap_err()
}

#[test]
fn errors_of_entry_and_describe_are_errors_of_loading() {
    for (cfg, what) in [("refuses", "could not start"), ("mute", "could not describe itself")] {
        let error = refusal(cfg);
        assert_eq!((error.code(), error.suggestion()), (&ErrorCode::EXT_LOAD, Some("buy one")), "{error:?}");
        for part in ["libfrozen_", what, "E_NO_LICENSE", "the license is missing"] {
            assert!(error.message().contains(part), "{part}: {error:?}");
        }
    }
}

#[test]
fn the_message_of_the_system_is_part_of_the_error() {
    let error = refusal("unresolved");
    assert_eq!(error.code(), &ErrorCode::EXT_LOAD);
    assert!(error.message().contains("goondan_nobody_defines_this"), "{error:?}");
}

#[test]
fn a_schema_that_no_object_can_fit_is_refused_when_the_library_is_loaded() {
    for (cfg, parts) in [
        ("scalar_input", ["`frozen`", "the input of the tool `frozen__echo` is of the type `string`"]),
        ("scalar_config", ["`frozen`", "the config is of the type `integer`"]),
    ] {
        let error = refusal(cfg);
        assert_eq!(error.code(), &ErrorCode::SCHEMA_INVALID, "{error:?}");
        assert!(parts.iter().all(|part| error.message().contains(part)), "{error:?}");
        assert!(error.suggestion().unwrap().contains("struct"), "{error:?}");
    }
}

#[test]
fn loading_compares_with_no_earlier_copy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libearlier.so");
    // Other bytes than in any other test: what is after the end of a library is ignored.
    fs::write(&path, [fs::read(frozen::build("plain")).unwrap(), b"earlier".to_vec()].concat()).unwrap();
    let load = || Library::inspect(&path).unwrap().load().unwrap().extension(None).unwrap();
    let first = load();
    // What was loaded stays mapped without its file, and is still known.
    let copies = fs::read_dir(std::env::temp_dir()).unwrap().flatten().filter(|entry| {
        entry.file_name().to_string_lossy().starts_with(&format!("goondan-libraries-{}-", std::process::id()))
    });
    let own = copies.flat_map(|copies| fs::read_dir(copies.path()).unwrap().flatten());
    let own: Vec<_> = own.filter(|copy| copy.file_name().to_string_lossy().ends_with("libearlier.so")).collect();
    assert_eq!(own.len(), 1);
    fs::remove_file(own[0].path()).unwrap();
    assert!(std::ptr::eq(first, load()));
}
