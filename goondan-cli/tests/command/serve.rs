//! `goondan serve`: processes, signals, and what survives them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use goondan_covers::covers;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::tree::bundle_of_tasks;
use crate::support::{MODEL, checkout, goondan, printed, stderr};

const AGENT: &str = "apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: bash }
spec: { entry: \"linked:bash\" }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: clerk }
spec: { model: Model/main, extensions: [ { ref: Extension/bash } ] }
";

/// The directory of a bundle, whose agent plays `script`.
fn bundle(script: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("goondan.yaml"), format!("{MODEL}{AGENT}")).unwrap();
    fs::write(directory.path().join("script.yaml"), script).unwrap();
    directory
}

fn serve(bundle: &Path, arguments: &[&str]) -> Command {
    let mut command = goondan();
    command.args(["serve", "--trust", "--listen", "127.0.0.1:0"]).arg(bundle).args(arguments);
    command.arg("--state-root").arg(bundle.join(".state"));
    command
}

/// A server that runs, and its address.
struct Server {
    child: Child,
    address: String,
    errors: BufReader<std::process::ChildStderr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that fails leaves none behind.
        _ = self.child.kill();
    }
}

impl Server {
    fn start(bundle: &Path, arguments: &[&str]) -> Self {
        Self::of(serve(bundle, arguments))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert_ne!(errors.read_line(&mut line).unwrap(), 0, "the server has ended");
            if let Some(address) = line.trim().strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        Self { child, address, errors }
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            connection,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        connection
    }

    /// Returns the status and the body.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut text = String::new();
        self.send(method, path, headers, body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn signal(&self, signal: nix::sys::signal::Signal) {
        let process = nix::unistd::Pid::from_raw(self.child.id().try_into().unwrap());
        nix::sys::signal::kill(process, signal).unwrap();
    }

    /// Returns the exit code, and what was printed since the start.
    fn end(mut self) -> (Option<i32>, String) {
        let mut printed = String::new();
        self.errors.read_to_string(&mut printed).unwrap();
        (self.child.wait().unwrap().code(), printed)
    }
}

const TURNS: &str = "/v1/agents/clerk/instances/ada/turns";

fn turn(input: &str, wait: &str) -> String {
    json!({ "input": input, "wait": wait }).to_string()
}

#[test]
#[covers("SERVE-01")]
fn an_agent_is_served_until_a_signal() {
    let directory = bundle("- { say: hi, repeat: true }\n");
    let server = Server::start(directory.path(), &[]);
    let (status, body) = server.ask("POST", TURNS, "", &turn("hello", "result"));
    let end: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &end["response"]), (200, &json!("hi")));
    let (status, stream) = server.ask("POST", TURNS, "", &turn("hello", "stream"));
    assert!(status == 200 && stream.contains("\"type\":\"turn\""), "{stream}");
    // Although the conversation is kept open for another turn.
    let conversation = TURNS.strip_suffix("/turns").unwrap();
    assert_eq!(server.ask("DELETE", conversation, "", "").0, 204);
    assert_eq!(server.ask("GET", conversation, "", "").0, 404);
    let (status, body) = server.ask("POST", TURNS, "", &turn("hello", "result"));
    assert!(status == 200 && body.contains("\"response\":\"hi\""), "{body}");
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.end().0, Some(0));
}

/// Waits until a file is there.
fn wait_for(file: &Path) {
    let mut tries = 0;
    while !file.exists() {
        tries += 1;
        assert!(tries < 1000, "{} does not appear", file.display());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
#[covers("SERVE-01", "SERVE-02")]
fn after_kill_9_the_next_start_goes_on_and_the_same_key_is_answered_once() {
    let directory = bundle("");
    let ran = directory.path().join("ran");
    let command = format!("echo once >> {}; sleep 100", ran.display());
    let call = json!({ "call": { "tool": "bash__exec", "args": { "command": command } }, "when": "^pay$" });
    let script = format!("[{call}, {}]", json!({ "say": "It may be paid.", "repeat": true }));
    fs::write(directory.path().join("script.yaml"), script).unwrap();
    let mut server = Server::start(directory.path(), &[]);
    let key = "Idempotency-Key: payment-1\r\n";
    let _watching = server.send("POST", TURNS, key, &turn("pay", "stream"));
    wait_for(&ran);
    server.child.kill().unwrap();
    server.child.wait().unwrap();

    let server = Server::start(directory.path(), &["--log-level", "info"]);
    let (status, body) = server.ask("POST", TURNS, key, &turn("pay", "result"));
    let end: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &end["response"]), (200, &json!("It may be paid.")), "{body}");
    assert_eq!(fs::read_to_string(&ran).unwrap(), "once\n", "what may have been done is not done again");
    let (_, messages) = server.ask("GET", "/v1/agents/clerk/instances/ada/messages", "", "");
    let messages: Vec<Value> = serde_json::from_str(&messages).unwrap();
    assert_eq!(messages.iter().filter(|message| message["data"]["role"] == "user").count(), 1, "{messages:?}");
    server.signal(nix::sys::signal::Signal::SIGTERM);
    let (code, printed) = server.end();
    assert!(code == Some(0) && printed.is_empty(), "{printed}");
}

#[test]
#[covers("SERVE-01")]
fn a_turn_that_outlasts_the_grace_is_left_open() {
    let directory = bundle("");
    let ran = directory.path().join("ran");
    let command = format!("touch {}; sleep 100", ran.display());
    let call = json!({ "call": { "tool": "bash__exec", "args": { "command": command } }, "when": "^wait$" });
    fs::write(directory.path().join("script.yaml"), format!("[{call}, {}]", json!({ "say": "ok" }))).unwrap();
    let server = Server::start(directory.path(), &["--grace", "0"]);
    let mut watching = server.send("POST", TURNS, "", &turn("wait", "stream"));
    wait_for(&ran);
    server.signal(nix::sys::signal::Signal::SIGTERM);
    let mut stream = String::new();
    watching.read_to_string(&mut stream).unwrap();
    assert!(stream.contains("event: handover"), "{stream}");
    let (code, printed) = server.end();
    assert!(code == Some(0) && printed.contains("turns are left open"), "{code:?} {printed}");
    let server = Server::start(directory.path(), &[]);
    let list = server.ask("GET", "/v1/agents/clerk/instances", "", "").1;
    assert!(list.contains("\"ada\""), "{list}");
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.end().0, Some(0));
}

#[test]
#[covers("SERVE-03")]
fn other_machines_are_listened_to_with_tokens_alone() {
    let directory = bundle("- { say: hi }\n");
    let run = |arguments: &[&str]| {
        let mut command = goondan();
        command.args(["serve", "--trust"]).arg(directory.path()).args(arguments);
        command.arg("--state-root").arg(directory.path().join(".state")).output().unwrap()
    };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let refused = run(&["--listen", address]);
        assert_eq!(refused.status.code(), Some(2), "{address}: {refused:?}");
        assert!(
            stderr(&refused).contains("E_SERVE_TOKENS") && stderr(&refused).contains("--token-file"),
            "{refused:?}"
        );
    }
    for (text, expected) in [("", "there are no tokens"), ("ada", "line 1 of the tokens")] {
        fs::write(directory.path().join("tokens"), text).unwrap();
        let refused = run(&["--token-file", directory.path().join("tokens").to_str().unwrap()]);
        assert!(refused.status.code() == Some(2) && stderr(&refused).contains(expected), "{refused:?}");
    }
    let missing = run(&["--token-file", "/nowhere/tokens"]);
    assert!(missing.status.code() == Some(2) && stderr(&missing).contains("/nowhere/tokens"), "{missing:?}");
}

/// The commands of `docs/serving.md`.
#[test]
#[covers("SERVE-03")]
fn a_principal_uses_its_token() {
    let directory = bundle("- { say: hi, repeat: true }\n");
    let line = "printf 'ada: %s\\n' \"$(printf %s \"$TOKEN\" | sha256sum | cut -d' ' -f1)\" >> tokens";
    let page = fs::read_to_string(checkout().join("docs/serving.md")).unwrap();
    assert!(page.contains(line));
    let mut shell = Command::new("sh");
    printed(shell.args(["-c", line]).env("TOKEN", "a secret of ada").current_dir(directory.path()));
    let tokens = directory.path().join("tokens");
    let server = Server::start(directory.path(), &["--token-file", tokens.to_str().unwrap()]);
    let turns = "/v1/agents/clerk/instances/ada:notes/turns";
    let (status, body) = server.ask("POST", turns, "Authorization: Bearer a secret of ada\r\n", &turn("hi", "result"));
    assert!(status == 200 && body.contains("\"response\":\"hi\""), "{body}");
    assert_eq!(server.ask("POST", turns, "", &turn("hi", "result")).0, 401);
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.end().0, Some(0));
}

/// The ways in which a client asks for the same turn again: the path, the headers and the body.
fn asked(wire: &str, run: u64) -> (String, &'static str, String) {
    let key = "Idempotency-Key: payment\r\n";
    let native = || format!("/v1/agents/clerk/instances/run-{run}/turns");
    match wire {
        "stream" | "accepted" => (native(), key, turn("pay", wire)),
        "ui" => {
            let message = json!({ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": "pay" }] });
            let chat = json!({ "id": format!("run-{run}"), "messages": [message] });
            ("/v1/agents/clerk/ui".to_owned(), "", chat.to_string())
        }
        _ => {
            let message = json!({ "id": "m1", "role": "user", "content": "pay" });
            let input = json!({ "threadId": format!("run-{run}"), "runId": "r1", "messages": [message] });
            ("/v1/agents/clerk/ag-ui".to_owned(), "", input.to_string())
        }
    }
}

/// Killed at any moment, also while it starts again: each input is there once, and each key has one answer, over every
/// wire. `GOONDAN_RUNS` is how often.
#[test]
#[covers("SERVE-01", "SERVE-02", "EFFECT-01")]
fn kills_at_any_moment_lose_no_turn_and_double_none() {
    let runs: u64 = std::env::var("GOONDAN_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(8);
    let directory = bundle("");
    let ran = directory.path().join("ran");
    let command = format!("echo $RANDOM >> {}; sleep 0.02", ran.display());
    let call =
        json!({ "call": { "tool": "bash__exec", "args": { "command": command } }, "when": "^pay$", "repeat": true });
    let script = format!("[{call}, {}]", json!({ "say": "It may be paid.", "repeat": true }));
    fs::write(directory.path().join("script.yaml"), script).unwrap();
    for run in 0..runs {
        let wire = ["stream", "accepted", "ui", "ag-ui"][usize::try_from(run % 4).unwrap()];
        let (path, headers, body) = asked(wire, run);
        for kill in 0..2 {
            let mut server = Server::start(directory.path(), &[]);
            let watching = server.send("POST", &path, headers, &body);
            // Moments that no two runs share.
            std::thread::sleep(std::time::Duration::from_micros(run * 7919 % 60_000 + kill * 500));
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            drop(watching);
        }
        let server = Server::start(directory.path(), &[]);
        // The client comes back: the same request, and for a turn that was accepted the end of it.
        let (path, headers, body) = asked(if wire == "accepted" { "stream" } else { wire }, run);
        let (status, told) = server.ask("POST", &path, headers, &body);
        assert!(status == 200 && told.contains("It may be paid."), "run {run} over {wire}: {told}");
        let (_, messages) = server.ask("GET", &format!("/v1/agents/clerk/instances/run-{run}/messages"), "", "");
        let messages: Vec<Value> = serde_json::from_str(&messages).unwrap();
        let count = |role: &str| messages.iter().filter(|message| message["data"]["role"] == role).count();
        assert_eq!(
            (count("user"), count("assistant"), count("tool")),
            (1, 2, 1),
            "run {run} over {wire}: {messages:?}"
        );
        server.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(server.end().0, Some(0));
        let lines = fs::read_to_string(&ran).unwrap_or_default().lines().count();
        assert!(lines as u64 <= run + 1, "run {run} over {wire}: the command ran {lines} times");
    }
}

#[test]
#[covers("SERVE-01", "ONCE-01")]
fn what_was_accepted_is_answered_after_kill_9() {
    let directory = bundle("- { say: hi, repeat: true }\n");
    // No turn may run, so that all wait.
    let mut server = Server::start(directory.path(), &["--max-turns", "0"]);
    let mut places = Vec::new();
    for input in ["one", "two", "three"] {
        let mut answer = String::new();
        server.send("POST", TURNS, "", &turn(input, "accepted")).read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        places.push(answer.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().trim().to_owned());
    }
    server.child.kill().unwrap();
    server.child.wait().unwrap();

    let server = Server::start(directory.path(), &[]);
    for place in &places {
        let (status, events) = server.ask("GET", &format!("{place}/events"), "", "");
        assert!(status == 200 && events.contains("\"response\":\"hi\""), "{events}");
    }
    let (_, messages) = server.ask("GET", "/v1/agents/clerk/instances/ada/messages", "", "");
    let messages: Vec<Value> = serde_json::from_str(&messages).unwrap();
    let inputs: Vec<_> = messages.iter().filter(|message| message["data"]["role"] == "user").collect();
    let inputs: Vec<_> = inputs.iter().map(|message| message["data"]["content"].as_str().unwrap()).collect();
    assert_eq!(inputs, ["one", "two", "three"]);
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.end().0, Some(0));
}

#[test]
#[covers("SERVE-01")]
fn a_second_signal_ends_a_server_that_waits_for_its_turns() {
    let directory = bundle("");
    let ran = directory.path().join("ran");
    let command = format!("touch {}; sleep 100", ran.display());
    let call = json!({ "call": { "tool": "bash__exec", "args": { "command": command } } });
    fs::write(directory.path().join("script.yaml"), format!("[{call}]")).unwrap();
    let mut server = Server::start(directory.path(), &["--grace", "100"]);
    let _watching = server.send("POST", TURNS, "", &turn("wait", "stream"));
    wait_for(&ran);
    server.signal(nix::sys::signal::Signal::SIGTERM);
    let mut line = String::new();
    while !line.contains("leaving when 1 turns have ended") {
        assert_ne!(server.errors.read_line(&mut line).unwrap(), 0, "{line}");
    }
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_ne!(server.end().0, Some(0));
}

/// The server of `docs/bundles.md`, on a free port.
#[test]
#[covers("SERVE-03")]
fn the_server_of_a_bundle_says_who_may_use_it() {
    let page = fs::read_to_string(checkout().join("docs/bundles.md")).unwrap();
    let written = page.split("```yaml\n").find(|block| block.contains("kind: Server")).unwrap();
    let written = written.split("```").next().unwrap().replace("Agent/guide", "Agent/clerk");
    let directory = bundle("- { say: hi, repeat: true }\n");
    let other = AGENT.split("---\n").nth(1).unwrap().replace("clerk", "other");
    let swarm = "apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: { name: shop }\n\
                 spec: { agents: [ { ref: Agent/clerk }, { ref: Agent/other } ], entryAgent: Agent/clerk }\n";
    let write = |server: &str| {
        let text = format!("{MODEL}{AGENT}---\n{other}---\n{swarm}---\n{server}");
        fs::write(directory.path().join("goondan.yaml"), text).unwrap();
    };
    write(&written);
    let server = Server::start(directory.path(), &["--ui"]);
    let ada = "Authorization: Bearer one\r\n";
    let turns = "/v1/agents/clerk/instances/ada:1/turns";
    assert_eq!(server.ask("POST", turns, "", &turn("hi", "result")).0, 401);
    assert_eq!(server.ask("POST", turns, ada, &turn("hi", "result")).0, 200);
    assert_eq!(server.ask("GET", "/v1/agents", ada, "").1, "{\"agents\":[\"clerk\"]}");
    let support = "Authorization: Bearer two\r\n";
    assert_eq!(server.ask("POST", turns, support, &turn("hi", "result")).0, 403, "it may read and decide");
    assert_eq!(server.ask("GET", "/v1/agents/clerk/instances/ada:1/messages", support, "").0, 200);
    assert!(server.ask("GET", "/", "", "").1.contains("<title>goondan</title>"));
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.end().0, Some(0));
    // The address is that of the bundle, unless another one is passed.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    write(&written.replace("0.0.0.0:7717", &address.to_string()));
    let mut command = goondan();
    command.args(["serve", "--trust"]).arg(directory.path()).arg("--state-root").arg(directory.path().join(".state"));
    let refused = command.output().unwrap();
    assert!(stderr(&refused).contains(&format!("cannot listen on {address}")), "{refused:?}");
}

#[test]
#[covers("SERVE-01", "ASK-01")]
fn the_example_answers_asks_and_pays_when_it_may() {
    let state = TempDir::new().unwrap();
    let example = checkout().join("examples/serve");
    let mut command = goondan();
    command
        .args(["serve", "--ui", "--trust", "--listen", "127.0.0.1:0", "--state-root"])
        .arg(state.path())
        .arg(example);
    let server = Server::of(command);
    assert!(server.ask("GET", "/", "", "").1.contains("<title>goondan</title>"));
    let end = |body: &str| -> Value {
        let last = body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
        serde_json::from_str(last).unwrap()
    };
    let asked = end(&server.ask("POST", TURNS, "", &turn("refund order 1183", "stream")).1);
    let decisions = TURNS.replace("/turns", "/decisions");
    let decide = |wait: &Value, value: Value| {
        let decision = json!([{ "call": wait["call"], "value": value }]).to_string();
        end(&server.ask("POST", &decisions, "", &decision).1)
    };
    let [question] = &asked["waits"].as_array().unwrap()[..] else { panic!("{asked}") };
    assert_eq!(question["tool"], "ask__person");
    let asked = decide(question, json!("by card"));
    let [approval] = &asked["waits"].as_array().unwrap()[..] else { panic!("{asked}") };
    assert_eq!(approval["args"]["command"], "echo paid 49.00 EUR by card");
    assert_eq!(decide(approval, json!(true))["response"], "Done: 49.00 EUR are on their way.");
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.end().0, Some(0));
}

#[test]
#[covers("SERVE-01")]
fn a_bundle_that_changes_is_reloaded_and_open_conversations_go_on() {
    let directory = bundle("- { say: before, repeat: true }\n");
    let mut server = Server::start(directory.path(), &["--watch", "--log-level", "info"]);
    assert!(server.ask("POST", TURNS, "", &turn("hello", "result")).1.contains("before"));
    fs::write(directory.path().join("script.yaml"), "- { say: after, repeat: true }\n").unwrap();
    let mut line = String::new();
    while !line.contains("reloaded") {
        assert_ne!(server.errors.read_line(&mut line).unwrap(), 0, "{line}");
    }
    assert!(server.ask("POST", TURNS, "", &turn("hello", "result")).1.contains("after"));
    let (_, messages) = server.ask("GET", &TURNS.replace("/turns", "/messages"), "", "");
    assert_eq!(serde_json::from_str::<Vec<Value>>(&messages).unwrap().len(), 4);
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.end().0, Some(0));
}

#[test]
#[covers("D-40", "SERVE-01")]
fn a_stream_has_the_updates_of_the_agents_that_are_asked_if_it_is_to_have_them() {
    // The script of the bundle is for one turn.
    let ask = |path: &str, body: &str| {
        let bundle = bundle_of_tasks();
        Server::start(bundle.path(), &[]).ask("POST", &format!("/v1/agents/boss/{path}"), "", body)
    };
    let children = |body: &str| -> Vec<Value> {
        let lines = body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
        lines.filter(|update: &Value| update["type"] == "child").collect()
    };
    let (_, body) = ask("instances/ada/turns", &turn("work", "stream"));
    assert!(body.contains("both are done") && children(&body).is_empty(), "{body}");
    let (status, body) = ask("instances/ada/turns?children=true", &turn("work", "stream"));
    let told = children(&body);
    let mut texts: Vec<_> = told.iter().filter_map(|told| told["update"]["text"].as_str()).collect();
    texts.sort_unstable();
    assert_eq!((status, texts), (200, vec!["1", "2"]), "{body}");
    assert!(told.iter().all(|told| told["agentName"] == "worker" && told["toolCallId"].is_string()), "{told:?}");

    // The front ends pass them on.
    let text = json!({ "type": "text", "text": "work" });
    let chat = json!({ "id": "c", "messages": [{ "id": "m", "role": "user", "parts": [text] }] });
    let (_, body) = ask("ui?children=true", &chat.to_string());
    assert!(body.contains("\"type\":\"data-child\"") && body.contains("both are done"), "{body}");
    for (query, wait) in [("children=yes", "stream"), ("children=true", "accepted")] {
        let (status, problem) = ask(&format!("instances/ada/turns?{query}"), &turn("work", wait));
        assert!(status == 400 && problem.contains("`children`"), "{problem}");
    }
}
