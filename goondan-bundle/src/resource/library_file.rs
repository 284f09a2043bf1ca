//! The file of a library that an entry names, and the remedy if there is none.

use std::env::consts::{DLL_EXTENSION, DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Component, Path, PathBuf};

use goondan_core::{BundleFile, ErrorCode, ExtensionName};
use goondan_runtime::nearest::nearest;

use crate::read::Cursor;

/// The file that `written` refers to. It must not lead out of the bundle unless the operator allows absolute paths.
pub(super) fn find(
    cursor: &Cursor<'_>,
    written: &str,
    name: Option<&ExtensionName>,
    root: &Path,
    allow_absolute: bool,
) -> Option<PathBuf> {
    let refuse = |what: &str, remedy: &str| {
        cursor.error(ErrorCode::EXT_LOAD, format!("{} {what}, but is {}", cursor.name(), cursor.value()), remedy);
        None
    };
    let path = Path::new(written);
    if !written.contains('/') {
        let stem = stem(path);
        return refuse(
            "must be `linked:` and the name of an extension, or a path to a library",
            &format!("write `linked:{}`, or a path with a slash, such as `./plugins/{stem}`", stem.replace('_', "-")),
        );
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return refuse(
            "must not lead out of the bundle",
            "copy the library into the bundle, and write its path without `..`",
        );
    }
    if path.is_absolute() && !allow_absolute {
        return refuse(
            "must be relative to the bundle",
            "copy the library into the bundle, or let `goondan` load it with `--allow-absolute-plugins`",
        );
    }
    let named = root.join(path.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>());
    let file = on_this_platform(&named);
    if file.exists() {
        return Some(file);
    }
    let whose = name.map_or_else(String::new, |name| format!(" of the extension `{name}`"));
    let message = format!("{}{whose} names a library that does not exist: `{}`", cursor.name(), file.display());
    cursor.error(ErrorCode::EXT_LOAD, message, remedy(written, &named, &file));
    None
}

/// Adds the prefix and the ending that cargo gives libraries on this platform, unless `path` has an ending.
fn on_this_platform(path: &Path) -> PathBuf {
    match path.file_name() {
        Some(name) if path.extension().is_none() => {
            let name = format!("{DLL_PREFIX}{}{DLL_SUFFIX}", name.to_string_lossy());
            path.with_file_name(name)
        }
        _ => path.to_owned(),
    }
}

/// The name of a library without the prefix and the ending of the platform.
fn stem(path: &Path) -> String {
    let stem = if path.extension().is_some_and(|ending| ending == DLL_EXTENSION) {
        path.file_stem()
    } else {
        path.file_name()
    };
    let stem = stem.unwrap_or_default().to_string_lossy().into_owned();
    stem.strip_prefix(DLL_PREFIX).unwrap_or(&stem).to_owned()
}

/// The most bytes of a Cargo.toml that is read.
const MANIFEST: u64 = 1 << 20;

/// The remedy for the missing `file`, for which the entry names the path `named`.
fn remedy(written: &str, named: &Path, file: &Path) -> String {
    const CDYLIB: &str = "`crate-type = [\"rlib\", \"cdylib\"]` to `[lib]` in its Cargo.toml";
    let wanted = stem(named).replace('-', "_");
    if file.with_file_name(format!("lib{wanted}.rlib")).is_file() {
        return format!("the crate makes no such library yet: add {CDYLIB}, and run `cargo build --release` again");
    }
    let manifest = BundleFile::open(&named.join("Cargo.toml")).and_then(|manifest| manifest.read_whole(MANIFEST));
    if let Ok(manifest) = manifest {
        let manifest = String::from_utf8_lossy(&manifest);
        let add = if manifest.contains("cdylib") { String::new() } else { format!("add {CDYLIB}, ") };
        return format!(
            "`{written}` is the directory of a crate: {add}run `cargo build --release` there, copy the library from \
             its `target/release` into the bundle, and name that file"
        );
    }
    match similar(&wanted, file) {
        Some(similar) => {
            let directory = written.rsplit_once('/').map_or("", |(directory, _)| directory);
            let why = if similar == wanted && named.to_string_lossy().contains('-') {
                "; cargo writes `_` for each `-` in the name of a crate"
            } else {
                ""
            };
            format!("write `{directory}/{similar}`{why}")
        }
        None => "build it with `cargo build --release`, and copy it there from `target/release`".to_owned(),
    }
}

/// The library beside `file` whose name is most like `wanted`, without prefix and ending.
fn similar(wanted: &str, file: &Path) -> Option<String> {
    let beside = fs::read_dir(file.parent()?).ok()?.flatten().map(|entry| entry.path());
    let libraries = beside.filter(|path| path.extension().is_some_and(|ending| ending == DLL_EXTENSION));
    let named = libraries.filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(DLL_PREFIX)));
    let stems: Vec<String> = named.map(|path| stem(&path)).collect();
    nearest(wanted, stems.iter().map(String::as_str)).map(str::to_owned)
}
