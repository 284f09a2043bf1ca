//! Schemas that are packed into a library can be read without running it, and the library still loads.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use goondan_abi::{ExtensionSchemas, Library};
use goondan_core::{Error, ErrorCode};
use serde_json::json;
use tempfile::TempDir;

use crate::frozen;
use crate::support::{library, loaded};

/// Returns a copy of the small library in a new directory.
fn small() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lib.so");
    fs::copy(frozen::build("packed"), &path).unwrap();
    (directory, path)
}

fn schemas(name: &str, most: u64) -> Vec<ExtensionSchemas> {
    let config = json!({ "properties": { "max": { "maximum": most } } });
    vec![ExtensionSchemas::new(name, config, Vec::new())]
}

fn refusal(path: &PathBuf, bytes: &[u8]) -> Error {
    fs::write(path, bytes).unwrap();
    Library::inspect(path).unwrap_err()
}

#[test]
fn a_library_computes_its_schemas() {
    let schemas = loaded().schemas();
    let everything = schemas.iter().find(|schemas| schemas.name == "everything").unwrap();
    let extension = loaded().extension(Some("everything")).unwrap();
    assert_eq!(everything.config, (extension.config_schema)());
    assert_eq!(everything.tools.len(), extension.tools.len());
    assert!(everything.tools[0].parameters.is_object());
    assert_eq!(Library::inspect(library()).unwrap().schemas(), None, "the file has no schemas until they are packed");
}

#[test]
fn packed_schemas_are_read_from_the_file_which_still_loads() {
    let (directory, path) = small();
    let before = fs::read(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let link = directory.path().join("link.so");
    symlink(&path, &link).unwrap();
    Library::inspect(&link).unwrap().pack(&schemas("frozen", 1)).unwrap();
    assert!(link.is_symlink(), "a link stays a link");
    let packed = fs::read(&path).unwrap();
    assert!(packed.starts_with(&before));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(Library::inspect(&path).unwrap().schemas().unwrap(), schemas("frozen", 1));

    Library::inspect(&path).unwrap().pack(&schemas("frozen", 2)).unwrap();
    assert_eq!(
        Library::inspect(&path).unwrap().schemas().unwrap(),
        schemas("frozen", 2),
        "the new schemas replace the old ones"
    );
    Library::inspect(&path).unwrap().pack(&schemas("frozen", 1)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), packed, "packing again has the same result");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "no temporary file is left");

    let loaded = Library::inspect(&path).unwrap().load().unwrap();
    assert_eq!(loaded.extension(None).unwrap().name, "frozen");
}

#[test]
fn schemas_of_other_extensions_are_not_packed() {
    let (_directory, path) = small();
    let error = Library::inspect(&path).unwrap().pack(&schemas("other", 1)).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_LOAD);
    assert_eq!(Library::inspect(&path).unwrap().schemas(), None);
}

#[test]
fn damaged_schemas_are_refused() {
    let (_directory, path) = small();
    let length = fs::read(&path).unwrap().len();
    Library::inspect(&path).unwrap().pack(&schemas("frozen", 1)).unwrap();
    let packed = fs::read(&path).unwrap();
    let changed = |at: usize| {
        let mut bytes = packed.clone();
        bytes[at] ^= 1;
        bytes
    };
    let footer = packed.len() - 64;
    let mut huge = packed.clone();
    huge[footer + 24..footer + 32].copy_from_slice(&u64::MAX.to_le_bytes());
    for (bytes, why) in [
        (changed(length + 48), "checksum"),
        (changed(packed.len() - 1), "checksum"),
        (changed(footer + 16), "do not reach"),
        (changed(footer + 24), "do not reach"),
        (huge, "do not reach"),
        ([&packed[..length + 49], &packed[length + 50..]].concat(), "do not reach"),
    ] {
        let error = refusal(&path, &bytes);
        assert_eq!(error.code(), &ErrorCode::EXT_LOAD, "{error:?}");
        assert!(error.to_string().contains(why) && error.suggestion().is_some(), "{error:?}");
    }
    fs::write(&path, &packed[..packed.len() - 1]).unwrap();
    assert_eq!(
        Library::inspect(&path).unwrap().schemas(),
        None,
        "a file that is cut after the library is that library"
    );
}

#[test]
fn the_digest_is_that_of_the_file() {
    let (_directory, path) = small();
    let digest = || Library::inspect(&path).unwrap().sha256().unwrap();
    let before = digest();
    assert_eq!((before.len(), &before), (64, &digest()));
    Library::inspect(&path).unwrap().pack(&schemas("frozen", 1)).unwrap();
    assert_ne!(before, digest());
}
