//! The person's repository. Of the programs that its config or the person's config names, git runs none but filters
//! that the person has configured, when the checkout is updated.
// TREE-01

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goondan::{Error, Result};
use process::Environment;

use crate::command::{self, GIT};
use crate::files::Settings;
use crate::objects::Store;

/// No hook, no program that watches files, no other repository, no work that goes on.
const PLAIN: [(&str, &str); 5] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// A repository with a checkout, or one of its work trees.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    /// The directory of the checkout.
    pub(crate) root: PathBuf,
    /// The directory of its repository. It is always named on the command line, because an agent can write to its work
    /// tree, and a `.git` there could name another repository.
    directory: PathBuf,
    /// The directory that its work trees share. It is the same for a checkout that is not a linked work tree.
    common: PathBuf,
    /// `sha1` or `sha256`.
    format: String,
    environment: Environment,
}

/// The configuration of git: for each setting, where it was found, its name and its value.
#[derive(Debug)]
pub(crate) struct Configured(Vec<(String, String, String)>);

impl Configured {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.iter().map(|(scope, name, value)| (&**scope, &**name, &**value))
    }

    fn last(&self, wanted: &str) -> Option<&str> {
        self.iter().filter(|(_, name, _)| *name == wanted).map(|(_, _, value)| value).last()
    }
}

impl Git {
    /// Finds the repository around `directory`.
    ///
    /// # Errors
    /// `E_CHANGESET_GIT` when git is missing or too old, or when there is no repository with a checkout and a commit.
    pub(crate) async fn find(directory: &Path, environment: Environment) -> Result<Self> {
        command::check_version(&environment).await?;
        let mut git = command::bare(&environment);
        git.arg("-C").arg(directory).args(["rev-parse", "--path-format=absolute"]);
        git.args(["--show-toplevel", "--git-dir", "--git-common-dir", "--show-object-format"]);
        let found = command::line(git).await.map_err(|error| {
            error.suggest(format!("make a repository of {}, and commit its files", directory.display()))
        })?;
        let lines: Vec<_> = found.lines().collect();
        let &[root, directory, common, format] = &lines[..] else {
            return Err(Error::new(GIT, format!("`git rev-parse` printed `{found}` instead of three paths")));
        };
        let [root, directory, common] = [root, directory, common].map(PathBuf::from);
        let this = Self { root, directory, common, format: format.into(), environment };
        this.check_root().await?;
        Ok(this)
    }

    /// Checks that the checkout belongs to the repository, and not another directory that its config names.
    async fn check_root(&self) -> Result<()> {
        let named = self.root.join(".git");
        let is_own = match fs::read_to_string(&named) {
            // A directory.
            Err(_) => fs::canonicalize(&named).ok() == fs::canonicalize(&self.directory).ok(),
            Ok(text) => {
                let target = text.trim_end().strip_prefix("gitdir: ").map(|target| self.root.join(target));
                target.is_some_and(|target| fs::canonicalize(target).ok() == fs::canonicalize(&self.directory).ok())
            }
        };
        if is_own {
            return Ok(());
        }
        let (root, directory) = (self.root.display(), self.directory.display());
        Err(Error::new(GIT, format!("{root} is the checkout of {directory} only because `core.worktree` says so"))
            .suggest("remove the setting, or name another repository"))
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

    /// Returns where its objects are.
    pub(crate) fn store(&self) -> Store {
        let (path, shallow) = (self.common.join("objects"), self.common.join("shallow"));
        Store { path, shallow, format: self.format.clone(), environment: self.environment.clone() }
    }

    /// Returns the index, by which a shell in the checkout sees the changes.
    pub(crate) fn index(&self) -> PathBuf {
        self.directory.join("index")
    }

    /// Returns a text that names the repository.
    pub(crate) fn name(&self) -> &[u8] {
        self.common.as_os_str().as_encoded_bytes()
    }

    /// Returns the commit that is checked out.
    pub(crate) async fn head(&self) -> Result<String> {
        self.line(["rev-parse", "--verify", "HEAD^{commit}"]).await
    }

    /// Whether `commit` belongs to the branch that is checked out.
    pub(crate) async fn contains(&self, commit: &str) -> Result<bool> {
        // It fails for a commit that is not there.
        let git = self.git(["merge-base", "--is-ancestor", commit, "HEAD"]);
        Ok(command::run(git, Vec::new()).await?.status.success())
    }

    /// Makes a work tree of `commit` without files. The last component of `path`, which no other work tree has, is its
    /// name.
    pub(crate) async fn add_work_tree(&self, path: &Path, commit: &str) -> Result<()> {
        let mut add = self.git(["worktree", "add", "--quiet", "--detach", "--no-checkout"]);
        add.arg(path).arg(commit);
        command::line(add).await.map(drop)
    }

    /// Removes a work tree, whose files are gone.
    pub(crate) async fn remove(&self, work_tree: &Self) -> Result<()> {
        if !work_tree.directory.exists() {
            return Ok(());
        }
        let mut remove = self.git(["worktree", "remove", "--force", "--force"]);
        remove.arg(&work_tree.root);
        command::line(remove).await.map(drop)
    }

    /// Lets the work tree be one of `commit`.
    pub(crate) async fn set_head(&self, commit: &str) -> Result<()> {
        self.line(["update-ref", "--no-deref", "HEAD", commit]).await.map(drop)
    }

    /// Lets the reference `name` keep `commit`; `None` deletes it.
    pub(crate) async fn keep(&self, name: &str, commit: Option<&str>) -> Result<()> {
        match commit {
            Some(commit) => self.line(["update-ref", name, commit]).await.map(drop),
            None => self.line(["update-ref", "-d", name]).await.map(drop),
        }
    }

    /// Returns the configuration of git.
    pub(crate) async fn configured(&self) -> Result<Configured> {
        let output = command::output(self.git(["config", "--list", "-z", "--show-scope"]), Vec::new()).await?;
        let texts = command::texts(&output);
        let settings = texts.chunks_exact(2).map(|pair| {
            // A setting without a value is a true one.
            let (name, value) = pair[1].split_once('\n').unwrap_or((&pair[1], "true"));
            (pair[0].clone(), name.to_owned(), value.to_owned())
        });
        Ok(Configured(settings.collect()))
    }

    /// Returns the person's settings about files.
    pub(crate) async fn settings(&self) -> Result<Settings> {
        let configured = self.configured().await?;
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let ignored = match configured.last("core.excludesfile") {
            Some(path) => match path.strip_prefix("~/") {
                Some(below) => home.join(below),
                None => self.root.join(path),
            },
            None => {
                let config = std::env::var_os("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
                config.join("git/ignore")
            }
        };
        let modes = !configured.last("core.filemode").is_some_and(|value| ["false", "no", "off", "0"].contains(&value));
        Ok(Settings { ignored: vec![ignored, self.common.join("info/exclude")], modes })
    }

    /// Returns the filters of those of `paths` that have one, by the attributes of the commit that is checked out.
    pub(crate) async fn filters_of(&self, paths: &[&str]) -> Result<Vec<(String, String)>> {
        let input = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"]).collect::<Vec<_>>().concat();
        let output =
            command::output(self.checkout(&[], ["check-attr", "--cached", "--stdin", "-z", "filter"]), input).await?;
        let texts = command::texts(&output);
        let filters = texts.chunks_exact(3).map(|parts| (parts[0].clone(), parts[2].clone()));
        Ok(filters.filter(|(_, filter)| !["unspecified", "unset", "set"].contains(&&**filter)).collect())
    }

    /// Moves the branch that is checked out to `commit`, which follows it, and updates the files.
    pub(crate) async fn fast_forward(&self, commit: &str, settings: &[(String, String)]) -> Result<()> {
        let merge = ["merge", "--quiet", "--ff-only", "--no-autostash", "--no-verify-signatures"];
        let mut merge = self.checkout(settings, merge);
        // Files that the person's git ignores would be overwritten.
        merge.args(["--no-overwrite-ignore", "--no-squash", commit]);
        command::line(merge).await.map(drop)
    }

    /// Returns the files that are not as the last commit has them.
    pub(crate) async fn uncommitted(&self, settings: &[(String, String)]) -> Result<Vec<String>> {
        let status =
            ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"];
        let output = command::output(self.checkout(settings, status), Vec::new()).await?;
        // Two letters, a space and the path.
        Ok(command::texts(&output).iter().filter_map(|entry| entry.get(3..)).map(str::to_owned).collect())
    }

    async fn line<const N: usize>(&self, arguments: [&str; N]) -> Result<String> {
        command::line(self.git(arguments)).await
    }

    /// Returns the command for the objects of git, away from all files of a work tree.
    fn git<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut git = command::git(&self.environment, &self.directory);
        git.current_dir(&self.directory);
        command::configure(&mut git, PLAIN);
        git.args(arguments);
        git
    }

    /// Returns the command for the files of the person's checkout, with more settings.
    fn checkout<const N: usize>(&self, settings: &[(String, String)], arguments: [&str; N]) -> Command {
        let mut git = command::git(&self.environment, &self.directory);
        let mut root = OsString::from("--work-tree=");
        root.push(&self.root);
        git.current_dir(&self.root).arg(root);
        let settings = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        command::configure(&mut git, PLAIN.into_iter().chain(settings));
        git.args(arguments);
        git
    }
}
