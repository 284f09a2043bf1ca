//! A packed library has the digest of its bytes and is refused when one of them has changed, before it is loaded.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use goondan_abi::{ExtensionSchemas, Library};
use goondan_core::{Error, ErrorCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::frozen;

/// The bytes after the schemas of a packed file: the mark, two lengths and a digest.
const FOOTER: usize = 64;

fn schemas() -> Vec<ExtensionSchemas> {
    vec![ExtensionSchemas::new("frozen", json!({ "type": "object" }), Vec::new())]
}

/// Returns a packed copy of the small library in a new directory, and its length before it was packed.
fn packed() -> (TempDir, PathBuf, usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lib.so");
    let length = fs::copy(frozen::build("damaged"), &path).unwrap();
    Library::inspect(&path).unwrap().pack(&schemas()).unwrap();
    (directory, path, length.try_into().unwrap())
}

/// Inspects and loads the library.
fn load(path: &Path) -> Result<(), Error> {
    Library::inspect(path)?.load().map(drop)
}

fn flip(file: &File, at: usize, bit: u32) {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).unwrap();
    file.write_all_at(&[byte[0] ^ (1 << bit)], at as u64).unwrap();
}

#[test]
fn a_flipped_bit_anywhere_in_a_packed_library_is_a_refusal() {
    let (_directory, path, library) = packed();
    let whole = fs::metadata(&path).unwrap().len() as usize;
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // All of the ELF header and of what was packed, and places all over the library: code, data, tables of the linker.
    let header_and_trailer = (0..64).chain(library..whole);
    let all_over = (0..500).map(|part| 64 + (library - 64) * part / 500 + part % 7);
    for (number, at) in header_and_trailer.chain(all_over).enumerate() {
        let bit = number as u32 % 8;
        flip(&file, at, bit);
        let error = load(&path).unwrap_err();
        assert_eq!(error.code(), &ErrorCode::EXT_LOAD, "bit {bit} of byte {at}: {error:?}");
        assert!(error.suggestion().is_some(), "{error:?}");
        flip(&file, at, bit);
    }
    load(&path).unwrap();
}

#[test]
fn a_packed_library_with_other_bytes_names_its_digest_and_the_remedy() {
    let (_directory, path, library) = packed();
    flip(&OpenOptions::new().read(true).write(true).open(&path).unwrap(), library / 2, 0);
    let error = Library::inspect(&path).unwrap_err();
    assert!(error.message().contains("another digest than when it was packed"), "{error:?}");
    assert!(error.suggestion().unwrap().contains("goondan plugin pack"), "{error:?}");
}

#[test]
fn a_packed_library_without_its_digest_is_refused() {
    let (_directory, path, library) = packed();
    let sealed = fs::read(&path).unwrap();
    // The footer has the length of the library alone.
    let mut without = [&sealed[..library], &sealed[library + 48..]].concat();
    let footer = without.len() - FOOTER;
    without[footer + 16..footer + 24].copy_from_slice(&(library as u64).to_le_bytes());
    fs::write(&path, &without).unwrap();
    let error = Library::inspect(&path).unwrap_err();
    assert!(error.message().ends_with("do not follow the digest of the library"), "{error:?}");
}

#[test]
fn a_packed_file_has_the_layout_of_the_page() {
    let (_directory, path, library) = packed();
    let file = fs::read(&path).unwrap();
    let footer = &file[file.len() - FOOTER..];
    let number = |at: usize| u64::from_le_bytes(footer[at..at + 8].try_into().unwrap()) as usize;
    let (before, size) = (number(16), number(24));
    assert_eq!((&footer[..16], before + size), (&b"GOONDAN-SCHEMAS\0"[..], file.len() - FOOTER));
    assert_eq!((before, &file[library..library + 16]), (library + 48, &b"GOONDAN-LIBRARY\0"[..]));
    let json: Value = serde_json::from_slice(&file[before..before + size]).unwrap();
    assert_eq!(json[0]["name"], "frozen");
}
