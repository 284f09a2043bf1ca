//! What an agent writes into its work tree.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use changesets::Review;
use goondan::json;
use goondan::testing::Chat;
use goondan_covers::{both_linkages, covers};

use super::trap::Trap;
use crate::call::{call, refused};
use crate::changesets::{Open, Repository, write};
use crate::linkage::WithPlugin;

fn review(open: &Open) -> Review {
    let all = Review::all(open.path("").parent().unwrap()).unwrap();
    all.into_iter().find(|review| review.id() == open.id).unwrap()
}

/// Makes a directory a repository with one commit, whose settings name a program, as texts alone can do it.
fn make_repository(directory: &Path, trap: &Trap) {
    write(&directory.join("file"), "inside\n");
    let commit = "git init -q && git add -A && git -c user.name=me -c user.email=me@localhost commit -qm inside";
    assert!(Command::new("sh").args(["-c", commit]).current_dir(directory).status().unwrap().success());
    let config = fs::read_to_string(directory.join(".git/config")).unwrap();
    fs::write(directory.join(".git/config"), config + &trap.config(&directory.join(".git"))).unwrap();
    write(&directory.join(".gitattributes"), "* filter=trap\n");
    // Of the same size, so that only the content tells.
    write(&directory.join("file"), "INSIDE\n");
}

#[both_linkages]
#[covers("TREE-01")]
async fn a_repository_in_a_work_tree_is_neither_entered_nor_committed() {
    let (repository, trap) = (Repository::new(), Trap::new());
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    make_repository(&open.path("x"), &trap);
    let forbidden = ("rejected".to_owned(), "E_CHANGESET_FILES".to_owned(), json!(["x/.git"]));
    for _ in 0..2 {
        assert_eq!(open.refused(&mut chat).await, forbidden);
        let error = review(&open).diff().await.unwrap_err().to_string();
        assert!(error.contains("x/.git"), "{error}");
    }
    trap.assert_untouched();
    // Not even if the rest of it was committed once.
    fs::rename(open.path("x/.git"), repository.path(".git/aside")).unwrap();
    assert_eq!(open.commit(&mut chat).await["status"], "ok");
    let open = Open::new(&mut chat).await;
    fs::rename(repository.path(".git/aside"), open.path("x/.git")).unwrap();
    assert_eq!(open.refused(&mut chat).await.1, "E_CHANGESET_FILES");
    trap.assert_set(&open.path("x"), &["status"]);
    // It is the agent's own business in a directory that is ignored.
    open.write(".gitignore", "x/\n");
    assert_eq!(open.commit(&mut chat).await["summary"]["filesAdded"], json!([".gitignore"]));
}

#[both_linkages]
#[covers("TREE-01")]
async fn no_form_of_the_name_is_committed() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    for path in [".GIT/config", "x/.Git", "x/git~1/config", "x/.git ", "x/.git::$DATA", "x/.g\u{200c}it", "x/.git\\a"] {
        open.write(path, "");
        let (status, code, files) = open.refused(&mut chat).await;
        assert_eq!((&*status, &*code), ("rejected", "E_CHANGESET_FILES"), "{path}");
        assert_eq!(files.as_array().unwrap().len(), 1, "{path}");
        fs::remove_file(open.path(path)).unwrap();
        if let Some(parent) = Path::new(path).parent().filter(|parent| parent.components().count() > 0) {
            fs::remove_dir_all(open.path(parent.to_str().unwrap())).unwrap();
        }
    }
    open.write(".gitmodules", "");
    assert_eq!(open.commit(&mut chat).await["status"], "ok");
}

#[both_linkages]
#[covers("TREE-01")]
async fn another_repository_in_place_of_the_own_one_is_not_used() {
    let (repository, trap) = (Repository::new(), Trap::new());
    let mut chat = repository.chat(json!({})).await;
    let (open, other) = (Open::new(&mut chat).await, Open::new(&mut chat).await);
    make_repository(&repository.path(".git/elsewhere"), &trap);
    fs::remove_file(open.path(".git")).unwrap();
    open.write(".git", &format!("gitdir: {}\n", repository.path(".git/elsewhere/.git").display()));
    open.write("notes.txt", "new\n");
    assert!(review(&open).diff().await.unwrap().ends_with("\n+new\n"));
    assert_eq!(open.commit(&mut chat).await["summary"]["filesChanged"], json!(["notes.txt"]));
    fs::remove_file(other.path(".git")).unwrap();
    make_repository(&other.path(""), &trap);
    review(&other).discard().await.unwrap();
    trap.assert_set(&repository.path(".git/elsewhere"), &["status"]);
}

#[both_linkages]
#[covers("TREE-01")]
async fn attributes_hide_nothing_from_a_person() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    open.write(
        ".gitattributes",
        "* -diff -text binary export-ignore\n*.md linguist-generated conflict-marker-size=3\n",
    );
    open.write("notes.txt", "evil\n");
    open.write("binary", "\0evil too\n");
    let diff = review(&open).diff().await.unwrap();
    for line in ["\n-a\n-b\n-c\n+evil\n", "\n+\0evil too\n", "\n+* -diff"] {
        assert!(diff.contains(line), "{diff}");
    }
    // The marks of a conflict are those that git makes without attributes.
    repository.write("notes.txt", "mine\n");
    repository.commit();
    assert_eq!(open.refused(&mut chat).await.1, "E_CHANGESET_CONFLICT");
    assert!(fs::read_to_string(open.path("notes.txt")).unwrap().contains("\n=======\nevil\n>>>>>>> "));
}

#[both_linkages]
#[covers("TREE-01")]
async fn no_file_outside_of_the_work_tree_is_written_or_read_through_a_link() {
    let (repository, outside) = (Repository::new(), tempfile::TempDir::new().unwrap());
    repository.write("directory/file", "old\n");
    repository.commit();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    repository.write("directory/file", "new\n");
    repository.write("directory/more", "new\n");
    repository.commit();
    // What the merge writes would go there.
    write(&outside.path().join("file"), "mine\n");
    fs::rename(open.path("directory"), open.path("aside")).unwrap();
    symlink(outside.path(), open.path("directory")).unwrap();
    let (status, code, _) = open.refused(&mut chat).await;
    assert!(status != "ok" && !code.is_empty(), "{status} {code}");
    assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), "mine\n");
    assert!(!outside.path().join("more").exists());
}

#[both_linkages]
#[covers("TREE-01")]
async fn the_tools_for_files_make_no_repository_in_a_work_tree() {
    let repository = Repository::new();
    let root = repository.path("bundle");
    for config in [json!({ "workTrees": true }), json!({ "workTrees": true, "protect": [] })] {
        let root = root.clone();
        let mut chat = Chat::builder()
            .agent(|agent| {
                let agent = agent.bundle_root(root).plugin("file-system", "file-system", config);
                agent.plugin("changesets", "changesets", json!({}))
            })
            .script([goondan::model::ScriptItem::say("fine").repeat()])
            .start()
            .await
            .unwrap();
        call(&mut chat, "changesets__open", json!({})).await;
        for path in ["x/.git/config", ".git", "x/.GIT/HEAD", "x/git~1/HEAD", "x/.git\u{200c}/HEAD"] {
            let arguments = json!({ "path": path, "content": "x" });
            let (code, text) = refused(&mut chat, "file-system__write", arguments).await;
            assert!(code == "E_FILE_PROTECTED" && text.contains(path), "{text}");
        }
        assert_eq!(refused(&mut chat, "file-system__mkdir", json!({ "path": "x/.git" })).await.0, "E_FILE_PROTECTED");
        // A commit is the review of everything else.
        for path in ["goondan.yaml", ".bashrc"] {
            call(&mut chat, "file-system__write", json!({ "path": path, "content": "x" })).await;
        }
        call(&mut chat, "changesets__discard", json!({})).await;
    }
}
