//! Signed reasoning goes back to the provider unchanged after its process was killed between two steps of a turn. This
//! program is the test, and with arguments the process that is killed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "models/support/server.rs"]
mod server;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use goondan::Agent;
use goondan::agent::TurnUpdate;
use goondan::event::RuntimeEvent;
use goondan::store::FileStore;
use goondan_covers::covers;
use goondan_models::wire::Anthropic;
use goondan_models::{ModelConfig, providers};
use serde_json::Value;

use server::{Reply, Server};

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match &args[..] {
        [url, state, input, then] => runtime.block_on(turn(url, Path::new(state), input, then)),
        _ => runtime.block_on(signed_reasoning_goes_back_after_a_kill_between_two_steps()),
    }
}

/// Runs a turn to its end, or stops for ever before the second model call if `then` is `stop`: what is not polled does
/// not run.
async fn turn(url: &str, state: &Path, input: &str, then: &str) {
    let mut config = ModelConfig::new("claude-example-1");
    config.base_url = Some(url.to_owned());
    config.api_key = Some(goondan::Secret::new("key-for-tests-4711"));
    let model = config.model(&providers::ANTHROPIC, Anthropic).unwrap();
    let agent = Agent::builder("assistant").model(model).store(FileStore::open(state).unwrap()).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let mut turn = instance.run_stream(input);
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Event(event) = update
            && let RuntimeEvent::StepStarted { step, .. } = &*event
            && (step.step_index, then) == (1, "stop")
        {
            println!("between two steps");
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
            panic!("nothing killed this process");
        }
    }
    turn.finish().await.unwrap();
    agent.close().await.unwrap();
}

fn process(server: &Server, state: &Path, input: &str, then: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(server.url()).arg(state).args([input, then]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Runs `wait` while the server answers.
async fn beside_the_server<T: Send + 'static>(wait: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(wait).await.unwrap()
}

#[covers("MODEL-01")]
async fn signed_reasoning_goes_back_after_a_kill_between_two_steps() {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/anthropic");
    let read = |file: &str| std::fs::read_to_string(recordings.join(file)).unwrap();
    let stream = |file: &str| read(file).lines().map(|line| format!("data: {line}\n\n")).collect::<String>();
    let server = Server::start(["calls.jsonl", "text.jsonl"].map(|file| Reply::events(&stream(file)))).await;
    let state = tempfile::tempdir().unwrap();

    let mut killed = process(&server, state.path(), "hi", "stop").spawn().unwrap();
    let output = killed.stdout.take().unwrap();
    let line = beside_the_server(|| BufReader::new(output).lines().next()).await;
    assert_eq!(line.unwrap().unwrap(), "between two steps");
    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().code(), None, "it was killed by the signal");
    assert_eq!(server.requests().len(), 1);

    for input in ["and now?", "and then?"] {
        let mut next = process(&server, state.path(), input, "end");
        let output = beside_the_server(move || next.output().unwrap()).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let expected: Value = serde_json::from_str(&read("calls.expected.json")).unwrap();
    assert_eq!(expected["next"][0]["type"], "thinking");
    assert!(expected["next"][0]["signature"].is_string());
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "the next turns ask once each");
    for request in &requests[1..] {
        let messages = request.body["messages"].as_array().unwrap();
        assert_eq!(messages[1]["content"], expected["next"], "the reasoning, its signature, the text and the calls");
        assert_eq!(messages[2]["content"][0]["type"], "tool_result");
    }
    println!("signed reasoning goes back after a kill between two steps: ok");
}
