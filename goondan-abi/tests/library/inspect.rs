//! A file that is no library, or none for this program, is refused before any of its code runs, with a reason and a
//! remedy (LINK-02, LINK-03).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use goondan_abi::{Library, table};
use goondan_core::{Error, ErrorCode};
use goondan_covers::covers;

use crate::frozen;
use crate::support::{library, loaded};

/// Returns the bytes of the small library, for tests that damage it.
fn small() -> Vec<u8> {
    fs::read(frozen::build("inspected")).unwrap()
}

/// Returns the offset of the declaration in the file.
fn declaration(bytes: &[u8]) -> usize {
    let places: Vec<_> = bytes.windows(16).enumerate().filter(|(_, window)| *window == table::MAGIC).collect();
    assert_eq!(places.len(), 1);
    places[0].0
}

fn refusal(path: impl AsRef<Path>) -> Error {
    let error = Library::inspect(path).unwrap_err();
    assert!(error.suggestion().is_some(), "{error}");
    error
}

fn refusal_of(bytes: &[u8]) -> Error {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lib.so");
    fs::write(&path, bytes).unwrap();
    refusal(path)
}

/// Returns the small library with other bytes in its declaration.
fn declaring(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = small();
    let at = declaration(&file) + offset;
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn inspection_lists_the_librarys_own_extensions() {
    let inspected = Library::inspect(library()).unwrap();
    assert_eq!(inspected.package(), "abi-fixture");
    let mut names: Vec<_> = inspected.extensions().iter().map(|extension| extension.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["blocking", "counting", "everything", "light", "members", "modes", "noop", "panicking", "pooled", "showing"]
    );
    assert_eq!(inspected.linked_in()[0].name, "a-linked-in");
    assert_eq!((inspected.abi_version(), inspected.api_version()), ("1.0".to_owned(), "goondan.ai/v1"));
    assert!(inspected.rustc().starts_with("rustc 1."), "{}", inspected.rustc());
    let everything = inspected.extensions().iter().find(|extension| extension.name == "everything").unwrap();
    assert_eq!(everything.middlewares.len(), 3);
    assert_eq!(everything.tools[0].timeout_ms, Some(5000));
    assert_eq!(everything.subscriptions, ["fixture.*"]);
}

#[test]
fn several_extensions_are_chosen_by_name() {
    assert_eq!(loaded().extension(Some("noop")).unwrap().package, "abi-fixture");
    let error = loaded().extension(None).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_LOAD);
    assert!(error.suggestion().unwrap().contains("noop"), "{error:?}");
    let error = loaded().extension(Some("a-linked-in")).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_LOAD);
}

#[test]
#[covers("LINK-02")]
fn a_library_that_ends_the_process_when_it_is_loaded_can_be_inspected() {
    let inspected = Library::inspect(frozen::build("exits")).unwrap();
    assert_eq!(inspected.extensions()[0].name, "frozen");
}

#[test]
#[covers("ERR-02")]
fn a_file_that_is_no_library_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let write = |name: &str, bytes: &[u8]| -> PathBuf {
        fs::write(at(name), bytes).unwrap();
        at(name)
    };
    for (path, why) in [
        (at("absent.so"), "cannot be read"),
        (directory.path().to_owned(), "is a directory"),
        (write("empty.so", b""), "is empty"),
        (write("text.so", b"#!/bin/sh\n"), "is not a library of this system"),
        (write("short.so", b"\x7fELF"), "ends within its header"),
        (
            write("junk.so", b"\x7fELF\x02\x01\x01 and then something else entirely, for quite a while, and more"),
            "damaged",
        ),
        (PathBuf::from("/dev/null"), "no ordinary file"),
        (std::env::current_exe().unwrap(), "exports no `goondan_extension_decl_v1`"),
    ] {
        let error = refusal(&path);
        assert_eq!(error.code(), &ErrorCode::EXT_LOAD, "{error:?}");
        assert!(error.to_string().contains(why), "{error:?}");
    }
}

#[test]
fn an_unreadable_file_is_refused_and_a_link_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lib.so");
    fs::write(&path, small()).unwrap();
    let link = directory.path().join("link.so");
    symlink(&path, &link).unwrap();
    assert_eq!(Library::inspect(&link).unwrap().package(), "frozen");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // Root can read every file.
    if fs::File::open(&path).is_err() {
        assert_eq!(refusal(&path).code(), &ErrorCode::EXT_LOAD);
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let file = small();
    for tenth in 1..10 {
        let error = refusal_of(&file[..file.len() * tenth / 10]);
        assert_eq!(error.code(), &ErrorCode::EXT_LOAD, "{error:?}");
    }
    let error = refusal_of(&file[..file.len() - 1]);
    assert_eq!(error.code(), &ErrorCode::EXT_LOAD, "{error:?}");
}

#[test]
#[covers("COMPAT-01", "ERR-05", "LOAD-10", "LINK-03")]
fn a_library_for_another_program_is_refused_with_both_versions() {
    use std::mem::offset_of;

    use table::Declaration;

    let number = |offset, value: u32| declaring(offset, &value.to_ne_bytes());
    let mut machine = small();
    // `e_machine`: ARM.
    machine[18..20].copy_from_slice(&183_u16.to_le_bytes());
    let mut class = small();
    class[4] = 1;
    for (file, theirs, ours) in [
        (number(offset_of!(Declaration, abi_major), 2), "ABI 2.0", "ABI 1.3"),
        (number(offset_of!(Declaration, abi_minor), 9), "ABI 1.9", "ABI 1.3"),
        (number(offset_of!(Declaration, pointer_width), 32), "32 bits", "64"),
        (number(offset_of!(Declaration, panic_unwind), 0), "panic = \"abort\"", "unwind"),
        (number(offset_of!(Declaration, plugin_table_size), 8), "8 bytes", "needs"),
        (declaring(offset_of!(Declaration, api_version), b"goondan.ai/v7"), "goondan.ai/v7", "goondan.ai/v1"),
        (machine, "aarch64", "x86_64"),
        (class, "32-bit", "x86_64"),
    ] {
        let error = refusal_of(&file);
        assert_eq!(error.code(), &ErrorCode::EXT_COMPAT, "{error:?}");
        assert!(error.to_string().contains(theirs) && error.to_string().contains(ours), "{error:?}");
    }
}

#[test]
fn a_library_with_wrong_sizes_or_json_is_refused() {
    use std::mem::offset_of;

    let mut long = small();
    let record = long.windows(13).position(|window| window == b"{\"apiVersion\"").unwrap();
    long[record - 4..record].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut short = small();
    short[record - 4..record].copy_from_slice(&3_u32.to_le_bytes());
    let mut no_json = small();
    no_json[record] = b'!';
    let mut effect = small();
    let name = record + effect[record..].windows(15).position(|window| window == br#""effect":"read""#).unwrap();
    effect[name..name + 15].copy_from_slice(br#""effect":"rude""#);
    let magic = declaring(0, b"SOMETHING");
    let size = declaring(offset_of!(table::Declaration, size), &u32::MAX.to_ne_bytes());
    for (file, why) in [
        (long, "claims 4294967295 bytes"),
        (short, "cannot be parsed"),
        (no_json, "cannot be parsed"),
        (effect, "has a tool `frozen__echo` with an unknown effect"),
        (magic, "does not start with its magic bytes"),
        (size, "claims 4294967295 bytes"),
    ] {
        let error = refusal_of(&file);
        assert_eq!(error.code(), &ErrorCode::EXT_LOAD, "{error:?}");
        assert!(error.to_string().contains(why), "{error:?}");
    }
}

#[test]
fn bytes_after_the_end_are_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lib.so");
    fs::write(&path, [small(), b"and more".to_vec()].concat()).unwrap();
    assert_eq!(Library::inspect(&path).unwrap().package(), "frozen");
}

#[test]
fn a_file_that_replaced_the_inspected_one_is_not_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lib.so");
    fs::write(&path, small()).unwrap();
    let inspected = Library::inspect(&path).unwrap();
    fs::write(&path, declaring(std::mem::offset_of!(table::Declaration, sdk_version), b"9.9.9")).unwrap();
    let error = inspected.load().unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_LOAD, "{error:?}");
    assert!(error.to_string().contains("not the file that was inspected"), "{error:?}");
}
