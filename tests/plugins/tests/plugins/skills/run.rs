//! Commands in the directory of a skill.

use std::os::unix::fs::PermissionsExt;

use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::support::{Repo, call, defaults, refused};

async fn run(repo: &Repo, mut arguments: Value) -> Value {
    arguments["name"] = "deploy".into();
    call(&mut repo.chat(defaults()).await, "run", arguments).await
}

#[both_linkages]
#[covers("PATTERN-SKILL-16")]
async fn a_command_runs_in_the_directory_of_its_skill() {
    let repo = Repo::with_two();
    repo.write("skills/deploy/deploy.sh", "#!/bin/sh\necho \"  to $1 \"\necho careful >&2\nexit 3\n");
    let script = repo.path("skills/deploy/deploy.sh");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ended = run(&repo, json!({ "command": "./deploy.sh", "args": ["a shop; echo $HOME"] })).await;
    let expected = json!({
        "code": 3, "stdout": "to a shop; echo $HOME", "stderr": "careful",
        "skill": "deploy", "command": "./deploy.sh", "args": ["a shop; echo $HOME"],
    });
    assert_eq!(ended, expected);
    let ended = run(&repo, json!({ "command": "pwd | tr a-z A-Z && kill -9 $$" })).await;
    let directory = repo.path("skills/deploy").display().to_string().to_uppercase();
    assert_eq!((&ended["code"], &ended["stdout"], &ended["args"]), (&json!(137), &json!(directory), &json!([])));
}

#[both_linkages]
#[covers("PATTERN-SKILL-17")]
async fn a_command_that_is_slow_or_not_there_is_an_error() {
    let repo = Repo::with_two();
    let mut chat = repo.chat(defaults()).await;
    let slow = json!({ "name": "deploy", "command": "echo begun; sleep 100000", "timeout": 300 });
    let (code, message) = refused(&mut chat, "run", slow).await;
    assert_eq!(code, "E_SKILLS_TIMEOUT");
    assert!(message.contains("longer than 300ms") && message.contains("begun"), "{message}");
    let tools = chat.instance().tools().await.unwrap();
    let parameters = tools.get("skills__run").unwrap().parameters.as_ref().unwrap();
    assert_eq!(parameters["properties"]["timeout"]["default"], 60_000);
    for command in ["there-is-no-such-program", "./SKILL.md"] {
        let (code, message) = refused(&mut chat, "run", json!({ "name": "deploy", "command": command })).await;
        assert_eq!(code, "E_SKILLS_RUN");
        assert!(message.contains(command), "{message}");
    }
    std::fs::remove_dir_all(repo.path("skills/deploy")).unwrap();
    let (code, _) = refused(&mut chat, "run", json!({ "name": "deploy", "command": "true" })).await;
    assert_eq!(code, "E_SKILLS_RUN");
}

/// The timeout is long, so that the test hangs if the children are waited for.
#[both_linkages]
async fn children_that_hold_the_output_open_are_not_waited_for() {
    let repo = Repo::with_two();
    // The second one leaves the process group, so that it is not ended with the shell.
    let command = "sleep 100000 & echo $!; setsid sleep 100000 & echo $!; echo done";
    let ended = run(&repo, json!({ "command": command, "timeout": 3_540_000 })).await;
    let stdout = ended["stdout"].as_str().unwrap();
    let lines: Vec<_> = stdout.lines().collect();
    let [first, second] = [lines[0], lines[1]].map(|pid| Pid::from_raw(pid.parse().unwrap()));
    assert_eq!((lines[2], &ended["code"]), ("done", &json!(0)));
    kill(second, Signal::SIGKILL).unwrap();
    // Perhaps its parent has not been told yet that it was killed.
    while kill(first, None).is_ok() && !is_zombie(first) {
        tokio::task::yield_now().await;
    }
}

fn is_zombie(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

#[both_linkages]
async fn long_output_is_cut_and_read_to_its_end() {
    let repo = Repo::with_two();
    let ended = run(&repo, json!({ "command": "head -c 1000000 /dev/zero | tr '\\0' x; echo end >&2" })).await;
    let stdout = ended["stdout"].as_str().unwrap();
    let (head, rest) = stdout.split_once("\n[950000 of 1000000 characters are left out here, in line 1. ").unwrap();
    let (note, tail) = rest.split_once("]\n").unwrap();
    assert_eq!([head, tail], [&*"x".repeat(25_000); 2]);
    let file = note.split_once("in the file ").unwrap().1.split_once(": ").unwrap().0;
    assert_eq!(std::fs::read_to_string(file).unwrap(), "x".repeat(1_000_000));
    assert_eq!(ended["stderr"], "end");
}

#[both_linkages]
async fn commands_can_be_switched_off() {
    let repo = Repo::with_two();
    let mut chat = repo.chat(json!({ "discovery": {}, "run": false })).await;
    assert!(chat.instance().tools().await.unwrap().get("skills__run").is_none());
    let opened = call(&mut chat, "open", json!({ "name": "deploy" })).await;
    assert!(!opened["hint"].as_str().unwrap().contains("skills__run"), "{opened}");
}
