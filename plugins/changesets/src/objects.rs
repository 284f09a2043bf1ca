//! Objects of a repository, which git reads and makes without the repository: without its config, attributes, hooks and
//! references, and without those of the person.
//!
//! Each changeset has a git directory of its own for this, which has nothing but a config of four lines, and which
//! works on the objects of the repository. So there is no filter, driver, hook or other program that git could start,
//! whatever an agent or the repository itself says.
// TREE-01

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use goondan::{Error, Result};
use process::Environment;

use crate::author::Author;
use crate::command::{self, GIT};

/// The mode of a symbolic link and of a submodule.
pub(crate) const LINK: &str = "120000";
pub(crate) const SUBMODULE: &str = "160000";

/// A git directory of the extension's own, on the objects of a repository.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    /// The git directory.
    pub(crate) directory: PathBuf,
    /// The objects of the repository.
    pub(crate) store: Store,
    author: Author,
}

/// Where a repository keeps its objects.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) path: PathBuf,
    /// The file with the commits whose parents are missing in a shallow clone.
    pub(crate) shallow: PathBuf,
    /// `sha1` or `sha256`.
    pub(crate) format: String,
    /// That of git.
    pub(crate) environment: Environment,
}

/// A file of a tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blob {
    pub(crate) mode: String,
    pub(crate) id: String,
}

/// One path of a difference between two trees.
#[derive(Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// The file that it is now.
    pub(crate) blob: Blob,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Added,
    Changed,
    Deleted,
}

impl Change {
    /// Whether it is a symbolic link or a submodule now.
    pub(crate) fn is_link(&self) -> bool {
        [LINK, SUBMODULE].contains(&self.blob.mode.as_str())
    }
}

/// The result of a merge: a tree, in whose conflicting files both versions are marked.
pub(crate) struct Merged {
    pub(crate) tree: String,
    pub(crate) conflicts: Vec<String>,
}

/// An index that is deleted when it is dropped. Each is new, because a git of a program that was killed may still
/// write to another one.
struct Index(PathBuf);

impl Drop for Index {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

impl Objects {
    /// Returns those in `store`, by way of the git directory `directory`, which is made if there is none.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new(directory: PathBuf, store: Store, author: Author) -> Result<Self> {
        let config = directory.join("config");
        if !config.exists() {
            fs::create_dir_all(directory.join("refs"))?;
            // A branch that is not there.
            fs::write(directory.join("HEAD"), "ref: refs/heads/none\n")?;
            let (version, format) = match store.format.as_str() {
                "sha1" => (0, String::new()),
                other => (1, format!("[extensions]\n\tobjectFormat = {other}\n")),
            };
            let core = format!("[core]\n\trepositoryFormatVersion = {version}\n\tbare = true\n");
            let names = "\tprotectHFS = true\n\tprotectNTFS = true\n\tattributesFile = /dev/null\n";
            let new = directory.join("config.new");
            fs::write(&new, format!("{core}{names}{format}"))?;
            // Last, so that the directory is complete.
            fs::rename(new, config)?;
        }
        Ok(Self { directory, store, author })
    }

    /// Returns the command with these arguments.
    pub(crate) fn git(&self, arguments: &[&str]) -> Command {
        let mut git = command::git(&self.store.environment, &self.directory);
        // Away from all files of a work tree.
        git.current_dir(&self.directory);
        git.env("GIT_OBJECT_DIRECTORY", &self.store.path).env("GIT_SHALLOW_FILE", &self.store.shallow);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_ATTR_NOSYSTEM", "1");
        // A merge would read the attributes in the trees.
        git.env("GIT_ATTR_SOURCE", self.empty_tree());
        let Author { name, email } = &self.author;
        git.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", email);
        git.env("GIT_COMMITTER_NAME", name).env("GIT_COMMITTER_EMAIL", email);
        git.args(arguments);
        git
    }

    async fn run(&self, arguments: &[&str]) -> Result<Output> {
        command::run(self.git(arguments), Vec::new()).await
    }

    async fn line(&self, arguments: &[&str]) -> Result<String> {
        command::line(self.git(arguments)).await
    }

    async fn output(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        command::output(self.git(arguments), Vec::new()).await
    }

    /// Returns the tree without files, which each repository has.
    fn empty_tree(&self) -> &'static str {
        if self.store.format == "sha1" {
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        } else {
            "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
        }
    }

    /// Returns the tree of a commit.
    pub(crate) async fn tree(&self, commit: &str) -> Result<String> {
        self.line(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).await
    }

    /// Returns whether there is such an object.
    pub(crate) async fn has(&self, id: &str) -> Result<bool> {
        Ok(self.run(&["cat-file", "-e", id]).await?.status.success())
    }

    /// Returns the first parent of a commit.
    pub(crate) async fn parent(&self, commit: &str) -> Result<String> {
        self.line(&["rev-parse", "--verify", &format!("{commit}^")]).await
    }

    /// Returns an id for `text`.
    pub(crate) async fn id(&self, text: &[u8]) -> Result<String> {
        let output = command::output(self.git(&["hash-object", "--stdin"]), text.to_owned()).await?;
        Ok(command::text(&output))
    }

    /// Returns the files of a tree with their paths.
    pub(crate) async fn list(&self, tree: &str) -> Result<Vec<(Vec<u8>, Blob)>> {
        let output = self.output(&["ls-tree", "-r", "-z", "--full-tree", tree]).await?;
        Ok(output.split(|byte| *byte == 0).filter_map(parse_listed).collect())
    }

    /// Returns the tree that `tree` becomes by these files; `None` deletes one.
    pub(crate) async fn change(&self, tree: &str, files: &[(Vec<u8>, Option<Blob>)]) -> Result<String> {
        let zero = "0".repeat(tree.len());
        let mut lines = Vec::new();
        for (path, blob) in files {
            let (mode, id) = blob.as_ref().map_or(("0", &zero), |blob| (blob.mode.as_str(), &blob.id));
            lines.extend_from_slice(format!("{mode} {id}\t").as_bytes());
            lines.extend_from_slice(path);
            lines.push(0);
        }
        let index = self.index(tree).await?;
        let mut update = self.git(&["update-index", "-z", "--index-info"]);
        update.env("GIT_INDEX_FILE", &index.0);
        command::output(update, lines).await?;
        self.write_tree(&index).await
    }

    /// Returns the tree that `tree` becomes by a unified diff. git refuses paths that lead out of it.
    pub(crate) async fn apply(&self, tree: &str, patch: &str) -> Result<String> {
        let index = self.index(tree).await?;
        let mut apply = self.git(&["apply", "--cached", "--recount", "--whitespace=nowarn", "-"]);
        apply.env("GIT_INDEX_FILE", &index.0);
        command::output(apply, patch.as_bytes().to_owned()).await?;
        self.write_tree(&index).await
    }

    async fn index(&self, tree: &str) -> Result<Index> {
        let index = Index(self.directory.join(format!("index-{:016x}", fastrand::u64(..))));
        self.read_tree(tree, &index.0).await?;
        Ok(index)
    }

    /// Makes `index` the index of a checkout of `tree`.
    pub(crate) async fn read_tree(&self, tree: &str, index: &Path) -> Result<()> {
        let mut read = self.git(&["read-tree", tree]);
        read.env("GIT_INDEX_FILE", index);
        command::line(read).await.map(drop)
    }

    async fn write_tree(&self, index: &Index) -> Result<String> {
        let mut write = self.git(&["write-tree"]);
        write.env("GIT_INDEX_FILE", &index.0);
        command::line(write).await
    }

    /// Makes a commit that no branch has.
    pub(crate) async fn commit(&self, tree: &str, parent: &str, message: &str) -> Result<String> {
        self.line(&["commit-tree", tree, "-p", parent, "-m", message]).await
    }

    /// Merges two commits, without touching any file.
    pub(crate) async fn merge(&self, ours: &str, theirs: &str) -> Result<Merged> {
        let merge = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs];
        let output = self.run(&merge).await?;
        // 1 is a merge with conflicts.
        let output = if output.status.code() == Some(1) { output.stdout } else { command::checked(output)? };
        let mut parts = command::texts(&output).into_iter();
        let tree = parts.next().ok_or_else(|| Error::new(GIT, "`git merge-tree` printed no tree"))?;
        Ok(Merged { tree, conflicts: parts.collect() })
    }

    /// Returns those of `paths` in which a conflict is marked in `tree`.
    pub(crate) async fn marked(&self, tree: &str, paths: &[String]) -> Result<Vec<String>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let search =
            ["--literal-pathspecs", "grep", "--text", "--files-with-matches", "-z", "-e", "^<<<<<<< ", tree, "--"];
        let mut git = self.git(&search);
        git.args(paths);
        let output = command::run(git, Vec::new()).await?;
        // 1 means that there is none.
        let found = if output.status.code() == Some(1) { Vec::new() } else { command::checked(output)? };
        let prefix = format!("{tree}:");
        Ok(command::texts(&found).iter().filter_map(|path| path.strip_prefix(&prefix)).map(str::to_owned).collect())
    }

    /// Returns the difference between two trees or commits.
    pub(crate) async fn changes(&self, from: &str, to: &str) -> Result<Vec<Change>> {
        Ok(parse_changes(&self.output(&["diff-tree", "--raw", "-r", "-z", "--no-renames", from, to]).await?))
    }

    /// Returns the same difference as text, also for files that are no text, so that nothing is left out.
    pub(crate) async fn difference(&self, from: &str, to: &str) -> Result<String> {
        let plain =
            ["diff-tree", "--patch", "--text", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", from, to];
        Ok(String::from_utf8_lossy(&self.output(&plain).await?).into_owned())
    }
}

/// Reads `<mode> <type> <id>`, a tab and the path.
fn parse_listed(entry: &[u8]) -> Option<(Vec<u8>, Blob)> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let (header, path) = (std::str::from_utf8(&entry[..tab]).ok()?, entry[tab + 1..].to_owned());
    let mut fields = header.split(' ');
    let (mode, id) = (fields.next()?.to_owned(), fields.nth(1)?.to_owned());
    Some((path, Blob { mode, id }))
}

/// Reads the output of `git diff-tree --raw -z`: for each path `:<mode> <mode> <id> <id> <letter>` and the path.
fn parse_changes(output: &[u8]) -> Vec<Change> {
    let output = String::from_utf8_lossy(output);
    let mut parts = output.split('\0');
    let mut changes = Vec::new();
    while let (Some(header), Some(path)) = (parts.next(), parts.next()) {
        let fields: Vec<_> = header.split(' ').collect();
        let &[_, mode, _, id, letter] = &fields[..] else { continue };
        let kind = match letter {
            "A" => Kind::Added,
            "D" => Kind::Deleted,
            _ => Kind::Changed,
        };
        changes.push(Change { path: path.to_owned(), kind, blob: Blob { mode: mode.to_owned(), id: id.to_owned() } });
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(mode: &str, id: &str) -> Blob {
        Blob { mode: mode.to_owned(), id: id.to_owned() }
    }

    #[test]
    fn differences_are_read() {
        let output = ":000000 100644 0 1 A\0new\0:100644 120000 2 3 T\0a link\0:100755 000000 4 0 D\0gone\0";
        let change = |path: &str, kind, blob| Change { path: path.to_owned(), kind, blob };
        let changes = parse_changes(output.as_bytes());
        assert_eq!(
            changes,
            [
                change("new", Kind::Added, blob("100644", "1")),
                change("a link", Kind::Changed, blob(LINK, "3")),
                change("gone", Kind::Deleted, blob("000000", "0"))
            ]
        );
        assert_eq!(changes.iter().map(Change::is_link).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(parse_changes(b""), []);
    }

    #[test]
    fn files_of_a_tree_are_read() {
        assert_eq!(parse_listed(b"100644 blob 1f\ta b"), Some((b"a b".to_vec(), blob("100644", "1f"))));
        assert_eq!(parse_listed(b""), None);
    }
}
