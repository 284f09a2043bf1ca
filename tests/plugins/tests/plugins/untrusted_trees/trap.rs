//! A program that leaves a mark when it is started, and settings that name it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::changesets::Repository;

/// The program.
pub(super) struct Trap {
    directory: TempDir,
}

impl Trap {
    pub(super) fn new() -> Self {
        let this = Self { directory: TempDir::new().unwrap() };
        let text = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", this.mark().display());
        fs::write(this.program(), text).unwrap();
        fs::set_permissions(this.program(), fs::Permissions::from_mode(0o755)).unwrap();
        this
    }

    pub(super) fn program(&self) -> String {
        self.directory.path().join("program").to_str().unwrap().to_owned()
    }

    fn mark(&self) -> PathBuf {
        self.directory.path().join("mark")
    }

    pub(super) fn assert_untouched(&self) {
        assert!(!self.mark().exists(), "{}", fs::read_to_string(self.mark()).unwrap());
    }

    /// Checks that git itself would start the program, in a directory that has not been touched until now.
    pub(super) fn assert_set(&self, directory: &Path, arguments: &[&str]) {
        self.assert_untouched();
        let ended = Command::new("git").current_dir(directory).args(arguments).output().unwrap();
        assert!(self.mark().exists(), "{arguments:?} starts nothing: {ended:?}");
        fs::remove_file(self.mark()).unwrap();
    }

    /// Returns a config with each setting by which git starts a program, or finds more of them.
    #[expect(clippy::too_many_lines, reason = "a table")]
    pub(super) fn config(&self, elsewhere: &Path) -> String {
        let settings = "
[core]
	fsmonitor = PROGRAM
	hooksPath = HOOKS
	editor = PROGRAM
	pager = PROGRAM
	sshCommand = PROGRAM
	askPass = PROGRAM
	gitProxy = PROGRAM
	alternateRefsCommand = PROGRAM
	attributesFile = ATTRIBUTES
[filter \"trap\"]
	clean = PROGRAM
	smudge = PROGRAM
	process = PROGRAM
	required = true
[diff]
	external = PROGRAM
	submodule = diff
[diff \"trap\"]
	command = PROGRAM
	textconv = PROGRAM
[merge]
	tool = trap
	verifySignatures = true
[merge \"trap\"]
	driver = PROGRAM
[mergetool \"trap\"]
	cmd = PROGRAM
[difftool \"trap\"]
	cmd = PROGRAM
[gpg]
	program = PROGRAM
[gpg \"ssh\"]
	program = PROGRAM
	defaultKeyCommand = PROGRAM
[gpg \"x509\"]
	program = PROGRAM
[commit]
	gpgSign = true
[tag]
	gpgSign = true
[credential]
	helper = !PROGRAM
[sequence]
	editor = PROGRAM
[interactive]
	diffFilter = PROGRAM
[pager]
	status = PROGRAM
	diff = PROGRAM
	rev-parse = PROGRAM
	config = PROGRAM
[uploadpack]
	packObjectsHook = PROGRAM
[remote \"origin\"]
	url = ext::PROGRAM
	uploadpack = PROGRAM
	receivepack = PROGRAM
	vcs = trap
	promisor = true
[protocol \"ext\"]
	allow = always
[submodule]
	recurse = true
[submodule \"sub\"]
	update = !PROGRAM
	active = true
	url = ext::PROGRAM
[alias]
	status = !PROGRAM
	version = !PROGRAM
	rev-parse = !PROGRAM
[trailer \"trap\"]
	command = PROGRAM
	cmd = PROGRAM
[web]
	browser = trap
[browser \"trap\"]
	cmd = PROGRAM
[man \"trap\"]
	cmd = PROGRAM
[sendemail]
	toCmd = PROGRAM
[instaweb]
	httpd = PROGRAM
[rerere]
	enabled = true
[gc]
	auto = 1
[include]
	path = INCLUDED
[extensions]
	worktreeConfig = true
";
        let included = elsewhere.join("included");
        fs::write(&included, format!("[filter \"included\"]\n\tclean = {}\n", self.program())).unwrap();
        let hooks = elsewhere.join("hooks");
        fs::create_dir_all(&hooks).unwrap();
        for hook in HOOKS {
            fs::copy(self.program(), hooks.join(hook)).unwrap();
        }
        let attributes = elsewhere.join("attributes");
        fs::write(&attributes, "* diff=trap merge=trap\nfiltered.txt filter=trap\nincluded.txt filter=included\n")
            .unwrap();
        let paths = [("HOOKS", hooks), ("ATTRIBUTES", attributes), ("INCLUDED", included)];
        let settings = settings.replace("PROGRAM", &self.program());
        paths.iter().fold(settings, |text, (name, path)| text.replace(name, path.to_str().unwrap()))
    }

    /// Gives a repository all settings, hooks and attributes, and a file that git would clean at any look at it.
    pub(super) fn set(&self, repository: &Repository) {
        let git = repository.path(".git");
        let config = fs::read_to_string(git.join("config")).unwrap();
        fs::write(git.join("config"), config + &self.config(&git)).unwrap();
        let program = self.program();
        fs::write(git.join("config.worktree"), format!("[filter \"trap\"]\n\tclean = {program}\n")).unwrap();
        fs::create_dir_all(git.join("info")).unwrap();
        fs::copy(git.join("attributes"), git.join("info/attributes")).unwrap();
        fs::create_dir_all(git.join("hooks")).unwrap();
        for hook in HOOKS {
            fs::copy(&program, git.join("hooks").join(hook)).unwrap();
        }
        let sub = repository.path("sub/.git/config");
        fs::write(&sub, fs::read_to_string(&sub).unwrap() + &self.config(&git)).unwrap();
        // Their times are other ones, so that git has to look at their contents.
        repository.write("filtered.txt", &repository.read("filtered.txt"));
        repository.write("included.txt", &repository.read("included.txt"));
    }
}

const HOOKS: [&str; 13] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "reference-transaction",
];
