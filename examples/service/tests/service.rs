//! The service as a process: users, a client that leaves, and SIGTERM.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// A test that waits longer has failed.
const LONG: Duration = Duration::from_secs(60);

/// The running service.
struct Service {
    child: Child,
    address: String,
    /// What it logs.
    log: BufReader<std::process::ChildStderr>,
    _state: TempDir,
}

impl Service {
    fn start() -> Self {
        let state = TempDir::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_goondan-service"));
        command.args([env!("CARGO_MANIFEST_DIR"), "127.0.0.1:0"]).env("GOONDAN_STATE_ROOT", state.path());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let line = wait_for(&mut log, "listening on http://");
        let address = line.rsplit("http://").next().unwrap().trim().to_owned();
        Self { child, address, log, _state: state }
    }

    /// Sends a request. Returns the response as it comes in.
    fn send(&self, method: &str, path: &str, user: &str, body: &str) -> Response {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-user: {user}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        Response(BufReader::new(stream))
    }

    /// Runs a turn of the user's conversation. Returns its path, and the response.
    fn turn(&self, user: &str, input: &str) -> (String, Response) {
        let path = format!("/api/v1/agents/assistant/instances/{user}:main/turns");
        let mut response = self.send("POST", &path, user, &format!("{{\"input\": \"{input}\"}}"));
        let status = response.line().unwrap();
        assert!(status.contains("200"), "{status}");
        let place = std::iter::from_fn(|| response.line())
            .find_map(|line| line.strip_prefix("location: ").map(|place| place.trim().to_owned()));
        (place.unwrap(), response)
    }

    fn terminate(&self) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    }
}

/// Waits for a line of the log with these words.
fn wait_for(log: &mut impl BufRead, words: &str) -> String {
    log.lines().map(Result::unwrap).find(|line| line.contains(words)).unwrap()
}

struct Response(BufReader<TcpStream>);

impl Response {
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.0.read_line(&mut line).unwrap() > 0).then_some(line)
    }

    /// Returns the data of the next event of one of these types.
    fn event(&mut self, types: &[&str]) -> Option<String> {
        std::iter::from_fn(|| self.line()).find_map(|line| {
            let data = line.strip_prefix("data: ")?;
            types.iter().any(|name| data.starts_with(&format!("{{\"type\":\"{name}\""))).then(|| data.trim().to_owned())
        })
    }

    /// Returns the end of the turn.
    fn end(&mut self) -> String {
        self.event(&["turn"]).unwrap()
    }
}

#[test]
fn users_are_answered_until_the_service_is_told_to_end() {
    let mut service = Service::start();
    let hello = "Hello! I answer each user in a conversation of their own.";
    for user in ["ann", "bob"] {
        let (_, mut response) = service.turn(user, "hello");
        assert!(response.event(&["text"]).is_some());
        assert!(response.end().contains(hello));
    }
    // A conversation is that of its user, and users have names.
    let path = "/api/v1/agents/assistant/instances/ann:main/messages";
    assert!(service.send("GET", path, "ann", "").line().unwrap().contains("200"));
    assert!(service.send("GET", path, "bob", "").line().unwrap().contains("404"));
    assert!(service.send("GET", path, "", "").line().unwrap().contains("401"));

    // A client that leaves comes back to its turn, where the routes are mounted.
    let (place, mut left) = service.turn("ann", "wait a second");
    assert!(left.event(&["tool-call"]).is_some());
    drop(left);
    assert!(service.send("GET", &format!("{place}/events"), "ann", "").end().contains("\"response\""));

    // After SIGTERM, a turn that runs is answered, and new requests are refused.
    let (_, mut running) = service.turn("bob", "wait a second");
    assert!(running.event(&["tool-call"]).is_some());
    service.terminate();
    wait_for(&mut service.log, "draining");
    // The rest of the log, so that the service does not wait for its reader.
    let mut log = service.log;
    let rest = thread::spawn(move || _ = log.read_to_string(&mut String::new()));
    assert!(running.end().contains("\"response\""));
    assert!(service.child.wait().unwrap().success());
    rest.join().unwrap();
    assert!(TcpStream::connect(&service.address).is_err());
}
