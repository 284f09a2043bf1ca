//! The modules of the crate depend on each other in one direction.

use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below `directory`.
#[cfg(test)]
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn modules_use_only_those_above_them_in_the_list_of_modules() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let modules: Vec<_> = lib.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    assert!(modules.len() > 10, "{modules:?}");
    for file in files_below(&source).iter().filter(|file| !file.ends_with("lib.rs")) {
        let path = file.strip_prefix(&source).unwrap();
        let module = path.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        let index = modules.iter().position(|other| *other == module).unwrap();
        let code = fs::read_to_string(file).unwrap();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for rest in line.split("crate::").skip(1) {
                let used = rest.split(|char: char| !char.is_alphanumeric() && char != '_').next().unwrap();
                assert!(modules[..=index].contains(&used), "{}: `{used}` is not above `{module}`", path.display());
            }
        }
    }
}
