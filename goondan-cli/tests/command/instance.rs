//! `goondan instance`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use goondan_covers::covers;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{self, checkout};

fn goondan(state: &Path, arguments: &[&str]) -> Output {
    let mut command = support::goondan();
    command.current_dir(checkout()).args(arguments);
    command.arg("--state-root").arg(state).stdin(Stdio::null()).output().unwrap()
}

fn done(state: &Path, arguments: &[&str]) -> String {
    let output = goondan(state, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(state: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = goondan(state, arguments);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Returns a state root with two conversations.
fn two_conversations() -> TempDir {
    let state = TempDir::new().unwrap();
    for (key, input) in [("user:1", "hello"), ("user/2", "where is this stored?")] {
        done(state.path(), &["run", "examples/quickstart", "--instance", key, "--input", input]);
    }
    state
}

#[test]
fn conversations_are_listed_by_workspace_agent_and_key() {
    let empty = TempDir::new().unwrap();
    assert_eq!(done(empty.path(), &["instance", "list"]), "No conversation is stored here.\n");
    let state = two_conversations();
    let table = done(state.path(), &["instance", "list"]);
    let rows: Vec<_> = table.lines().map(|line| line.split_whitespace().take(3).collect::<Vec<_>>()).collect();
    let [first, second] = ["guide:user/2", "guide:user:1"].map(|name| ["quickstart", name, "idle"]);
    assert_eq!(rows, [["WORKSPACE", "INSTANCE", "STATUS"], first, second]);
    let json: Value = serde_json::from_str(&done(state.path(), &["instance", "list", "--json"])).unwrap();
    assert_eq!((&json[1]["agent"], &json[1]["key"]), (&Value::from("guide"), &Value::from("user:1")));
    assert_eq!(done(state.path(), &["instance", "list", "--workspace", "other", "--json"]), "[]\n");
}

#[test]
fn a_conversation_is_shown_message_by_message() {
    let state = two_conversations();
    let page = done(state.path(), &["instance", "show", "guide:user:1"]);
    let lines: Vec<_> = page.lines().collect();
    assert!(lines[0].ends_with("  user") && lines[2].ends_with("  assistant"), "{page}");
    assert_eq!(lines[1], "  hello");
    assert!(lines[3].starts_with("  Hello! I am an agent"), "{page}");
    let json = done(state.path(), &["instance", "show", "guide:user:1", "--json"]);
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["data"]["content"], "hello");
    let (code, error) = refused(state.path(), &["instance", "show", "guide:missing"]);
    assert!(code == Some(1) && error.contains("E_STORE_NOT_FOUND"), "{error}");
    assert_eq!(refused(state.path(), &["instance", "show", "guide"]).0, Some(2));
}

#[test]
fn deleting_a_conversation_needs_confirmation() {
    let state = two_conversations();
    let (code, error) = refused(state.path(), &["instance", "delete", "guide:user:1"]);
    assert!(code == Some(2) && error.contains("--yes"), "{error}");
    assert_eq!(done(state.path(), &["instance", "delete", "guide:user:1", "--yes"]), "Deleted `guide:user:1`.\n");
    assert_eq!(done(state.path(), &["instance", "list"]).lines().count(), 2, "the title and the other one");
    assert_eq!(refused(state.path(), &["instance", "delete", "guide:user:1", "--yes"]).0, Some(1));
}

/// Runs three turns: one that calls a tool, one that fails, and one that is answered.
fn three_turns() -> (TempDir, std::path::PathBuf) {
    let dir = TempDir::new().unwrap();
    let bundle = r#"
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main }
"#;
    let script = "- { call: { tool: no__tool }, when: call }\n- { say: called, when: E_TOOL }\n\
                  - { fail: { message: overloaded }, when: fail }\n- { say: fine, when: fine }\n";
    std::fs::write(dir.path().join("goondan.yaml"), bundle).unwrap();
    std::fs::write(dir.path().join("script.yaml"), script).unwrap();
    let state = dir.path().join("state");
    for input in ["call", "fail", "fine"] {
        goondan(&state, &["run", dir.path().to_str().unwrap(), "--input", input]);
    }
    (dir, state)
}

#[test]
fn the_cost_of_a_turn_is_shown_after_its_last_message() {
    let (_dir, state) = three_turns();
    let lines = done(&state, &["instance", "show", "main:default", "--json"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (end, lines) = lines.split_last().unwrap();
    assert_eq!((&end["instance"]["status"], &end["instance"]["outcome"]["type"]), (&"idle".into(), &"answered".into()));
    let shape: Vec<_> = lines.iter().map(|line| line["data"]["role"].as_str().unwrap_or("turn")).collect();
    assert_eq!(shape, ["user", "assistant", "tool", "assistant", "turn", "user", "turn", "user", "assistant", "turn"]);
    let [first, failed, last] = [4, 6, 9].map(|index| &lines[index]["turn"]);
    assert_eq!(
        (&first["steps"], &first["toolCalls"], &first["error"]),
        (&Value::from(2), &Value::from(1), &Value::Null)
    );
    assert!(first["durationMs"].is_u64() && first["turnId"].is_string(), "{first}");
    assert!(failed["error"].as_str().unwrap().contains("overloaded"), "{failed}");
    assert_eq!((&last["steps"], &last["toolCalls"]), (&Value::from(1), &Value::from(0)));

    let page = done(&state, &["instance", "show", "main:default"]);
    assert!(page.contains(" 2 steps, 1 tool call") && page.contains(" failed)"), "{page}");
    let end: Vec<_> = page.lines().rev().take(3).collect();
    assert!(end[0].starts_with("(the last turn answered event-"), "{page}");
    // Each turn is run by another process, and in the first one step follows another.
    assert_eq!(end[1], "(100 % of all requests were kept by the next)");
    assert!(end[2].ends_with(" 1 step, 0 tool calls)"), "{page}");
}

#[test]
fn without_runtime_events_the_costs_are_left_out() {
    let (_dir, state) = three_turns();
    let messages = state.join("workspaces/main/instances/main:default/messages");
    let whole = std::fs::read(messages.join("runtime-events.jsonl")).unwrap();
    // Keep only the end of the second turn and the third turn, followed by a torn line.
    let ends: Vec<_> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    let failed = whole.windows(11).position(|bytes| bytes == b"turn.failed").unwrap();
    let start = ends.iter().rfind(|end| **end < failed).unwrap() + 1;
    std::fs::write(messages.join("runtime-events.jsonl"), [&whole[start..], b"{\"type\":\"turn.st"].concat()).unwrap();
    let page = done(&state, &["instance", "show", "main:default"]);
    assert_eq!(page.matches("(turn-").count(), 1, "{page}");
    std::fs::write(messages.join("runtime-events.1.jsonl"), &whole[..start]).unwrap();
    assert_eq!(done(&state, &["instance", "show", "main:default"]).matches("(turn-").count(), 3);
    for file in ["runtime-events.jsonl", "runtime-events.1.jsonl"] {
        std::fs::remove_file(messages.join(file)).unwrap();
    }
    let page = done(&state, &["instance", "show", "main:default"]);
    assert!(page.contains("called") && !page.contains("(turn-"), "{page}");
}

#[test]
fn a_conversation_is_exported_and_imported() {
    let state = two_conversations();
    let file = state.path().join("export.jsonl");
    let path = file.to_str().unwrap();
    done(state.path(), &["instance", "export", "guide:user:1", path]);
    assert_eq!(
        done(state.path(), &["instance", "export", "guide:user:1", "-"]),
        std::fs::read_to_string(&file).unwrap()
    );
    let (code, error) = refused(state.path(), &["instance", "import", path, "--workspace", "quickstart"]);
    assert!(code == Some(1) && error.contains("E_STORE_EXISTS"), "{error}");
    let imported = ["instance", "import", path, "--workspace", "quickstart", "--as", "guide:copy"];
    assert_eq!(done(state.path(), &imported), "Imported `guide:copy`.\n");
    // The costs of turns come from runtime events, which are not exported.
    let show = |name| done(state.path(), &["instance", "show", name, "--json"]);
    let messages = |name| show(name).lines().filter(|line| !line.starts_with("{\"turn\"")).map(str::to_owned).collect();
    let (copy, original): (Vec<_>, Vec<_>) = (messages("guide:copy"), messages("guide:user:1"));
    assert!(!copy.is_empty());
    assert_eq!(copy, original);
}

#[test]
fn repair_prints_a_plan_and_carries_it_out_with_yes() {
    let state = two_conversations();
    let base = state.path().join("workspaces/quickstart/instances/guide:user:1/messages/base.jsonl");
    let text = std::fs::read_to_string(&base).unwrap();
    std::fs::write(&base, format!("rubbish\n{text}")).unwrap();
    let run = ["run", "examples/quickstart", "--instance", "user:1", "--input", "hello"];
    let (code, error) = refused(state.path(), &run);
    assert!(code == Some(1) && error.contains("base.jsonl, line 1") && error.contains("instance repair"), "{error}");
    let output = goondan(state.path(), &["instance", "repair", "guide:user:1"]);
    let plan = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{plan}");
    assert!(plan.contains("base.jsonl, line 1: this is no message") && plan.contains("Nothing was changed"), "{plan}");
    done(state.path(), &["instance", "repair", "guide:user:1", "--yes"]);
    assert_eq!(std::fs::read_to_string(&base).unwrap(), text);
    assert_eq!(done(state.path(), &["instance", "repair", "guide:user:1"]), "Nothing is wrong.\n");
    done(state.path(), &run);
}

/// Links in place of what the commands read and write, to a copy that says `CANARY`: each command refuses them by
/// name, prints nothing of it and leaves it alone, or has nothing to do with them.
#[test]
fn commands_follow_no_link_out_of_the_state_root() {
    let instance = "workspaces/quickstart/instances/guide:user:1";
    let names = ["..", "", "lock", "metadata.json", "messages", "messages/base.jsonl", "messages/events.jsonl"];
    let names = names.iter().chain(&["messages/runtime-events.jsonl", "messages/base.jsonl.tmp", "workspace"]);
    let commands: [&[&str]; 7] = [
        &["instance", "list"],
        &["instance", "show", "guide:user:1"],
        &["instance", "export", "guide:user:1", "-"],
        &["instance", "repair", "guide:user:1"],
        &["instance", "repair", "guide:user:1", "--yes"],
        &["run", "examples/quickstart", "--instance", "user:1", "--input", "and now?"],
        &["instance", "delete", "guide:user:1", "--yes"],
    ];
    let template = two_conversations();
    let mut refused = 0;
    for name in names {
        for command in commands {
            let (state, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
            let copied =
                Command::new("cp").arg("-r").arg(template.path().join("workspaces")).arg(state.path()).status();
            assert!(copied.unwrap().success());
            let at = match *name {
                ".." => state.path().join("workspaces/quickstart/instances"),
                name => state.path().join(instance).join(name),
            };
            let at = std::path::PathBuf::from(at.to_str().unwrap().trim_end_matches('/'));
            let target = outside.path().join("target");
            match at.exists() {
                true => std::fs::rename(&at, &target).unwrap(),
                false => std::fs::write(&target, "CANARY\n").unwrap(),
            }
            let base = if target.is_dir() { files(&target) } else { vec![target.clone()] };
            for file in &base {
                std::fs::write(file, std::fs::read_to_string(file).unwrap().replace("hello", "CANARY")).unwrap();
            }
            std::os::unix::fs::symlink(&target, &at).unwrap();
            let content = || base.iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>();
            let before = (files(outside.path()), content());
            let output = goondan(state.path(), command);
            let what = format!("{command:?} with a link at {name}");
            let (printed, error) =
                (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
            assert!(!printed.contains("CANARY"), "{what}: {printed}");
            if !output.status.success() {
                refused += 1;
                assert!(error.contains("E_STORE_IO") && error.contains("symbolic link"), "{what}: {error}");
            }
            assert_eq!((files(outside.path()), content()), before, "{what}");
        }
    }
    // All but `list` for `instances/…` and what only some of them use.
    assert!(refused >= 35, "{refused}");
}

/// Returns the files below a directory.
fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

#[test]
fn an_export_is_for_its_owner_alone() {
    use std::os::unix::fs::MetadataExt;
    let state = two_conversations();
    let file = state.path().join("export.jsonl");
    let command = format!(
        "umask 000; exec '{}' instance export guide:user:1 '{}' --state-root '{}'",
        env!("CARGO_BIN_EXE_goondan"),
        file.display(),
        state.path().display()
    );
    assert!(Command::new("sh").arg("-c").arg(command).status().unwrap().success());
    assert_eq!(std::fs::metadata(file).unwrap().mode() & 0o7777, 0o600);
}

#[test]
fn the_size_of_the_output_files_is_shown() {
    let (_dir, state) = three_turns();
    let shown = |arguments: &[&str]| done(&state, &[&["instance", "show", "main:default"], arguments].concat());
    let bytes = || {
        let end = shown(&["--json"]).lines().last().unwrap().to_owned();
        serde_json::from_str::<Value>(&end).unwrap()["instance"]["outputBytes"].clone()
    };
    assert!(bytes() == 0 && !shown(&[]).contains("output files"), "{}", shown(&[]));
    let metadata = find(&state, "metadata.json");
    let workspace = metadata.parent().unwrap().join("workspace");
    fs::create_dir_all(&workspace).unwrap();
    for (name, text) in [("bash-call_1-stdout-1.txt", "12345"), ("result-call_2-1.json", "{}"), ("notes.txt", "mine")] {
        fs::write(workspace.join(name), text).unwrap();
    }
    assert_eq!(bytes(), 7);
    assert!(shown(&[]).contains("\n(the output files in the working directory have 7 bytes)\n"), "{}", shown(&[]));
}

/// Returns the only file of this name below a directory.
fn find(directory: &Path, name: &str) -> PathBuf {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut found = entries.filter_map(|path| match path.is_dir() {
        true => Some(find(&path, name)).filter(|path| path.is_file()),
        false => Some(path).filter(|path| path.file_name().unwrap() == name),
    });
    found.next().unwrap_or_default()
}

#[test]
fn a_conversation_is_taken_back() {
    let state = TempDir::new().unwrap();
    for input in ["hello", "where is this stored?", "thanks"] {
        done(state.path(), &["run", "examples/quickstart", "--instance", "one", "--input", input]);
    }
    let (code, listed) = refused(state.path(), &["instance", "rewind", "guide:one"]);
    let turns: Vec<_> = listed.lines().filter_map(|line| line.trim().split_once("  ")).collect();
    let inputs: Vec<_> = turns.iter().map(|(_, input)| *input).collect();
    assert_eq!((code, &inputs[..]), (Some(2), &["hello", "where is this stored?", "thanks"][..]), "{listed}");

    let page = done(state.path(), &["instance", "rewind", "guide:one", "--to", turns[0].0]);
    assert!(page.starts_with("took back 2 turns with "), "{page}");
    let shown = done(state.path(), &["instance", "show", "guide:one"]);
    assert!(!shown.contains("where is this stored?"), "{shown}");
    assert!(shown.ends_with("(the conversation was taken back by 2 turns)\n"), "{shown}");
    let (code, error) = refused(state.path(), &["instance", "rewind", "guide:one", "--to", turns[1].0]);
    assert_eq!(code, Some(1));
    assert!(error.contains("E_REWIND") && error.contains(turns[0].0), "{error}");
    assert_eq!(
        done(state.path(), &["instance", "rewind", "guide:one", "--to", turns[0].0]),
        "there was nothing to take back\n"
    );
    done(state.path(), &["run", "examples/quickstart", "--instance", "one", "--input", "hello"]);
}

/// Returns the turns of the conversation.
fn turns(state: &Path) -> Vec<String> {
    let (code, listed) = refused(state, &["instance", "rewind", "guide:one"]);
    assert_eq!(code, Some(2), "{listed}");
    let turns = listed.lines().filter_map(|line| line.trim().split_once("  "));
    turns.map(|(turn, _)| turn.to_owned()).collect()
}

#[test]
#[covers("BACK-01")]
fn a_kill_while_a_conversation_is_taken_back_leaves_all_of_it_or_takes_all_back() {
    let whole = TempDir::new().unwrap();
    for input in ["hello", "where is this stored?", "thanks"] {
        done(whole.path(), &["run", "examples/quickstart", "--instance", "one", "--input", input]);
    }
    let first = turns(whole.path()).swap_remove(0);
    for run in 0..60 {
        let state = TempDir::new().unwrap();
        let copied = Command::new("cp").arg("-r").arg(whole.path().join("workspaces")).arg(state.path()).status();
        assert!(copied.unwrap().success());
        let mut command = support::goondan();
        command.current_dir(checkout()).args(["instance", "rewind", "guide:one", "--to", &first, "--state-root"]);
        command.arg(state.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_micros(run * 250));
        _ = child.kill();
        child.wait().unwrap();
        // The next turn closes what was left open.
        done(state.path(), &["run", "examples/quickstart", "--instance", "one", "--input", "hello"]);
        let left = turns(state.path());
        assert!([2, 4].contains(&left.len()) && left[0] == first, "after {run}: {left:?}");
    }
}
