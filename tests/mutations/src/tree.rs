//! A copy of the workspace, with the breaks in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goondan_mutations::Result;
use goondan_mutations::table::{self, Mutation};

/// The directory of the copy, from the root of the workspace. It is kept, so that a second run builds little.
const TREE: &str = "target/mutations";

/// Copies the files that git knows and writes the breaks. A file that is as it was is not touched, and one that is gone
/// is removed.
pub(crate) fn create(mutations: &[Mutation]) -> Result<PathBuf> {
    let tree = PathBuf::from(TREE);
    let listed = Command::new("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let files: BTreeSet<_> = listed.split_terminator('\0').map(Path::new).filter(|file| file.exists()).collect();
    for &file in &files {
        let (from, to) = (file, tree.join(file));
        fs::create_dir_all(to.parent().unwrap_or(&tree))?;
        if from.is_symlink() {
            _ = fs::remove_file(&to);
            std::os::unix::fs::symlink(fs::read_link(from)?, &to)?;
            continue;
        }
        let mut content = fs::read(from)?;
        let here: Vec<_> = mutations.iter().filter(|mutation| Path::new(&mutation.file) == file).collect();
        if !here.is_empty() {
            content = table::apply(std::str::from_utf8(&content)?, &here)?.into_bytes();
        }
        if fs::read(&to).ok().as_ref() != Some(&content) {
            fs::write(&to, content)?;
            fs::set_permissions(&to, fs::metadata(from)?.permissions())?;
        }
    }
    if let Some(lost) = mutations.iter().find(|mutation| !Path::new(&mutation.file).is_file()) {
        return Err(format!("{}: there is no file {}", lost.id, lost.file).into());
    }
    remove_others(&tree, Path::new(""), &files)?;
    Ok(tree)
}

/// Removes the files in `directory` of the copy that are not in `files`, but for those that cargo has built.
fn remove_others(tree: &Path, directory: &Path, files: &BTreeSet<&Path>) -> Result<()> {
    for entry in fs::read_dir(tree.join(directory))? {
        let entry = entry?;
        let path = directory.join(entry.file_name());
        if !entry.file_type()?.is_dir() {
            if !files.contains(&*path) {
                fs::remove_file(entry.path())?;
            }
        } else if path != Path::new("target") {
            remove_others(tree, &path, files)?;
        }
    }
    Ok(())
}
