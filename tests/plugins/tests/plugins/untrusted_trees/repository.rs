//! Repositories whose own settings name programs, such as one that came as an archive.

use std::fs;
use std::process::Command;

use changesets::Review;
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use super::trap::Trap;
use crate::changesets::{Open, Repository, output};
use crate::linkage::WithPlugin;

/// A repository with files of two filters and a submodule.
fn repository() -> Repository {
    let repository = Repository::new();
    repository.write("filtered.txt", "as it is\n");
    repository.write("included.txt", "as it is\n");
    repository.write("sub/file", "inside\n");
    let sub = repository.path("sub");
    let commit = "git init -q && git add -A && git -c user.name=me -c user.email=me@localhost commit -qm sub";
    assert!(Command::new("sh").args(["-c", commit]).current_dir(&sub).status().unwrap().success());
    repository.commit();
    repository
}

/// Commits a file as a person does, before the trap is set.
fn commit_meanwhile(repository: &Repository, file: &str, text: &str) {
    let (config, aside) = (repository.path(".git/config"), repository.path(".git/config.aside"));
    let attributes = repository.path(".git/info/attributes");
    let hooks = (repository.path(".git/hooks"), repository.path(".git/hooks.aside"));
    fs::rename(&config, &aside).unwrap();
    fs::rename(&hooks.0, &hooks.1).unwrap();
    let kept = fs::read(&attributes).unwrap();
    fs::remove_file(&attributes).unwrap();
    repository.write(file, text);
    repository.git(&["add", file]);
    repository.git(&["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "--quiet", "-m", "by hand"]);
    fs::rename(&aside, &config).unwrap();
    fs::rename(&hooks.1, &hooks.0).unwrap();
    fs::write(&attributes, kept).unwrap();
}

fn reviews(open: &Open) -> Vec<Review> {
    Review::all(open.path("").parent().unwrap()).unwrap()
}

#[both_linkages]
#[covers("TREE-01")]
async fn no_setting_of_the_repository_starts_a_program() {
    let (repository, trap) = (repository(), Trap::new());
    trap.set(&repository);
    let mut chat = repository.chat(json!({ "check": ["true"] })).await;
    let (one, two) = (Open::new(&mut chat).await, Open::new(&mut chat).await);
    assert_eq!(fs::read_to_string(one.path("filtered.txt")).unwrap(), "as it is\n");
    assert!(one.path("sub").is_dir() && !one.path("sub/file").exists());
    one.write("notes.txt", "a\nb\nc\nd\n");
    one.write("new.txt", "new\n");
    let diff = reviews(&one).iter().find(|review| review.id() == one.id).unwrap().diff().await.unwrap();
    assert!(diff.contains("\n+d\n") && diff.contains("\n+new\n") && !diff.contains("filtered"), "{diff}");

    // A merge, and one with a conflict.
    commit_meanwhile(&repository, "bundle/prompt.md", "Be long.\n");
    trap.assert_untouched();
    assert_eq!(one.commit(&mut chat).await["summary"]["filesChanged"], json!(["notes.txt"]));
    two.write("notes.txt", "z\n");
    assert_eq!(two.refused(&mut chat).await.1, "E_CHANGESET_CONFLICT");
    two.write("notes.txt", "a\nz\n");
    repository.write("notes.txt", "mine\n");
    assert_eq!(two.refused(&mut chat).await.1, "E_CHANGESET_UNCOMMITTED");
    repository.write("notes.txt", "a\nb\nc\nd\n");
    let committed = two.commit(&mut chat).await;
    assert_eq!(committed["summary"]["filesChanged"], json!(["notes.txt"]), "{committed}");
    output(&mut chat, "list", json!({})).await;
    let three = Open::new(&mut chat).await;
    output(&mut chat, "discard", json!({ "changesetId": three.id })).await;
    assert_eq!(repository.read("notes.txt"), "a\nz\n");
    trap.assert_set(&repository.path(""), &["status"]);
}

#[both_linkages]
#[covers("TREE-01")]
async fn a_proposal_starts_no_program() {
    let (repository, trap) = (repository(), Trap::new());
    trap.set(&repository);
    let root = repository.path("bundle");
    let agent = |agent: goondan::agent::AgentBuilder| {
        agent.bundle_root(root).one_of("changesets", "live-config", json!({ "check": ["grep", "long", "prompt.md"] }))
    };
    let mut chat = Chat::builder().agent(agent).start().await.unwrap();
    let patch = "--- a/bundle/prompt.md\n+++ b/bundle/prompt.md\n@@ -1 +1 @@\n-Be brief.\n+Be long.\n";
    let arguments = json!({ "patch": patch, "reason": "better" });
    let result = chat.call("live-config__propose", arguments).await.unwrap();
    assert_eq!(result.output().unwrap()["status"], "proposed", "{result:?}");
    trap.assert_untouched();
    trap.assert_set(&repository.path(""), &["add", "--all"]);
}

#[both_linkages]
#[covers("TREE-01")]
async fn a_file_with_a_filter_of_the_repository_is_not_committed_by_a_changeset() {
    let (repository, trap) = (repository(), Trap::new());
    trap.set(&repository);
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    let before = repository.head();
    open.write("filtered.txt", "changed\n");
    open.write("included.txt", "changed\n");
    open.write("notes.txt", "changed\n");
    let files = json!(["filtered.txt", "included.txt"]);
    let refused = ("rejected".to_owned(), "E_CHANGESET_FILTER".to_owned(), files);
    assert_eq!(open.refused(&mut chat).await, refused);
    assert_eq!(repository.head(), before);
    // The person can merge it.
    let kept = format!("refs/goondan/{}:filtered.txt", open.id);
    assert_eq!(repository.git(&["cat-file", "blob", &kept]), "changed");
    open.write("filtered.txt", "as it is\n");
    fs::remove_file(open.path("included.txt")).unwrap();
    let committed = open.commit(&mut chat).await;
    assert_eq!(committed["status"], "ok", "{committed}");
    assert_eq!(
        (repository.read("notes.txt"), repository.read("filtered.txt")),
        ("changed\n".into(), "as it is\n".into())
    );
    trap.assert_set(&repository.path(""), &["status"]);
}

#[both_linkages]
#[covers("TREE-01")]
async fn a_checkout_elsewhere_that_the_config_names_is_not_written() {
    let (repository, elsewhere) = (Repository::new(), tempfile::TempDir::new().unwrap());
    fs::write(elsewhere.path().join("mine"), "mine").unwrap();
    let parent = repository.path("").parent().unwrap().to_owned();
    for root in [elsewhere.path(), &parent] {
        repository.git(&["config", "core.worktree", root.to_str().unwrap()]);
        let bundle = repository.path("bundle");
        let agent = |agent: goondan::agent::AgentBuilder| {
            agent.bundle_root(bundle).plugin("changesets", "changesets", json!({}))
        };
        let error = Chat::builder().agent(agent).start().await.unwrap_err().report().to_string();
        assert!(error.contains("core.worktree"), "{error}");
        repository.git(&["config", "--unset", "core.worktree"]);
    }
}

#[both_linkages]
async fn a_reference_shows_no_object_in_place_of_another() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    open.write("notes.txt", "hidden\n");
    repository.write("harmless", "a\nb\nc\n");
    let hidden = repository.git(&["hash-object", "-w", open.path("notes.txt").to_str().unwrap()]);
    repository.git(&["replace", &hidden, &repository.git(&["rev-parse", "HEAD:notes.txt"])]);
    let diff = reviews(&open)[0].diff().await.unwrap();
    assert!(diff.contains("\n+hidden\n"), "{diff}");
    let told: Value = open.commit(&mut chat).await;
    assert_eq!(told["summary"]["filesChanged"], json!(["notes.txt"]));
}
