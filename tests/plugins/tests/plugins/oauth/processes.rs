//! Several processes with the same tokens, and processes that are killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use goondan::agent::Instance;
use goondan::{Value, json};
use goondan_covers::both_linkages;
use tempfile::TempDir;

use super::server::{Server, browse};
use super::support::{ask_in, code, config_at, fingerprint, open_at, page};

/// What a child does: the state root, the URL of the server, the key of its conversation, and what it asks for.
const JOB: &str = "GOONDAN_OAUTH_TEST";

/// What the tests below run in processes of their own; nothing without the variable.
#[both_linkages]
async fn child() {
    let Some(job) = std::env::var_os(JOB) else { return };
    let job: Value = goondan::json::from_str(job.to_str().unwrap()).unwrap();
    let text = |name: &str| job[name].as_str().unwrap().to_owned();
    let chat = open_at(Path::new(&text("root")), &text("key"), config_at(&text("url"))).await;
    // All children begin at once.
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let answers = ask_in(&chat, None, job["ask"].clone()).await;
    println!("\nanswers {}", Value::from(answers));
    chat.close().await.unwrap();
}

async fn ask(chat: &Instance, ask: Value) -> Value {
    ask_in(chat, None, ask).await.remove(0)
}

/// A process that runs `child`.
struct Process {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Process {
    fn start(job: Value) -> Self {
        let name = std::thread::current().name().unwrap().to_owned();
        let linkage = name.rsplit("::").next().unwrap().to_owned();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", &format!("oauth::processes::child::{linkage}")]);
        command.env(JOB, job.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self, start: &str) -> String {
        self.lines.by_ref().map(Result::unwrap).find(|line| line.starts_with(start)).unwrap()
    }

    fn go(&mut self) {
        self.child.stdin.as_ref().unwrap().write_all(b"go\n").unwrap();
    }

    /// Returns the answers that the child got.
    async fn answers(mut self) -> Vec<Value> {
        let answers = tokio::task::spawn_blocking(move || {
            let line = self.line("answers ");
            self.child.wait().unwrap();
            line
        });
        goondan::json::from_str(answers.await.unwrap().strip_prefix("answers ").unwrap()).unwrap()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn job(root: &TempDir, server: &Server, key: &str, ask: Value) -> Value {
    json!({ "root": root.path(), "url": server.url, "key": key, "ask": ask })
}

/// Signs in to the app `page`, with a token that has expired.
async fn sign_in(root: &TempDir, server: &Server) {
    let chat = open_at(root.path(), "first", config_at(&server.url)).await;
    server.set(|settings| settings.expires_in = 0);
    browse(&page(&ask(&chat, json!({ "app": "page" })).await)).await;
    server.set(|settings| settings.expires_in = 3600);
    chat.close().await.unwrap();
}

#[both_linkages]
async fn of_a_hundred_requests_in_four_processes_one_refreshes_the_token() {
    let (root, server) = (TempDir::new().unwrap(), Server::start());
    sign_in(&root, &server).await;
    let wanted = json!({ "app": "page", "times": 25 });
    let keys = ["a", "b", "c", "d"];
    let mut processes = keys.map(|key| Process::start(job(&root, &server, key, wanted.clone())));
    processes.iter_mut().for_each(|process| drop(process.line("ready")));
    processes.iter_mut().for_each(Process::go);
    let mut answers = Vec::new();
    for process in processes {
        answers.extend(process.answers().await);
    }
    assert_eq!(answers.len(), 100);
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer["kind"] == "Bearer"), "{answers:?}");
    assert_eq!(server.log(), ["authorization_code ok", "refresh_token ok"]);
    assert_eq!(server.logouts(), 0);
    // What was kept works for the next refresh.
    let chat = open_at(root.path(), "last", config_at(&server.url)).await;
    assert_eq!(ask(&chat, json!({ "app": "page", "refused": true })).await["kind"], "Bearer");
    assert_eq!(server.logouts(), 0);
}

/// Runs a process until the server has sent a new token that the process does not get, and kills it.
async fn kill_in_refresh(server: &Server, job: Value) {
    server.set(|settings| settings.silent = true);
    let mut process = Process::start(job);
    process.line("ready");
    process.go();
    while server.log().last().is_none_or(|last| last != "silent") {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    process.kill();
    server.set(|settings| settings.silent = false);
}

#[both_linkages]
async fn after_a_kill_between_answer_and_save_the_next_start_asks_once() {
    let (root, server) = (TempDir::new().unwrap(), Server::start());
    // Without a person.
    let service = json!({ "app": "service" });
    kill_in_refresh(&server, job(&root, &server, "a", service.clone())).await;
    let chat = open_at(root.path(), "b", config_at(&server.url)).await;
    let answers = ask_in(&chat, None, json!({ "app": "service", "times": 10 })).await;
    assert!(answers.iter().all(|answer| answer["kind"] == "Bearer"), "{answers:?}");
    assert_eq!(server.log(), ["client_credentials ok", "silent", "client_credentials ok"]);
    chat.close().await.unwrap();

    // With a refresh token, which the server takes once more.
    sign_in(&root, &server).await;
    server.set(|settings| settings.lenient = true);
    let before = server.log().len();
    let wanted = json!({ "app": "page" });
    kill_in_refresh(&server, job(&root, &server, "a", wanted.clone())).await;
    let chat = open_at(root.path(), "c", config_at(&server.url)).await;
    let answer = ask(&chat, wanted).await;
    assert_eq!(answer["digest"], fingerprint(&server.secrets()[server.secrets().len() - 2]), "{answer}");
    assert_eq!(server.log()[before..], ["refresh_token ok", "silent", "refresh_token ok"]);
    chat.close().await.unwrap();
}

#[both_linkages]
async fn after_a_kill_a_server_that_takes_no_token_twice_needs_one_sign_in() {
    let (root, server) = (TempDir::new().unwrap(), Server::start());
    sign_in(&root, &server).await;
    let wanted = json!({ "app": "page" });
    kill_in_refresh(&server, job(&root, &server, "a", wanted.clone())).await;
    let chat = open_at(root.path(), "b", config_at(&server.url)).await;
    assert_eq!(code(&ask(&chat, wanted.clone()).await), "tokenRevoked");
    browse(&page(&ask(&chat, wanted.clone()).await)).await;
    assert_eq!(ask(&chat, wanted).await["kind"], "Bearer");
}
