//! The command `git`, run so that nothing in the repository or in a work tree makes it run another program.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use goondan::{Error, Result};
use tokio::process::Command;
use tokio::time::timeout;

use crate::author::Author;

/// The command is missing, too old, took too long, or failed where it should not.
pub(crate) const GIT: &str = "E_CHANGESET_GIT";
/// How long a command is waited for.
const LIMIT: Duration = Duration::from_secs(120);
/// The first version with `merge-tree --write-tree`.
const OLDEST: (u32, u32) = (2, 38);
/// The mode of a symbolic link and of a submodule.
const LINK: &str = "120000";
const SUBMODULE: &str = "160000";

/// A repository with a checkout, or one of its work trees.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    /// The directory of the checkout.
    pub(crate) root: PathBuf,
    /// What git stores of it. It is always named on the command line, because an agent can write to its work tree, and
    /// a `.git` there could name a repository whose config runs programs.
    directory: PathBuf,
    /// What its work trees have in common. It is the same for a checkout that is not a linked work tree.
    common: PathBuf,
    author: Author,
}

/// One path of a difference between two trees.
#[derive(Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// Whether it is a symbolic link or a submodule now.
    pub(crate) is_link: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Added,
    Changed,
    Deleted,
}

/// What a merge made: a tree, in whose conflicting files both versions are marked.
pub(crate) struct Merged {
    pub(crate) tree: String,
    pub(crate) conflicts: Vec<String>,
}

impl Git {
    /// Finds the repository around `directory`.
    ///
    /// # Errors
    /// `E_CHANGESET_GIT` when git is missing or too old, or when there is no repository with a checkout and a commit.
    pub(crate) async fn find(directory: &Path, author: Author) -> Result<Self> {
        let mut version = Command::new("git");
        version.arg("version");
        check_version(&run(version).await?)?;
        let mut git = Command::new("git");
        git.arg("-C").arg(directory).args(["rev-parse", "--path-format=absolute"]);
        git.args(["--show-toplevel", "--git-dir", "--git-common-dir"]);
        let found = run(git).await?;
        let found = checked(&found).map_err(|error| {
            error.suggest(format!("make a repository of {}, and commit its files", directory.display()))
        })?;
        let found = line(found);
        let mut paths = found.lines().map(PathBuf::from);
        match (paths.next(), paths.next(), paths.next()) {
            (Some(root), Some(directory), Some(common)) => Ok(Self { root, directory, common, author }),
            _ => Err(Error::new(GIT, format!("`git rev-parse` printed `{found}` instead of three paths"))),
        }
    }

    /// Returns the work tree in `root`, which [`Git::add_work_tree`] has made.
    pub(crate) fn work_tree(&self, root: &Path) -> Self {
        let directory = self.common.join("worktrees").join(root.file_name().unwrap_or_default());
        Self { root: root.to_owned(), directory, ..self.clone() }
    }

    /// Returns whether the repository knows this work tree.
    pub(crate) fn is_linked(&self) -> bool {
        self.directory.is_dir()
    }

    /// Returns a file that programs lock while they change the repository.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.common.join("goondan-changesets.lock")
    }

    /// Returns the commit that is checked out.
    pub(crate) async fn head(&self) -> Result<String> {
        self.line(["rev-parse", "--verify", "HEAD^{commit}"]).await
    }

    /// Returns the first parent of a commit.
    pub(crate) async fn parent(&self, commit: &str) -> Result<String> {
        self.line(["rev-parse", "--verify", &format!("{commit}^")]).await
    }

    /// Whether `commit` belongs to the branch that is checked out.
    pub(crate) async fn contains(&self, commit: &str) -> Result<bool> {
        // It fails for a commit that is not there.
        Ok(self.run(["merge-base", "--is-ancestor", commit, "HEAD"]).await?.status.success())
    }

    /// Makes a work tree of `commit`. The last component of `path`, which no other work tree has, is its name.
    pub(crate) async fn add_work_tree(&self, path: &Path, commit: &str) -> Result<()> {
        let add = ["worktree", "add", "--quiet", "--detach"].map(OsStr::new);
        self.line(add.into_iter().chain([path.as_os_str(), OsStr::new(commit)])).await.map(drop)
    }

    /// Removes a work tree and all its changes.
    pub(crate) async fn remove(&self, work_tree: &Self) -> Result<()> {
        // Not by git, which needs the `.git` in it to be as it was made.
        if let Err(error) = fs::remove_dir_all(&work_tree.root)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error.into());
        }
        if !work_tree.directory.exists() {
            return Ok(());
        }
        let remove = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
        self.line(remove.into_iter().chain([work_tree.root.as_os_str()])).await.map(drop)
    }

    /// Stages all files, and returns their tree.
    pub(crate) async fn stage(&self) -> Result<String> {
        self.line(["add", "--all"]).await?;
        self.line(["write-tree"]).await
    }

    /// Applies a unified diff to the files and stages them all. Returns their tree. git refuses paths that lead out of
    /// the work tree.
    pub(crate) async fn apply(&self, patch: &str) -> Result<String> {
        let file = self.root.with_extension("patch");
        fs::write(&file, patch)?;
        let apply = ["apply", "--index", "--recount", "--whitespace=nowarn"].map(OsStr::new);
        let applied = self.line(apply.into_iter().chain([file.as_os_str()])).await;
        fs::remove_file(file)?;
        applied?;
        self.line(["write-tree"]).await
    }

    /// Stages all files, and returns the difference from the commit that is checked out, for people.
    pub(crate) async fn diff(&self) -> Result<String> {
        let tree = self.stage().await?;
        self.difference("HEAD", &tree).await
    }

    /// Makes a commit that no branch has.
    pub(crate) async fn commit(&self, tree: &str, parent: &str, message: &str) -> Result<String> {
        self.line(["commit-tree", tree, "-p", parent, "-m", message]).await
    }

    /// Merges two commits, without touching any file.
    pub(crate) async fn merge(&self, ours: &str, theirs: &str) -> Result<Merged> {
        let output =
            self.run(["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs]).await?;
        // 1 is a merge with conflicts.
        if output.status.code() != Some(1) {
            checked(&output)?;
        }
        let output = String::from_utf8_lossy(&output.stdout);
        let mut parts = output.split('\0').filter(|part| !part.is_empty()).map(str::to_owned);
        let tree = parts.next().ok_or_else(|| Error::new(GIT, "`git merge-tree` printed no tree"))?;
        Ok(Merged { tree, conflicts: parts.collect() })
    }

    /// Changes the files of this work tree to those of `tree`, and then its commit to `commit`.
    pub(crate) async fn set(&self, tree: &str, commit: &str) -> Result<()> {
        self.line(["read-tree", "--reset", "-u", tree]).await?;
        self.line(["update-ref", "--no-deref", "HEAD", commit]).await.map(drop)
    }

    /// Lets the reference `name` keep `commit`; `None` deletes it.
    pub(crate) async fn keep(&self, name: &str, commit: Option<&str>) -> Result<()> {
        match commit {
            Some(commit) => self.line(["update-ref", name, commit]).await.map(drop),
            None => self.line(["update-ref", "-d", name]).await.map(drop),
        }
    }

    /// Returns those of `paths` in which a conflict is marked, as they are staged.
    pub(crate) async fn marked(&self, paths: &[String]) -> Result<Vec<String>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let search = ["--literal-pathspecs", "grep", "--cached", "--files-with-matches", "-z", "-e", "^<<<<<<< ", "--"];
        let output = self.run(search.into_iter().chain(paths.iter().map(String::as_str))).await?;
        // 1 means that there is none.
        let found = if output.status.code() == Some(1) { &[] } else { checked(&output)? };
        let found = String::from_utf8_lossy(found);
        Ok(found.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }

    /// Returns the difference between a commit and a tree.
    pub(crate) async fn changes(&self, from: &str, to: &str) -> Result<Vec<Change>> {
        let output = self.run(["diff-tree", "--raw", "-r", "-z", "--no-renames", "--no-ext-diff", from, to]).await?;
        Ok(parse_changes(checked(&output)?))
    }

    /// Returns the same difference as text.
    pub(crate) async fn difference(&self, from: &str, to: &str) -> Result<String> {
        let plain = ["diff-tree", "--patch", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", from, to];
        Ok(String::from_utf8_lossy(checked(&self.run(plain).await?)?).into_owned())
    }

    /// Moves the branch that is checked out to `commit`, which follows it, and updates the files.
    pub(crate) async fn fast_forward(&self, commit: &str) -> Result<()> {
        self.line(["merge", "--quiet", "--ff-only", "--no-autostash", commit]).await.map(drop)
    }

    /// Returns the files that are not as the last commit has them.
    pub(crate) async fn uncommitted(&self) -> Result<Vec<String>> {
        let output = self.run(["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"]).await?;
        // Two letters, a space and the path.
        let output = String::from_utf8_lossy(checked(&output)?);
        Ok(output.split('\0').filter_map(|entry| entry.get(3..)).map(str::to_owned).collect())
    }

    async fn line(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
        let output = self.run(arguments).await?;
        Ok(line(checked(&output)?))
    }

    async fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Output> {
        let Author { name, email } = &self.author;
        let mut git = Command::new("git");
        let mut directory = OsString::from("--git-dir=");
        directory.push(&self.directory);
        let mut root = OsString::from("--work-tree=");
        root.push(&self.root);
        git.current_dir(&self.root).arg(directory).arg(root);
        // No hook, no signing program, no program that watches files.
        for setting in [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "commit.gpgSign=false",
            "submodule.recurse=false",
            "gc.auto=0",
            &format!("user.name={name}"),
            &format!("user.email={email}"),
        ] {
            git.args(["-c", setting]);
        }
        git.args(arguments);
        run(git).await
    }
}

/// Runs a command. It is never killed, because a git that is killed leaves lock files: it ends by itself if the future
/// is dropped, and also if this program is killed.
async fn run(mut command: Command) -> Result<Output> {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C").stdin(Stdio::null());
    match timeout(LIMIT, command.output()).await {
        Ok(output) => output.map_err(|error| {
            Error::new(GIT, format!("git cannot be started: {error}")).suggest("install git, version 2.38 or later")
        }),
        Err(_) => Err(Error::new(GIT, format!("git has not ended after {LIMIT:?}"))
            .suggest("look at what it waits for, and try again when it has ended")),
    }
}

/// Returns the standard output of a command that succeeded.
fn checked(output: &Output) -> Result<&[u8]> {
    if output.status.success() {
        return Ok(&output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(GIT, format!("git failed: {}", said.trim())))
}

fn line(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end().to_owned()
}

fn check_version(output: &Output) -> Result<()> {
    let version = line(checked(output)?);
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found >= OLDEST {
        return Ok(());
    }
    let (major, minor) = OLDEST;
    Err(Error::new(GIT, format!("`{version}` is too old")).suggest(format!("install git {major}.{minor} or later")))
}

/// Reads what `git diff-tree --raw -z` prints: for each path `:<mode> <mode> <id> <id> <letter>` and the path.
fn parse_changes(output: &[u8]) -> Vec<Change> {
    let output = String::from_utf8_lossy(output);
    let mut parts = output.split('\0');
    let mut changes = Vec::new();
    while let (Some(header), Some(path)) = (parts.next(), parts.next()) {
        let mut fields = header.split(' ');
        let (mode, letter) = (fields.nth(1).unwrap_or_default(), fields.nth(2).unwrap_or_default());
        let kind = match letter {
            "A" => Kind::Added,
            "D" => Kind::Deleted,
            _ => Kind::Changed,
        };
        changes.push(Change { path: path.to_owned(), kind, is_link: [LINK, SUBMODULE].contains(&mode) });
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_read() {
        let output = ":000000 100644 0 1 A\0new\0:100644 120000 2 3 T\0a link\0:100755 000000 4 0 D\0gone\0";
        let change = |path: &str, kind, is_link| Change { path: path.to_owned(), kind, is_link };
        assert_eq!(
            parse_changes(output.as_bytes()),
            [
                change("new", Kind::Added, false),
                change("a link", Kind::Changed, true),
                change("gone", Kind::Deleted, false)
            ]
        );
        assert_eq!(parse_changes(b""), []);
    }
}
