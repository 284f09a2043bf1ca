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

    /// Posts a message. Returns the response as it comes in.
    fn post(&self, user: &str, message: &str) -> Response {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        write!(
            stream,
            "POST /{user} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{message}",
            message.len()
        )
        .unwrap();
        let mut response = Response(BufReader::new(stream));
        let status = response.line().unwrap();
        assert!(status.contains("200"), "{status}");
        response
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

    /// Returns the kind and the data of the next event. The lengths of chunks and comments are skipped.
    fn event(&mut self) -> Option<(String, String)> {
        let mut kind = None;
        while let Some(line) = self.line() {
            if let Some(name) = line.strip_prefix("event: ") {
                kind = Some(name.trim().to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((kind.unwrap(), data.trim().to_owned()));
            }
        }
        None
    }

    fn events(&mut self) -> Vec<(String, String)> {
        std::iter::from_fn(|| self.event()).collect()
    }
}

#[test]
fn users_are_answered_in_pieces_until_the_service_is_told_to_end() {
    let mut service = Service::start();
    let hello = "Hello! I answer each user in a conversation of their own.";
    for user in ["ann", "bob"] {
        let events = service.post(user, "hello").events();
        let (end, pieces) = events.split_last().unwrap();
        assert_eq!(*end, ("end".to_owned(), format!("{hello:?}")));
        assert_eq!(pieces.len(), 3, "{events:?}");
        assert!(pieces.iter().all(|(kind, _)| kind == "text"));
    }

    // A client that leaves stops its turn: the next one of the same user does not wait for it.
    let mut left = service.post("ann", "wait for long");
    assert_eq!(left.event().unwrap(), ("call".to_owned(), "\"wait__seconds\"".to_owned()));
    drop(left);
    assert_eq!(service.post("ann", "hello").events().last().unwrap().0, "end");

    // After SIGTERM, a turn that runs is answered, and new requests are refused.
    let mut running = service.post("bob", "wait a second");
    assert_eq!(running.event().unwrap().0, "call");
    service.terminate();
    wait_for(&mut service.log, "draining");
    // The rest of the log, so that the service does not wait for its reader.
    let mut log = service.log;
    let rest = thread::spawn(move || _ = log.read_to_string(&mut String::new()));
    assert_eq!(running.events().last().unwrap().0, "end");
    assert!(service.child.wait().unwrap().success());
    rest.join().unwrap();
    assert!(TcpStream::connect(&service.address).is_err());
}
