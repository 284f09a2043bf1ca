//! LEGACY-CHANGESET: the extension `changesets` with real repositories.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use goondan::agent::AgentBuilder;
use goondan::decision::Decision;
use goondan::event::{Event, WorktreeMounted};
use goondan::middleware::{OnError, TurnResult};
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::testing::Chat;
use goondan::{Agent, Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::linkage::WithPlugin;

/// A repository with a bundle in the directory `bundle`, and one commit.
pub(crate) struct Repository {
    directory: TempDir,
}

impl Repository {
    pub(crate) fn new() -> Self {
        let this = Self { directory: TempDir::new().unwrap() };
        this.git(&["init", "--quiet", "--initial-branch=main"]);
        this.write("bundle/goondan.yaml", "one\n");
        this.write("bundle/prompt.md", "Be brief.\n");
        this.write("notes.txt", "a\nb\nc\n");
        this.commit();
        this
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        write(&self.path(path), text);
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "--quiet", "-m", "by hand"]);
    }

    /// Runs git, and returns what it prints.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git").current_dir(self.directory.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(crate) fn head(&self) -> String {
        format!("git:{}", self.git(&["rev-parse", "HEAD"]))
    }

    pub(crate) async fn chat(&self, config: Value) -> Chat {
        let root = self.path("bundle");
        let agent = |agent: AgentBuilder| agent.bundle_root(root).plugin("changesets", "changesets", config);
        Chat::builder().agent(agent).start().await.unwrap()
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// An open changeset.
pub(crate) struct Open {
    pub(crate) id: String,
    answer: Value,
}

impl Open {
    pub(crate) async fn new(chat: &mut Chat) -> Self {
        let answer = output(chat, "open", json!({ "reason": "to see" })).await;
        Self { id: answer["changesetId"].as_str().unwrap().to_owned(), answer }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        Path::new(self.answer["workdir"].as_str().unwrap()).join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        write(&self.path(path), text);
    }

    pub(crate) async fn commit(&self, chat: &mut Chat) -> Value {
        output(chat, "commit", json!({ "changesetId": self.id, "message": "change it" })).await
    }

    /// Commits, and returns the status, the code of the error and the files that it names.
    pub(crate) async fn refused(&self, chat: &mut Chat) -> (String, String, Value) {
        let answer = self.commit(chat).await;
        let error = &answer["error"];
        let files = error.get("violatedFiles").or(error.get("conflictingFiles")).cloned().unwrap_or_default();
        (answer["status"].as_str().unwrap().to_owned(), error["code"].as_str().unwrap_or_default().to_owned(), files)
    }
}

pub(crate) async fn output(chat: &mut Chat, tool: &str, arguments: Value) -> Value {
    let result = chat.call(&format!("changesets__{tool}"), arguments).await.unwrap();
    result.output().unwrap_or_else(|| panic!("{result:?}")).clone()
}

async fn error(chat: &mut Chat, tool: &str, arguments: Value) -> String {
    let result = chat.call(&format!("changesets__{tool}"), arguments).await.unwrap();
    result.error().unwrap().code.clone().unwrap()
}

fn names(answer: &Value) -> Vec<&str> {
    let changesets = answer["changesets"].as_array().unwrap();
    changesets.iter().map(|changeset| changeset["changesetId"].as_str().unwrap()).collect()
}

#[both_linkages]
#[covers("LEGACY-CHANGESET-01", "LEGACY-CHANGESET-02")]
async fn an_opened_changeset_is_a_work_tree_of_its_own() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({ "recommendedFiles": ["prompt.md"] })).await;
    let open = Open::new(&mut chat).await;
    assert_eq!(open.answer["baseRef"], repository.head());
    let bundle = open.path("bundle");
    assert_eq!(open.answer["hint"], json!({ "bundleRootInWorkdir": bundle, "recommendedFiles": ["prompt.md"] }));
    assert_eq!(fs::read_to_string(bundle.join("prompt.md")).unwrap(), "Be brief.\n");
    let events = chat.events(WorktreeMounted::NAME);
    let mounted: WorktreeMounted = events[0].payload().unwrap();
    assert_eq!((mounted.path, mounted.changeset_id.as_deref()), (open.path(""), Some(&*open.id)));
    open.write("bundle/prompt.md", "Be long.\n");
    assert_eq!(repository.read("bundle/prompt.md"), "Be brief.\n");
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    let listed = output(&mut chat, "list", json!({})).await;
    let expected = json!({
        "changesetId": open.id, "conversation": "assistant/test", "workdir": open.answer["workdir"], "reason": "to see",
    });
    assert_eq!(listed["changesets"], json!([expected]));
}

#[both_linkages]
#[covers("LEGACY-CHANGESET-03", "LEGACY-CHANGESET-05")]
async fn a_changeset_is_committed_as_one_commit() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    let before = repository.head();
    open.write("bundle/prompt.md", "Be long.\n");
    open.write("bundle/more/new file.md", "");
    fs::remove_file(open.path("notes.txt")).unwrap();
    // Of no interest to the changeset.
    repository.write("unrelated", "not committed");
    let answer = open.commit(&mut chat).await;
    let summary = json!({
        "filesChanged": ["bundle/prompt.md"], "filesAdded": ["bundle/more/new file.md"], "filesDeleted": ["notes.txt"],
    });
    let expected = json!({
        "status": "ok", "changesetId": open.id, "baseRef": before, "newRef": repository.head(), "summary": summary,
        "effect": "none", "noEffectBecause": "the program does not reload its agents",
    });
    assert_eq!(answer, expected);
    assert_eq!(repository.git(&["log", "-1", "--format=%an <%ae> %s"]), "goondan <goondan@localhost> change it");
    assert_eq!(repository.git(&["rev-list", "--count", "HEAD"]), "2");
    assert_eq!(repository.git(&["symbolic-ref", "--short", "HEAD"]), "main");
    assert_eq!(repository.read("bundle/prompt.md"), "Be long.\n");
    assert_eq!(repository.git(&["status", "--porcelain"]), "?? unrelated");
    assert!(!open.path("").exists());
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    let events = chat.events("changeset.committed");
    assert_eq!(events.iter().map(|event: &Event| event.payload::<Value>().unwrap()).collect::<Vec<_>>(), [expected]);
    assert_eq!(error(&mut chat, "commit", json!({ "changesetId": open.id })).await, "E_CHANGESET_UNKNOWN");
}

#[both_linkages]
#[covers("LEGACY-CHANGESET-03")]
async fn what_is_not_allowed_is_rejected_and_can_be_corrected() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({ "allowed": ["bundle/*"] })).await;
    let open = Open::new(&mut chat).await;
    let empty = ("rejected".to_owned(), "E_CHANGESET_EMPTY".to_owned(), Value::Null);
    assert_eq!(open.refused(&mut chat).await, empty);
    open.write("bundle/prompt.md", "Be long.\n");
    open.write("notes.txt", "mine");
    symlink("/etc/passwd", open.path("bundle/passwords")).unwrap();
    let files = json!(["bundle/passwords", "notes.txt"]);
    assert_eq!(open.refused(&mut chat).await, ("rejected".to_owned(), "E_CHANGESET_FILES".to_owned(), files));
    assert_eq!(repository.git(&["rev-list", "--count", "HEAD"]), "1");
    fs::remove_file(open.path("bundle/passwords")).unwrap();
    open.write("notes.txt", "a\nb\nc\n");
    let answer = open.commit(&mut chat).await;
    assert_eq!(answer["summary"]["filesChanged"], json!(["bundle/prompt.md"]));
}

#[both_linkages]
async fn a_check_judges_the_changed_bundle() {
    let repository = Repository::new();
    let check = json!(["sh", "-c", "cat prompt.md; echo looked >> notes; grep -q brief prompt.md"]);
    let mut chat = repository.chat(json!({ "check": check })).await;
    let open = Open::new(&mut chat).await;
    open.write("bundle/prompt.md", "Be long.\n");
    let answer = open.commit(&mut chat).await;
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!("rejected"), &json!("E_CHANGESET_CHECK")));
    assert_eq!(answer["error"]["message"], "the check failed: exit status: 1\nBe long.");
    open.write("bundle/prompt.md", "Be very brief.\n");
    let answer = open.commit(&mut chat).await;
    assert_eq!(answer["status"], "ok");
    assert_eq!(answer["summary"]["filesAdded"], json!([]), "what the check writes is not committed");
}

#[both_linkages]
async fn changesets_of_other_files_are_merged() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({ "check": ["grep", "-q", "c", "../notes.txt"] })).await;
    let (one, two) = (Open::new(&mut chat).await, Open::new(&mut chat).await);
    one.write("bundle/prompt.md", "one\n");
    two.write("notes.txt", "a\nb\nc\nd\n");
    assert_eq!(one.commit(&mut chat).await["status"], "ok");
    let answer = two.commit(&mut chat).await;
    assert_eq!((&answer["status"], &answer["summary"]["filesChanged"]), (&json!("ok"), &json!(["notes.txt"])));
    assert_eq!(repository.git(&["rev-list", "--count", "HEAD"]), "3");
    assert_eq!(
        (repository.read("bundle/prompt.md"), repository.read("notes.txt")),
        ("one\n".to_owned(), "a\nb\nc\nd\n".to_owned())
    );
}

#[both_linkages]
async fn a_conflict_is_marked_and_can_be_resolved() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let (one, two) = (Open::new(&mut chat).await, Open::new(&mut chat).await);
    one.write("notes.txt", "a\none\nc\n");
    two.write("notes.txt", "a\ntwo\nc\n");
    two.write("bundle/prompt.md", "two\n");
    assert_eq!(one.commit(&mut chat).await["status"], "ok");
    let conflict = ("conflict".to_owned(), "E_CHANGESET_CONFLICT".to_owned(), json!(["notes.txt"]));
    for _ in 0..2 {
        assert_eq!(two.refused(&mut chat).await, conflict);
        let marked = fs::read_to_string(two.path("notes.txt")).unwrap();
        assert!(marked.contains("\none\n=======\ntwo\n"), "{marked}");
    }
    two.write("notes.txt", "a\none and two\nc\n");
    let answer = two.commit(&mut chat).await;
    assert_eq!(answer["summary"]["filesChanged"], json!(["bundle/prompt.md", "notes.txt"]));
    assert_eq!(repository.read("notes.txt"), "a\none and two\nc\n");
}

#[both_linkages]
async fn work_in_the_checkout_that_is_not_committed_is_not_overwritten() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    open.write("notes.txt", "theirs");
    open.write("new", "theirs");
    repository.write("notes.txt", "mine");
    repository.write("new", "mine");
    let files = json!(["notes.txt", "new"]);
    assert_eq!(open.refused(&mut chat).await, ("conflict".to_owned(), "E_CHANGESET_UNCOMMITTED".to_owned(), files));
    assert_eq!(repository.read("notes.txt"), "mine");
    repository.git(&["checkout", "notes.txt"]);
    fs::remove_file(repository.path("new")).unwrap();
    assert_eq!(open.commit(&mut chat).await["status"], "ok");
    assert_eq!(repository.read("new"), "theirs");
}

#[both_linkages]
async fn a_discarded_changeset_is_gone() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let (one, two) = (Open::new(&mut chat).await, Open::new(&mut chat).await);
    one.write("notes.txt", "new");
    output(&mut chat, "discard", json!({ "changesetId": one.id })).await;
    assert!(!one.path("").exists());
    assert_eq!(error(&mut chat, "discard", json!({ "changesetId": one.id })).await, "E_CHANGESET_UNKNOWN");
    // The directory was deleted by hand.
    fs::remove_dir_all(two.path("")).unwrap();
    output(&mut chat, "discard", json!({ "changesetId": two.id })).await;
    assert_eq!(names(&output(&mut chat, "list", json!({})).await), [""; 0]);
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(repository.git(&["for-each-ref", "refs/goondan"]), "");
}

#[both_linkages]
async fn changesets_outlive_the_conversation_and_stay_its_own() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    chat.restart().await.unwrap();
    open.write("notes.txt", "new");
    // One of another conversation is listed, and cannot be ended here.
    let description = open.path("").with_file_name(format!("{}.json", open.id));
    let own = fs::read_to_string(&description).unwrap();
    fs::write(&description, own.replace("assistant/test", "assistant/other")).unwrap();
    let listed = output(&mut chat, "list", json!({})).await;
    assert_eq!(
        (names(&listed), &listed["changesets"][0]["conversation"]),
        (vec![&*open.id], &json!("assistant/other"))
    );
    for tool in ["commit", "discard"] {
        assert_eq!(error(&mut chat, tool, json!({ "changesetId": open.id })).await, "E_CHANGESET_UNKNOWN");
    }
    fs::write(&description, own).unwrap();
    assert_eq!(open.commit(&mut chat).await["status"], "ok");
}

#[both_linkages]
async fn a_directory_without_a_repository_is_refused() {
    let directory = TempDir::new().unwrap();
    let root = directory.path().to_owned();
    let agent = |agent: AgentBuilder| agent.bundle_root(root).plugin("changesets", "changesets", json!({}));
    let error = Chat::builder().agent(agent).start().await.unwrap_err().report().to_string();
    assert!(error.contains("not a git repository") && error.contains("commit its files"), "{error}");
}

#[both_linkages]
async fn a_lock_that_a_git_of_a_shell_has_left_does_not_keep_a_changeset_from_being_committed() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    open.write("notes.txt", "new");
    repository.write(&format!(".git/worktrees/{}/index.lock", open.id), "");
    assert_eq!(open.commit(&mut chat).await["status"], "ok");
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
}

#[both_linkages]
async fn a_changeset_whose_work_tree_is_gone_can_only_be_discarded() {
    let repository = Repository::new();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    fs::remove_dir_all(open.path("")).unwrap();
    let result = chat.call("changesets__commit", json!({ "changesetId": open.id })).await.unwrap();
    assert!(result.error().unwrap().message.contains("is gone"), "{result:?}");
    output(&mut chat, "discard", json!({ "changesetId": open.id })).await;
}

/// A person reads the difference of a commit, and is asked again when the files are changed meanwhile.
#[both_linkages]
#[covers("ASK-04")]
async fn a_commit_asks_the_person() {
    let repository = Repository::new();
    let with = |config: Value| {
        let root = repository.path("bundle");
        |agent: AgentBuilder| agent.bundle_root(root).plugin("changesets", "changesets", config)
    };
    let commit = || ScriptItem::call("changesets__commit", json!({}));
    let open = ScriptItem::call("changesets__open", json!({}));
    let say = ["opened", "not yet", "done"].map(ScriptItem::say);
    let [opened, not_yet, done] = say;
    let script = [open, opened, commit(), not_yet, commit(), done];
    let chat = Chat::builder().agent(with(json!({ "ask": true }))).script(script).start().await.unwrap();
    assert_eq!(chat.say("change the notes").await.unwrap().text(), "opened");
    let trees = repository.git(&["worktree", "list", "--porcelain"]);
    let tree = trees.lines().filter_map(|line| line.strip_prefix("worktree ")).nth(1).unwrap();
    let notes = Path::new(tree).join("notes.txt");
    let shown = |result: &TurnResult| {
        assert_eq!(result.waits()[0].questions[0].question.text, "Commit these changes?");
        result.waits()[0].shown.iter().map(ToString::to_string).collect::<String>()
    };
    let call = |result: &TurnResult| result.waits()[0].call.clone();

    write(&notes, "a\nB\nc\n");
    let waiting = chat.say("commit").await.unwrap();
    assert!(shown(&waiting).contains("-b\n+B\n"), "{}", shown(&waiting));
    let rejected = [Decision::reject(call(&waiting), "not now")];
    assert_eq!(chat.instance().decide(rejected).await.unwrap().text(), "not yet");
    assert_eq!(repository.git(&["log", "--oneline"]).lines().count(), 1);

    let waiting = chat.say("and now?").await.unwrap();
    write(&notes, "a\nC\nc\n");
    let again = chat.instance().decide([Decision::approve(call(&waiting))]).await.unwrap();
    assert!(again.waits()[0].again && shown(&again).contains("-b\n+C\n"), "{}", shown(&again));
    let done = chat.instance().decide([Decision::approve(call(&again))]).await.unwrap();
    assert_eq!(done.text(), "done");
    assert_eq!(repository.read("notes.txt"), "a\nC\nc\n");
    chat.close().await.unwrap();
    let skipped =
        with(json!({}))(Agent::builder("main").model(ScriptedModel::new([]))).on_error("changesets", OnError::Skip);
    assert_eq!(skipped.build().unwrap_err().code().as_str(), "E_EXT_GUARD");
}
