//! LEGACY-LIVECONFIG: the extension `live-config` with real repositories.

use std::path::{Path, PathBuf};

use changesets::{Review, Status};
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use crate::changesets::Repository;
use crate::linkage::WithPlugin;

async fn chat(repository: &Repository, config: Value) -> Chat {
    let root = repository.path("bundle");
    let agent =
        |agent: goondan::agent::AgentBuilder| agent.bundle_root(root).one_of("changesets", "live-config", config);
    Chat::builder().agent(agent).start().await.unwrap()
}

/// Proposes to replace the line `old` of a file by `new`.
async fn propose(chat: &mut Chat, file: &str, old: &str, new: &str) -> Result<Value, String> {
    let patch = format!("--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-{old}\n+{new}\n");
    let args = json!({ "patch": patch, "reason": "better" });
    let result = chat.call("live-config__propose", args).await.unwrap();
    result.output().cloned().ok_or_else(|| result.error().unwrap().message.clone())
}

/// Returns the directory with the work trees, of which there is one.
fn directory(repository: &Repository) -> PathBuf {
    let trees = repository.git(&["worktree", "list", "--porcelain"]);
    let tree = trees.lines().filter_map(|line| line.strip_prefix("worktree ")).nth(1).unwrap();
    Path::new(tree).parent().unwrap().to_owned()
}

#[both_linkages]
#[covers("LEGACY-LIVECONFIG-01")]
async fn a_proposal_changes_nothing_before_a_person_commits_it() {
    let repository = Repository::new();
    let mut chat = chat(&repository, json!({})).await;
    let head = repository.head();
    let answer = propose(&mut chat, "bundle/prompt.md", "Be brief.", "Be long.").await.unwrap();
    let id = answer["changesetId"].as_str().unwrap();
    let summary = json!({ "filesChanged": ["bundle/prompt.md"], "filesAdded": [], "filesDeleted": [] });
    let expected = json!({ "status": "proposed", "changesetId": id, "baseRef": head, "summary": summary });
    assert_eq!(answer, expected);
    assert_eq!(chat.events("changeset.proposed")[0].payload::<Value>().unwrap(), expected);
    assert_eq!((repository.head(), repository.git(&["status", "--porcelain"])), (head, String::new()));
    let tools: Vec<_> = chat.last_request().tool_names().iter().map(|name| name.to_string()).collect();
    assert_eq!(tools, ["live-config__propose"], "the model cannot commit");

    let reviews = Review::all(&directory(&repository)).unwrap();
    let [review] = &reviews[..] else { panic!("{reviews:?}") };
    assert_eq!((review.id(), review.conversation(), review.reason()), (id, "assistant/test", Some("better")));
    let diff = review.diff().await.unwrap();
    assert!(diff.ends_with("\n-Be brief.\n+Be long.\n"), "{diff}");
    let committed = review.commit(None).await.unwrap();
    assert_eq!((committed.status, committed.new_ref), (Status::Ok, Some(repository.head())));
    assert_eq!(repository.read("bundle/prompt.md"), "Be long.\n");
    assert_eq!(repository.git(&["log", "-1", "--format=%s"]), "better");
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
}

#[both_linkages]
#[covers("LEGACY-LIVECONFIG-01")]
async fn a_proposal_that_is_not_allowed_or_does_not_fit_leaves_nothing() {
    let repository = Repository::new();
    let config = json!({ "allowed": ["bundle/prompt.md"], "check": ["grep", "-q", "Be", "prompt.md"] });
    let mut chat = chat(&repository, config).await;
    let cases = [
        ("bundle/goondan.yaml", "one", "two", "E_CHANGESET_FILES"),
        ("bundle/prompt.md", "Be brief.", "no", "E_CHANGESET_CHECK"),
    ];
    for (file, old, new, code) in cases {
        let answer = propose(&mut chat, file, old, new).await.unwrap();
        assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!("rejected"), &json!(code)), "{answer}");
    }
    for (file, old) in [("bundle/prompt.md", "Be long."), ("../outside", "a"), ("/etc/hostname", "a")] {
        let error = propose(&mut chat, file, old, "new").await.unwrap_err();
        assert!(error.contains("git failed"), "{error}");
    }
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
}
