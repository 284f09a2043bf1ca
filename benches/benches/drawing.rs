//! The processor's time that an answer takes while it is drawn on a terminal: with its Markdown, its code in colours
//! and the status below it, beside the same answer in a pipe. The model is a server of this process, which sends the
//! pieces evenly.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use goondan_benches::sample::command;
use goondan_benches::{Pair, head, row};
use pty_process::Size;
use pty_process::blocking::{Command as OnTerminal, Pty};

const SECONDS: u32 = 4;
/// Between two writes of the server.
const TICK: Duration = Duration::from_millis(10);
const ANSWER: &str = "A *short* paragraph with `code` in it, **loud** words, and enough of them for two lines.\\n\\n\
                      - one\\n- two\\n\\n```rust\\nfn main() { let three = 1 + 2; } // adds\\n```\\n\\n";

fn main() {
    let goondan = command(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory"));
    head("The processor's time for a second of an answer", "in a pipe");
    for pieces in [100, 1_000, 10_000] {
        let root = tempfile::tempdir().expect("a directory");
        let server = bundle(root.path());
        let args = ["--trust".as_ref(), root.path(), "--state-root".as_ref(), root.path(), "--instance".as_ref()];
        let ours = {
            let (terminal, pts) = pty_process::blocking::open().expect("a terminal");
            terminal.resize(Size::new(40, 80)).expect("a size");
            let command = OnTerminal::new(&goondan).arg("run").args(args).arg("terminal");
            let child = command.env("TERM", "xterm-256color").spawn(pts).expect("the command");
            let terminal = Arc::new(terminal);
            measured(child, Keys(Arc::clone(&terminal)), Keys(terminal), &server, pieces)
        };
        let yardstick = {
            let mut command = Command::new(&goondan);
            command.arg("run").args(args).arg("pipe").stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.stderr(Stdio::null()).spawn().expect("the command");
            let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
            measured(child, input, output, &server, pieces)
        };
        row(&format!("{pieces} pieces a second"), SECONDS, Pair { ours, yardstick });
    }
}

/// Writes a bundle whose model is the server that it returns.
fn bundle(root: &Path) -> TcpListener {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address");
    let bundle = format!(
        "apiVersion: goondan.ai/v1
kind: Model
metadata: {{ name: main }}
spec: {{ provider: openai-compatible, model: m, baseUrl: 'http://{address}' }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: main }}
spec: {{ model: Model/main }}
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: {{ name: drawing }}
spec: {{ agents: [ {{ ref: Agent/main }} ], entryAgent: Agent/main }}
"
    );
    fs::write(root.join("goondan.yaml"), bundle).expect("a bundle");
    server
}

/// Types an input, answers it, and returns the processor's time from the input to the end of the answer.
fn measured(
    mut child: Child,
    mut input: impl Write,
    mut output: impl Read + Send + 'static,
    server: &TcpListener,
    pieces: u32,
) -> Duration {
    let (started, start) = mpsc::channel();
    let drain = thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while output.read(&mut buffer).is_ok_and(|read| read > 0) {
            let _received_once = started.send(());
        }
    });
    // A pipe shows no prompt.
    let _shown = start.recv_timeout(Duration::from_millis(500));
    let before = processors(&child);
    input.write_all(b"go\n").expect("an input");
    answer(server, pieces).expect("an answer");
    let spent = processors(&child).saturating_sub(before);
    child.kill().expect("it is ended");
    child.wait().expect("it has ended");
    drop(input);
    drain.join().expect("no panic");
    spent
}

/// Sends [`ANSWER`] again and again, a word in each piece.
fn answer(server: &TcpListener, pieces: u32) -> io::Result<()> {
    let (mut stream, _) = server.accept()?;
    let _request = stream.read(&mut [0; 65_536])?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let mut words = ANSWER.split_inclusive(' ').cycle();
    let begun = Instant::now();
    for tick in 1..=SECONDS * 100 {
        let words: String = words
            .by_ref()
            .take(pieces as usize / 100)
            .map(|word| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n"))
            .collect();
        stream.write_all(words.as_bytes())?;
        thread::sleep((TICK * tick).saturating_sub(begun.elapsed()));
    }
    Ok(())
}

/// Returns the processor's time of all threads of a process.
fn processors(child: &Child) -> Duration {
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).expect("its threads");
    let nanoseconds = threads.map(|thread| {
        let path = thread.expect("a thread").path().join("schedstat");
        let times = fs::read_to_string(path).unwrap_or_default();
        times.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or(0)
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// One end of a terminal.
struct Keys(Arc<Pty>);

impl Read for Keys {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for Keys {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The key of a terminal that ends a line.
        let bytes = if bytes == b"go\n" { b"go\r" } else { bytes };
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}
