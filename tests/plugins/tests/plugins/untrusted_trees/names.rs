//! Files of all kinds and names become the tree that git itself would make of them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use changesets::Review;
use fastrand::Rng;
use goondan::json;
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::changesets::{Open, Repository, output};

/// Returns the tree that git makes of a directory without any setting.
fn tree_by_git(repository: &Repository, directory: &Path) -> String {
    let scratch = TempDir::new().unwrap();
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("--git-dir")
            .arg(repository.path(".git"))
            .arg("--work-tree")
            .arg(directory)
            .args(arguments)
            .env("GIT_INDEX_FILE", scratch.path().join("index"))
            .current_dir(directory)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    git(&["read-tree", "HEAD"]);
    git(&["add", "--all"]);
    git(&["write-tree"])
}

/// Changes something in a directory.
fn change(random: &mut Rng, root: &Path) {
    const NAMES: [&str; 8] = ["a", "b", "c.log", "d\ne", "\u{e9} \"x\"", ".gitignore", "target", "-f"];
    let mut path = PathBuf::new();
    for _ in 0..random.usize(1..4) {
        path.push(NAMES[random.usize(..NAMES.len())]);
    }
    if random.u8(..10) == 0 {
        path.push(OsStr::from_bytes(b"\xff"));
    }
    let path = root.join(path);
    let exists = path.symlink_metadata().is_ok();
    if exists && random.u8(..3) == 0 {
        let is_dir = path.symlink_metadata().unwrap().is_dir();
        let removed = if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        return removed.unwrap();
    }
    // Something else than a directory may be in the way.
    if fs::create_dir_all(path.parent().unwrap()).is_err() || path.is_dir() {
        return;
    }
    const TEXTS: [&str; 6] = ["1", "2", "*.log\n", "!c.log\ntarget/\n", "/a\n", "b\r\nc\r\n"];
    fs::write(&path, TEXTS[random.usize(..TEXTS.len())]).unwrap();
    if random.u8(..4) == 0 {
        fs::set_permissions(&path, fs::Permissions::from_mode([0o644, 0o755][random.usize(..2)])).unwrap();
    }
}

#[both_linkages]
#[covers("TREE-01")]
async fn random_files_are_committed_as_git_would_do_it() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    for seed in 0..10 {
        let mut random = Rng::with_seed(seed);
        let open = Open::new(&mut chat).await;
        let reviews = Review::all(open.path("").parent().unwrap()).unwrap();
        for _ in 0..5 {
            for _ in 0..random.usize(1..15) {
                change(&mut random, &open.path(""));
            }
            // The next look has something to compare with.
            reviews[0].diff().await.unwrap();
        }
        let expected = tree_by_git(&repository, &open.path(""));
        let committed = open.commit(&mut chat).await;
        assert!(committed["status"] == "ok" || committed["error"]["code"] == "E_CHANGESET_EMPTY", "{committed}");
        assert_eq!(repository.git(&["rev-parse", "HEAD^{tree}"]), expected, "{seed}: {committed}");
        assert_eq!(repository.git(&["status", "--porcelain"]), "");
        if committed["status"] != "ok" {
            output(&mut chat, "discard", json!({ "changesetId": open.id })).await;
        }
    }
    repository.git(&["fsck", "--strict"]);
}

#[both_linkages]
async fn a_change_of_the_same_size_at_the_same_moment_is_seen() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    let review = &Review::all(open.path("").parent().unwrap()).unwrap()[0];
    for text in ["x\nb\nc\n", "y\nb\nc\n", "z\nb\nc\n"].iter().cycle().take(30) {
        open.write("notes.txt", text);
        let diff = review.diff().await.unwrap();
        assert!(diff.contains(&format!("\n+{}", &text[..1])), "{text:?}: {diff}");
    }
}

#[both_linkages]
async fn links_submodules_and_programs_of_the_repository_stay_what_they_are() {
    let repository = Repository::new();
    symlink("/nowhere", repository.path("link")).unwrap();
    repository.write("program", "#!/bin/sh\n");
    fs::set_permissions(repository.path("program"), fs::Permissions::from_mode(0o755)).unwrap();
    repository.commit();
    let gitlink = format!("160000,{},sub", repository.git(&["rev-parse", "HEAD"]));
    repository.git(&["update-index", "--add", "--cacheinfo", &gitlink]);
    repository.git(&["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "--quiet", "-m", "sub"]);
    fs::create_dir(repository.path("sub")).unwrap();
    let before = repository.git(&["ls-tree", "HEAD", "link", "program", "sub"]);
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    assert_eq!(fs::read_link(open.path("link")).unwrap(), Path::new("/nowhere"));
    assert!(fs::metadata(open.path("program")).unwrap().permissions().mode() & 0o100 != 0);
    // A shell in the work tree sees no change.
    let status = Command::new("git").args(["status", "--porcelain"]).current_dir(open.path("")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "");
    open.write("sub/file", "");
    open.write("notes.txt", "");
    assert_eq!(open.commit(&mut chat).await["summary"]["filesChanged"], json!(["notes.txt"]));
    assert_eq!(repository.git(&["ls-tree", "HEAD", "link", "program", "sub"]), before);
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
}

#[both_linkages]
async fn files_that_git_has_forgotten_are_stored_again() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    open.write("notes.txt", "new\n");
    let review = &Review::all(open.path("").parent().unwrap()).unwrap()[0];
    assert!(review.diff().await.unwrap().contains("\n+new\n"));
    repository.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(open.commit(&mut chat).await["status"], "ok");
    assert_eq!(repository.read("notes.txt"), "new\n");
}
