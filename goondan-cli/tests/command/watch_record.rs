//! `goondan run --watch --cassettes record`: one recording, however often the bundle changes meanwhile.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

use goondan_covers::covers;
use tempfile::TempDir;

use crate::support::goondan;

/// Reads a request, and answers it with `text`.
fn answer(connection: TcpStream, text: &str) {
    let mut reader = BufReader::new(&connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let event = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\n"
    );
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
    write!(&connection, "{head}{event}data: [DONE]\n\n").unwrap();
}

/// Returns the bundle, whose agent has these instructions.
fn bundle(url: &str, system: &str) -> String {
    format!(
        "apiVersion: goondan.ai/v1
kind: Model
metadata: {{ name: main }}
spec: {{ provider: openai-compatible, model: m, baseUrl: '{url}' }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: main }}
spec: {{ model: Model/main, system: {system} }}
"
    )
}

#[test]
#[covers("MODEL-04")]
fn a_reload_continues_the_recording() {
    let root = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let manifest = root.path().join("goondan.yaml");
    fs::write(&manifest, bundle(&url, "One.")).unwrap();
    let server = thread::spawn(move || {
        for text in ["first", "second", "third"] {
            answer(listener.accept().unwrap().0, text);
        }
    });
    let command = |state: &str| {
        let mut command = goondan();
        command.args(["run", "--trust"]).arg(root.path()).arg("--state-root").arg(root.path().join(state));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };

    let mut child = command("recorded").args(["--watch", "--cassettes", "record"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut status = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut turn = |input: &str| {
        writeln!(stdin, "{input}").unwrap();
        answers.next().unwrap().unwrap()
    };
    assert_eq!([turn("one"), turn("two")], ["first", "second"]);
    fs::write(&manifest, bundle(&url, "Two.")).unwrap();
    let is_reload = |line: std::io::Result<String>| line.unwrap().starts_with("reloaded");
    assert!(status.by_ref().any(is_reload));
    assert_eq!(turn("three"), "third");
    drop(stdin);
    assert!(child.wait().unwrap().success());
    server.join().unwrap();
    assert!(!status.any(is_reload), "the recording is no file of the bundle");
    let cassette = fs::read_to_string(root.path().join("cassettes/main.jsonl")).unwrap();
    assert_eq!(cassette.lines().count(), 4, "the head, and each exchange once: {cassette}");

    // Played without the server: the first two turns with the first instructions.
    fs::write(&manifest, bundle(&url, "One.")).unwrap();
    let mut child = command("played").args(["--cassettes", "replay"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(std::str::from_utf8(&output.stdout).unwrap(), "first\nsecond\n", "{output:?}");
}
