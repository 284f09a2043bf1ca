//! Open skills after the conversation was closed, and after its process was killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use goondan::json;
use goondan::store::FileStore;
use goondan::testing::{Chat, ChatBuilder};
use goondan_covers::both_linkages;

use super::support::{Repo, builder, call, defaults, shown};

/// The directory of the conversation that the child holds.
const DIRECTORY: &str = "GOONDAN_SKILLS_TEST";

fn stored(root: &Path) -> ChatBuilder {
    builder(root, defaults()).agent(|agent| agent.store(FileStore::open(root.join("store")).unwrap()))
}

async fn assert_open(chat: &Chat) {
    chat.say("hello").await.unwrap();
    assert_eq!(shown(chat, "Run `./deploy.sh`").len(), 1, "{:?}", chat.last_request());
}

#[both_linkages]
async fn an_open_skill_is_open_when_the_conversation_is_opened_again() {
    let repo = Repo::with_two();
    let mut chat = stored(&repo.path("")).start().await.unwrap();
    call(&mut chat, "open", json!({ "name": "deploy" })).await;
    chat.close().await.unwrap();
    drop(chat);
    assert_open(&stored(&repo.path("")).start().await.unwrap()).await;
}

/// What the test below runs in a process of its own; nothing without the variable.
#[both_linkages]
async fn child() {
    if let Some(root) = std::env::var_os(DIRECTORY) {
        let mut chat = stored(Path::new(&root)).start().await.unwrap();
        call(&mut chat, "open", json!({ "name": "deploy" })).await;
        println!("opened");
        std::future::pending::<()>().await;
    }
}

#[both_linkages]
async fn an_open_skill_is_open_after_the_process_was_killed() {
    let repo = Repo::with_two();
    let case =
        std::thread::current().name().unwrap().replace("an_open_skill_is_open_after_the_process_was_killed", "child");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", &case]).env(DIRECTORY, repo.path("")).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("opened")), "the child has ended");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_open(&stored(&repo.path("")).start().await.unwrap()).await;
}
