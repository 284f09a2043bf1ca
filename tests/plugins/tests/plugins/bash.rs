//! F-BASE: the tools that run commands and scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use goondan::agent::{Policy, TurnUpdate};
use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::tool::Effect;
use goondan::{ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::call::{call, effects, open, refused};
use crate::linkage::WithPlugin;

async fn exec(chat: &mut Chat, command: &str) -> Value {
    call(chat, "bash__exec", json!({ "command": command })).await
}

/// Long enough that a test fails by it only if something hangs.
const LONG: Duration = Duration::from_secs(600);

/// Files to which commands write their process ids.
struct Pids(TempDir);

impl Pids {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Returns a command that writes the id of the shell that runs it.
    fn note(&self) -> String {
        format!("echo > {}/$BASHPID", self.0.path().display())
    }

    fn all(&self) -> Vec<PathBuf> {
        let names = self.0.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|pid| Path::new("/proc").join(pid)).collect()
    }

    /// Waits until `count` processes have started.
    async fn started(&self, count: usize) {
        while self.all().len() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until all processes have ended.
    async fn ended(&self) {
        let runs = |pid: PathBuf| {
            let stat = fs::read_to_string(pid.join("stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|state| !state.is_empty() && !state.trim_start().starts_with('Z'))
        };
        while self.all().into_iter().any(runs) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[both_linkages]
async fn a_command_runs_in_the_working_directory_and_its_end_is_a_result() {
    let mut chat = open("bash", json!({})).await;
    let tools = ["bash__exec", "bash__script"].map(|name| (name.to_owned(), Effect::Once));
    assert_eq!(effects(&chat).await, tools);
    let mut ended = exec(&mut chat, "printf hello; echo 'it went wrong' >&2; cat; echo a > file; exit 3").await;
    let cwd = PathBuf::from(ended["cwd"].as_str().unwrap());
    assert_eq!(fs::read_to_string(cwd.join("file")).unwrap(), "a\n");
    assert!(ended["durationMs"].is_u64());
    for member in ["cwd", "durationMs"] {
        ended.as_object_mut().unwrap().remove(member);
    }
    let expected = json!({
        "exitCode": 3, "signal": null, "timedOut": false, "stdout": "hello", "stderr": "it went wrong\n",
    });
    assert_eq!(ended, expected);
    let killed = exec(&mut chat, "kill -9 $$").await;
    assert_eq!((&killed["exitCode"], &killed["signal"]), (&Value::Null, &json!("SIGKILL")));
    let arguments = json!({ "command": "pwd; printf $WHO", "cwd": "..", "env": { "WHO": "me" } });
    let above = call(&mut chat, "bash__exec", arguments).await;
    assert_eq!(above["stdout"], format!("{}\nme", cwd.canonicalize().unwrap().parent().unwrap().display()));
    let (_, message) = refused(&mut chat, "bash__exec", json!({ "command": "pwd", "cwd": "nowhere" })).await;
    assert!(message.contains("nowhere does not exist"), "{message}");
}

#[both_linkages]
async fn a_script_gets_its_arguments_as_they_are() {
    let mut chat = open("bash", json!({})).await;
    let script = "printf '<%s>' \"$@\" \"$WHO\"\n";
    exec(&mut chat, &format!("mkdir 'a b'; cat > 'a b/script' <<'END'\n{script}END")).await;
    let arguments =
        json!({ "path": "a b/script", "args": ["$(id)", "a b", "'", ""], "env": { "WHO": "me" }, "timeoutMs": 60000 });
    assert_eq!(call(&mut chat, "bash__script", arguments).await["stdout"], "<$(id)><a b><'><><me>");
    let arguments = json!({ "path": "a b/script", "shell": "cat" });
    assert_eq!(call(&mut chat, "bash__script", arguments).await["stdout"], script);
    let missing = call(&mut chat, "bash__script", json!({ "path": "nowhere" })).await;
    assert_eq!(missing["exitCode"], 127);
    let (_, message) = refused(&mut chat, "bash__script", json!({ "path": "a", "shell": "no-such-shell" })).await;
    assert!(message.contains("`no-such-shell` cannot be started"), "{message}");
}

#[both_linkages]
#[covers("SIZE-01")]
async fn the_files_with_outputs_of_a_conversation_have_a_quota() {
    let mut policy = Policy::default();
    policy.max_output_bytes = 150_000.try_into().unwrap();
    let chat = Chat::builder().agent(|agent| {
        let agent = agent.policy(policy).plugin("bash", "bash", json!({}));
        agent.plugin("tool-output", "tool-output", json!({}))
    });
    let mut chat = chat.script([ScriptItem::say("fine").repeat()]).start().await.unwrap();
    let directory = PathBuf::from(exec(&mut chat, "true").await["cwd"].as_str().unwrap());
    let mut read = Vec::new();
    for command in [&["head -c 60000 /dev/zero | tr '\\0' a"; 3][..], &["seq 100000"; 2]].concat() {
        read.push(exec(&mut chat, command).await.to_string());
    }
    // The first two by `tool-output`, whose third has no room; then by `bash`, until there is no room at all.
    for (read, said) in read.iter().zip(["whole text", "whole text", "are lost", "stdoutFile", "are lost"]) {
        assert!(read.contains(said), "{said}: {read}");
    }
    assert!(!read[4].contains("stdoutFile"), "{}", read[4]);
    assert!(read[4].contains("may have 150000 (`policy.maxOutputBytes`)"), "{}", read[4]);
    let files = directory.read_dir().unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    assert_eq!(files.sum::<u64>(), 150_000);
}

#[both_linkages]
async fn of_a_long_output_the_beginning_and_the_end_are_read_and_all_is_in_a_file() {
    let mut chat = open("bash", json!({})).await;
    let short = exec(&mut chat, "head -c 100000 /dev/zero | tr '\\0' a").await;
    assert_eq!(short["stdout"].as_str().unwrap().len(), 100_000);
    assert_eq!(short.get("stdoutFile"), None);
    let long = exec(&mut chat, "seq 100000; seq 50000 >&2").await;
    for (stream, count, bytes) in [("stdout", 100_000, 588_895), ("stderr", 50_000, 288_894)] {
        let file = PathBuf::from(long[format!("{stream}File")].as_str().unwrap());
        let all: String = (1..=count).map(|number| format!("{number}\n")).collect();
        assert_eq!(fs::read_to_string(&file).unwrap(), all);
        assert!(file.is_absolute() && file.starts_with(long["cwd"].as_str().unwrap()), "{file:?}");
        let text = long[stream].as_str().unwrap();
        let note = format!("[{} of {bytes} characters are left out here, lines ", bytes - 100_000);
        assert!(text.starts_with("1\n2\n") && text.contains(&note), "{text}");
        assert!(text.ends_with(&format!("\n{count}\n")) && text.len() < 100_400);
        assert!(text.contains(&format!(" The whole text is in the file {}: ", file.display())), "{text}");
    }
}

#[both_linkages]
async fn a_command_that_runs_for_too_long_is_asked_to_end_and_then_killed() {
    let pids = Pids::new();
    let mut chat = open("bash", json!({ "timeoutMs": 200 })).await;
    let polite = format!("trap 'echo bye; exit 7' TERM; {}; echo hello; sleep 1000 & wait", pids.note());
    let ended = exec(&mut chat, &polite).await;
    let (code, timed_out, stdout) = (&ended["exitCode"], &ended["timedOut"], &ended["stdout"]);
    assert_eq!((code, timed_out, stdout), (&json!(7), &json!(true), &json!("hello\nbye\n")));
    let stubborn = format!("trap '' TERM; {0}; (trap '' TERM; {0}; sleep 1000) & wait", pids.note());
    let arguments = json!({ "command": stubborn, "timeoutMs": 50 });
    let ended = call(&mut chat, "bash__exec", arguments).await;
    assert_eq!((&ended["signal"], &ended["timedOut"]), (&json!("SIGKILL"), &json!(true)));
    pids.ended().await;
}

#[both_linkages]
#[covers("PROC-01")]
async fn a_process_in_the_background_neither_holds_the_call_nor_outlives_it() {
    let pids = Pids::new();
    let mut chat = open("bash", json!({})).await;
    let directory = pids.0.path().display();
    let command = format!("({}; exec sleep 1000) & until test -e {directory}/$!; do :; done", pids.note());
    assert_eq!(exec(&mut chat, &command).await["timedOut"], false);
    assert_eq!(pids.all().len(), 1);
    pids.ended().await;
    // One that leaves the group keeps the output open, but does not hold the call.
    let leaves = "setsid sleep 1000 & echo $!";
    let ended = exec(&mut chat, leaves).await;
    assert_eq!((&ended["timedOut"], &ended["exitCode"]), (&json!(false), &json!(0)));
    let daemon = ended["stdout"].as_str().unwrap().trim().to_owned();
    assert_eq!(exec(&mut chat, &format!("kill {daemon}")).await["exitCode"], 0);
}

/// Opens a conversation in which the first turn runs a stubborn command.
async fn stubborn(pids: &Pids, limit: Duration) -> Chat {
    let command = format!("trap '' TERM; {0}; (trap '' TERM; {0}; sleep 1000) & wait", pids.note());
    let script = [ScriptItem::call("bash__exec", json!({ "command": command })), ScriptItem::say("fine").repeat()];
    let mut policy = Policy::default();
    policy.turn_timeout = limit;
    let chat = Chat::builder().agent(|agent| agent.plugin("bash", "bash", json!({})).policy(policy));
    chat.script(script).start().await.unwrap()
}

#[both_linkages]
#[covers("PROC-01")]
async fn no_process_outlives_its_turn() {
    let pids = Pids::new();
    let chat = stubborn(&pids, LONG).await;
    // The turn is cancelled when both processes run.
    tokio::select! {
        turn = chat.say("go") => panic!("{turn:?}"),
        () = pids.started(2) => {}
    }
    pids.ended().await;
    assert_eq!(chat.say("go on").await.unwrap().text(), "fine");

    let pids = Pids::new();
    let chat = stubborn(&pids, Duration::from_secs(1)).await;
    assert_eq!(*chat.say("go").await.unwrap_err().code(), ErrorCode::TURN_TIMEOUT);
    pids.ended().await;
}

#[both_linkages]
async fn a_watcher_reads_what_a_command_writes() {
    let command = "echo compiling; read -r _ < go";
    let script = [ScriptItem::call("bash__exec", json!({ "command": command })), ScriptItem::say("fine").repeat()];
    let directory = TempDir::new().unwrap();
    let go = directory.path().join("go");
    assert!(std::process::Command::new("mkfifo").arg(&go).status().unwrap().success());
    let config = json!({ "cwd": directory.path() });
    let chat = Chat::builder().agent(|agent| agent.plugin("bash", "bash", config)).script(script);
    let chat = chat.start().await.unwrap();
    let mut turn = chat.instance().run_stream("go");
    loop {
        if let TurnUpdate::Progress { done, total, text, .. } = turn.next().await.unwrap() {
            assert_eq!((text.as_str(), total), ("compiling", None), "how long it takes is not known");
            assert!((0.0..30.0).contains(&done));
            break;
        }
    }
    fs::write(&go, "\n").unwrap();
    assert_eq!(turn.finish().await.unwrap().text(), "fine");
}

#[both_linkages]
async fn the_config_chooses_the_directory_and_the_environment() {
    let directory = TempDir::new().unwrap();
    let config = json!({ "cwd": directory.path(), "inheritEnv": ["PATH"], "outputBytes": 10, "timeoutMs": 60000 });
    let mut chat = open("bash", config).await;
    let ended = exec(&mut chat, "printf ${HOME-none}; pwd >&2").await;
    assert_eq!(ended["stdout"], "none");
    let file = ended["stderrFile"].as_str().unwrap();
    let directory_line = format!("{}\n", directory.path().canonicalize().unwrap().display());
    assert_eq!(fs::read_to_string(file).unwrap(), directory_line);
    assert!(!Path::new(file).starts_with(directory.path()), "it is in the working directory of the conversation");
    let missing = json!({ "cwd": directory.path().join("missing") });
    let error = Chat::builder().agent(|agent| agent.plugin("bash", "bash", missing)).start().await.unwrap_err();
    assert!(error.report().to_string().contains("missing, which is no directory"), "{}", error.report());
}
