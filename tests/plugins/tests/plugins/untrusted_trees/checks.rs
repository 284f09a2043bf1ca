//! The directory in which changesets are checked has what is committed, and nothing else of an agent.

use goondan::json;
use goondan_covers::{both_linkages, covers};

use crate::changesets::{Open, Repository};

/// Commits, and returns what the check has printed.
async fn printed(open: &Open, chat: &mut goondan::testing::Chat) -> String {
    let answer = open.commit(chat).await;
    assert_eq!(answer["error"]["code"], "E_CHANGESET_CHECK", "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    message.split_once('\n').unwrap().1.to_owned()
}

#[both_linkages]
#[covers("TREE-01")]
async fn a_check_sees_the_files_that_are_committed_and_ignored_ones_of_earlier_checks() {
    let repository = Repository::new();
    repository.write(".gitignore", "*.ignored\nbuild/\n");
    repository.commit();
    let script = "cd .. && find . -type f | LC_ALL=C sort | tr '\\n' ' ' && mkdir -p build && touch build/made left \
                  bundle/left && echo changed > notes.txt && false";
    let mut chat = repository.chat(json!({ "check": ["sh", "-c", script] })).await;
    let open = Open::new(&mut chat).await;
    // Without it, a check could be made to succeed by what is not committed.
    open.write("agent.ignored", "");
    open.write("build/agent", "");
    open.write("new.txt", "");
    let files = "./.gitignore ./bundle/goondan.yaml ./bundle/prompt.md ./new.txt ./notes.txt";
    assert_eq!(printed(&open, &mut chat).await, files);
    std::fs::rename(open.path("new.txt"), open.path("newer.txt")).unwrap();
    // What was tracked in an earlier check is not left as an ignored file.
    open.write(".gitignore", "*.ignored\nbuild/\nnew.txt\n");
    let files = "./.gitignore ./build/made ./bundle/goondan.yaml ./bundle/prompt.md ./newer.txt ./notes.txt";
    assert_eq!(printed(&open, &mut chat).await, files);
    let other = Open::new(&mut chat).await;
    other.write("notes.txt", "d\n");
    let files = "./.gitignore ./build/made ./bundle/goondan.yaml ./bundle/prompt.md ./notes.txt";
    assert_eq!(printed(&other, &mut chat).await, files);
}

#[both_linkages]
async fn what_a_check_has_changed_is_as_it_is_committed_in_the_next_one() {
    let repository = Repository::new();
    let script = "cat prompt.md && echo changed > prompt.md && false";
    let mut chat = repository.chat(json!({ "check": ["sh", "-c", script] })).await;
    let open = Open::new(&mut chat).await;
    open.write("new.txt", "");
    for _ in 0..3 {
        assert_eq!(printed(&open, &mut chat).await, "Be brief.");
    }
}

#[both_linkages]
async fn the_setup_runs_before_the_first_check_until_it_succeeds() {
    let repository = Repository::new();
    repository.write(".gitignore", "installed\n");
    repository.commit();
    let setup = json!(["sh", "-c", "test -e works && echo once >> installed || { echo broken; false; }"]);
    let config = json!({ "setup": setup, "check": ["sh", "-c", "cat installed; false"] });
    let mut chat = repository.chat(config).await;
    let open = Open::new(&mut chat).await;
    open.write("bundle/other", "");
    let answer = open.commit(&mut chat).await;
    assert_eq!(answer["error"]["message"], "the setup failed: exit status: 1\nbroken");
    open.write("bundle/works", "");
    for _ in 0..2 {
        assert_eq!(printed(&open, &mut chat).await, "once");
    }
}
