//! `examples/workbench`: all extensions together, over 200 turns and `kill -9`.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use goondan_covers::covers;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::goondan;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/workbench");

/// What is asked, in turn, and what is answered.
const INPUTS: [(&str, &str); 6] = [
    ("what time is it?", "The clock on the desk says so."),
    ("greet me", "The desk has greeted you."),
    ("show me the log", "The log is long. Its end says that all is well."),
    ("how busy are you?", "The other model is busy, so I answer."),
    ("I need a report", "I have read how reports are written."),
    ("close the skill", "The skill is closed."),
];

/// The input that is not answered, because the process is killed: it takes three steps and two tool calls.
const KILLED: &str = "show me the log";

/// A copy of the example whose model records its requests, and a state root.
struct Bench {
    root: TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { root: TempDir::new().unwrap() };
        let copied = Command::new("cp").arg("-r").arg(EXAMPLE).arg(bench.bundle()).status().unwrap();
        assert!(copied.success());
        let file = bench.bundle().join("goondan.yaml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, text.replace("./script.yaml }", "./script.yaml, record: ./requests.jsonl }")).unwrap();
        bench
    }

    fn bundle(&self) -> PathBuf {
        self.root.path().join("bundle")
    }

    fn start(&self) -> Process {
        let record = self.bundle().join("requests.jsonl");
        // The process before was perhaps killed while it wrote a line.
        let _ = fs::remove_file(&record);
        let mut command = goondan();
        command.args(["run", "--trust", ".", "--json", "--stream", "--state-root"]).arg(self.root.path().join("state"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(self.bundle());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Process { child, input, lines, record, read: 0 }
    }

    /// Returns how many processes were started in the directory of the bundle, as the command and its servers are.
    fn processes(&self) -> usize {
        let here = fs::canonicalize(self.bundle()).unwrap();
        let is_here = |process: &fs::DirEntry| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == here);
        fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(is_here).count()
    }

    fn wait_for_processes(&self) {
        while self.processes() > 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The command while it runs.
struct Process {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    record: PathBuf,
    /// How many of the requests in the record have been returned.
    read: usize,
}

impl Process {
    fn send(&mut self, input: &str) {
        writeln!(self.input, "{input}").unwrap();
    }

    fn line(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Returns the requests since the last time, each as its messages.
    fn requests(&mut self) -> Vec<Vec<Value>> {
        let text = fs::read_to_string(&self.record).unwrap();
        let requests = text.lines().skip(self.read).map(|line| serde_json::from_str::<Value>(line).unwrap());
        let requests: Vec<_> = requests.map(|request| request["messages"].as_array().unwrap().clone()).collect();
        self.read += requests.len();
        requests
    }

    /// Returns the lines up to the end of the turn.
    fn turn(&mut self) -> Vec<Value> {
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &Value| line["type"] != "turn") {
            lines.push(self.line());
        }
        lines
    }
}

fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        content => content.to_string(),
    }
}

/// Checks that each call has its result in the next message, and that there is at most one summary. Returns whether
/// there is one.
fn check(request: &[Value]) -> bool {
    let ids = |message: &Value, kind: &str| {
        let parts = message["content"].as_array().into_iter().flatten();
        let ids = parts.filter(|part| part["type"] == kind).map(|part| part["toolCallId"].clone());
        ids.collect::<Vec<_>>()
    };
    for (index, message) in request.iter().enumerate() {
        let calls = ids(message, "tool-call");
        let results = request.get(index + 1).map(|next| ids(next, "tool-result")).unwrap_or_default();
        assert_eq!(calls, results, "{request:#?}");
    }
    let summaries = request.iter().filter(|message| text(message).contains("The user has asked for the time")).count();
    assert!(summaries <= 1, "{request:#?}");
    assert!(request.len() <= 250, "{} messages", request.len());
    summaries > 0
}

/// Prints the median of the time that turns took from the input to the answer, without the time of their tool calls.
fn report(turns: &[(Duration, Vec<Value>)]) {
    let own = turns.iter().map(|(elapsed, lines)| {
        let events = lines.iter().map(|line| &line["event"]).filter(|event| event["type"] == "tool.completed");
        let tools = events.map(|event| Duration::from_millis(event["duration"].as_u64().unwrap())).sum();
        elapsed.saturating_sub(tools)
    });
    let mut own: Vec<_> = own.collect();
    own.sort();
    println!("the runtime's own part of a turn: median {:?}, longest {:?}", own[own.len() / 2], own[own.len() - 1]);
}

#[test]
#[covers("CRASH-01", "PAIR-01")]
fn nothing_is_lost_in_200_turns_with_kills_and_no_process_is_left() {
    const PROCESSES: usize = 10;
    let bench = Bench::new();
    let mut turns = Vec::new();
    let mut number = 0;
    let mut summarized = 0;
    // The inputs that must be in the next request, with the answers of those that have one.
    let mut expected: Vec<String> = Vec::new();
    for process in 1..=PROCESSES {
        let mut running = bench.start();
        for _ in 0..20 {
            let (input, answer) = INPUTS[number % INPUTS.len()];
            let input = format!("{number}: {input}");
            number += 1;
            let begin = Instant::now();
            running.send(&input);
            let lines = running.turn();
            let elapsed = begin.elapsed();
            assert_eq!(lines.last().unwrap()["response"], answer, "{lines:#?}");
            turns.push((elapsed, lines));
            let requests = running.requests();
            summarized += requests.iter().filter(|request| check(request)).count();
            for text in expected.drain(..) {
                assert!(
                    requests[0].iter().any(|message| self::text(message) == text),
                    "{text} is not in {requests:#?}"
                );
            }
            expected.extend([input, answer.to_owned()]);
        }
        assert!(bench.processes() > 1, "the command and its server run");
        if process == PROCESSES {
            drop(running.input);
            assert!(running.child.wait().unwrap().success());
        } else {
            let input = format!("{number}: {KILLED}");
            running.send(&input);
            // Each process is killed at a later moment of its turn than the one before.
            let seen: Vec<_> =
                (0..2 * process).map(|_| running.line()).take_while(|line| line["type"] != "turn").collect();
            running.child.kill().unwrap();
            running.child.wait().unwrap();
            // Before that, nothing was acknowledged.
            if seen.iter().any(|line| line["event"]["type"] == "step.started") {
                expected.push(input);
            }
        }
        bench.wait_for_processes();
    }
    assert_eq!(turns.len(), 200);
    assert!(summarized > 0, "the conversation was compacted");
    report(&turns);
}

#[test]
fn the_page_shows_what_the_command_prints() {
    let output = goondan().args(["order", EXAMPLE]).output().unwrap();
    let page = fs::read_to_string(Path::new(EXAMPLE).join("../../docs/composition.md")).unwrap();
    let order = String::from_utf8(output.stdout).unwrap();
    assert!(
        page.contains(&order),
        "docs/composition.md must show:\n{order}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
