//! A copy of the workspace, with the breaks in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goondan_mutations::Result;
use goondan_mutations::table::{self, Mutation};

/// The directory of the copy, from the root of the workspace. It is kept, so that a second run builds little.
const TREE: &str = "target/mutations";

/// Copies the files that git knows and writes the breaks. A file that is as it was is not touched.
pub(crate) fn create(mutations: &[Mutation]) -> Result<PathBuf> {
    let tree = PathBuf::from(TREE);
    let listed = Command::new("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).output()?;
    for file in String::from_utf8(listed.stdout)?.split_terminator('\0').map(Path::new).filter(|file| file.exists()) {
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
    Ok(tree)
}
