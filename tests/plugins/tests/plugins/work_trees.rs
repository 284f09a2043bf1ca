//! Tools for files and commands in the work trees that another extension makes.

use std::fs;
use std::path::Path;
use std::process::Command;

use goondan::event::ExtensionShown;
use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::call::{call, refused};
use crate::linkage::WithPlugin;

/// Returns a repository with one file and one commit.
fn repository() -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("a.txt"), "alpha\n").unwrap();
    let commands = "git init -q && git add -A && git -c user.name=me -c user.email=me@localhost commit -qm 'by hand'";
    assert!(Command::new("sh").args(["-c", commands]).current_dir(directory.path()).status().unwrap().success());
    directory
}

async fn chat(repository: &Path, work_trees: bool, script: Vec<ScriptItem>) -> Chat {
    let tools = json!({ "workTrees": work_trees });
    let changesets = json!({ "repository": repository });
    let chat = Chat::builder().agent(|agent| {
        let agent = agent.plugin("file-system", "file-system", tools.clone()).plugin("bash", "bash", tools);
        agent.plugin("changesets", "changesets", changesets)
    });
    chat.script(script).start().await.unwrap()
}

async fn read(chat: &mut Chat) -> Value {
    call(chat, "file-system__read", json!({ "path": "a.txt" })).await["content"].clone()
}

#[both_linkages]
#[covers("LEGACY-EVENTS-03")]
async fn relative_paths_and_commands_start_in_the_open_changeset() {
    let repository = repository();
    let mut chat = chat(
        repository.path(),
        true,
        vec![
            ScriptItem::call("changesets__open", json!({})),
            ScriptItem::call("file-system__write", json!({ "path": "a.txt", "content": "beta\n" })),
            ScriptItem::call("bash__exec", json!({ "command": "cat a.txt >> b.txt" })),
            ScriptItem::say("fine").repeat(),
        ],
    )
    .await;
    chat.say("change it").await.unwrap();
    assert_eq!(read(&mut chat).await, "beta\n");
    let listed = call(&mut chat, "changesets__list", json!({})).await;
    let tree = listed["changesets"][0]["workdir"].as_str().unwrap().to_owned();
    assert_eq!(fs::read_to_string(Path::new(&tree).join("b.txt")).unwrap(), "beta\n");
    chat.restart().await.unwrap();
    let ended = call(&mut chat, "bash__exec", json!({ "command": "cat b.txt" })).await;
    assert_eq!((&ended["stdout"], &ended["cwd"]), (&json!("beta\n"), &json!(tree)));

    let committed = call(&mut chat, "changesets__commit", json!({})).await;
    assert_eq!(committed["status"], "ok", "{committed}");
    let told = chat.events(ExtensionShown::NAME).last().unwrap().payload::<ExtensionShown>().unwrap().shown.to_string();
    assert!(told.contains("+++ b/a.txt\n@@ -1 +1 @@\n-alpha\n+beta\n"), "{told}");
    assert!(told.ends_with("--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+beta\n"), "{told}");
    assert_eq!(fs::read_to_string(repository.path().join("b.txt")).unwrap(), "beta\n");
    // Nothing is open, so everything is as without changesets.
    let (code, _) = refused(&mut chat, "file-system__read", json!({ "path": "a.txt" })).await;
    assert_eq!(code, "E_FILE_IO");
    let path = Path::new(&tree).join("a.txt");
    assert_eq!(refused(&mut chat, "file-system__read", json!({ "path": path })).await.0, "E_FILE_OUTSIDE");
    let ended = call(&mut chat, "bash__exec", json!({ "command": "ls" })).await;
    assert_eq!(ended["stdout"], "");
}

#[both_linkages]
async fn work_trees_are_not_used_unless_the_config_says_so() {
    let repository = repository();
    let mut chat = chat(repository.path(), false, vec![ScriptItem::say("fine").repeat()]).await;
    let opened = call(&mut chat, "changesets__open", json!({})).await;
    let path = Path::new(opened["workdir"].as_str().unwrap()).join("a.txt");
    assert_eq!(refused(&mut chat, "file-system__read", json!({ "path": path })).await.0, "E_FILE_OUTSIDE");
    let ended = call(&mut chat, "bash__exec", json!({ "command": "ls" })).await;
    assert_eq!(ended["stdout"], "");
}

#[both_linkages]
async fn a_changeset_need_not_be_named_if_it_is_the_only_one() {
    let repository = repository();
    let mut chat = chat(repository.path(), true, vec![ScriptItem::say("fine").repeat()]).await;
    assert_eq!(refused(&mut chat, "changesets__discard", json!({})).await.0, "E_CHANGESET_UNKNOWN");
    let first = call(&mut chat, "changesets__open", json!({})).await;
    call(&mut chat, "changesets__open", json!({})).await;
    let (code, text) = refused(&mut chat, "changesets__discard", json!({})).await;
    assert_eq!(code, "E_CHANGESET_UNKNOWN");
    assert!(text.contains("2 open changesets"), "{text}");
    call(&mut chat, "changesets__discard", json!({ "changesetId": first["changesetId"] })).await;
    assert_eq!(read(&mut chat).await, "alpha\n");
    let discarded = chat.call("changesets__discard", json!({})).await.unwrap();
    assert!(discarded.output().is_some(), "{discarded:?}");
    assert_eq!(call(&mut chat, "changesets__list", json!({})).await["changesets"], json!([]));
}
