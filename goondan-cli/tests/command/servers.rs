//! The processes of MCP servers: they are listed, and end with the command, however it ends.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use goondan_covers::covers;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{checkout, goondan, stdout};

/// Long enough that a test fails by it only if something hangs.
const LONG: Duration = Duration::from_secs(60);

fn example() -> PathBuf {
    checkout().join("examples/mcp")
}

#[test]
fn the_list_has_the_tools_of_servers_only_if_they_are_started() {
    let list = |arguments: &[&str]| goondan().args(["plugin", "list"]).arg(example()).args(arguments).output().unwrap();
    assert!(!stdout(&list(&[])).contains("clock__now"));
    let page = list(&["--start", "--trust"]);
    let expected = "\ntools of the agent guide\n  clock__now    Tells the time.\n  clock__greet  Greets the user.\n\n  \
                    clock: MCP server clock: connected, 2 tools\n    tools.pin:\n";
    let page = stdout(&page);
    let (_, digests) = page.split_once(expected).unwrap_or_else(|| panic!("{page}"));
    let digests: Vec<_> = digests.lines().map(|line| line.trim().split_once(": ").unwrap()).collect();
    assert_eq!(digests.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["\"greet\"", "\"now\""]);
    let json = list(&["--start", "--trust", "--json"]);
    let listed: Vec<Value> = serde_json::from_slice(&json.stdout).unwrap();
    let agent = listed.iter().find(|listed| listed["kind"] == "agent").unwrap();
    assert_eq!((&agent["name"], &agent["tools"][0]["effect"]), (&"guide".into(), &"read".into()));
    assert_eq!(agent["tools"][0]["source"]["serverName"], "clock");
    assert_eq!(agent["reports"]["clock"], "MCP server clock: connected, 2 tools");
    assert_eq!(agent["digests"]["clock"]["now"].to_string(), digests[1].1);
}

/// The digests are written to the bundle as they are printed.
#[test]
fn a_tool_that_differs_from_its_pin_is_not_listed() {
    let dir = TempDir::new().unwrap();
    for name in ["script.yaml", "server.sh"] {
        fs::copy(example().join(name), dir.path().join(name)).unwrap();
    }
    let bundle = fs::read_to_string(example().join("goondan.yaml")).unwrap();
    let listed = |pins: &str| {
        let effects = "      effects: { now: read }\n";
        let pinned = bundle.replace(effects, &format!("{effects}      pin: {{ {pins} }}\n"));
        fs::write(dir.path().join("goondan.yaml"), pinned).unwrap();
        goondan().args(["plugin", "list", "--start", "--trust"]).arg(dir.path()).output().unwrap()
    };
    let page = stdout(&listed("")).to_owned();
    let (_, pins) = page.split_once("tools.pin:\n").unwrap();
    let pins = pins.lines().map(str::trim).collect::<Vec<_>>().join(", ");
    let same = listed(&pins);
    assert_eq!(stdout(&same), page, "{same:?}");
    let other = listed(&format!("greet: \"{}\"", "0".repeat(64)));
    assert!(stdout(&other).contains("clock__now") && !stdout(&other).contains("clock__greet"), "{other:?}");
    assert!(
        String::from_utf8_lossy(&other.stderr).contains("the tool `greet` is withheld: its digest is "),
        "{other:?}"
    );
}

/// Ignores the end of its input and every signal that can be ignored, and so does its child. Both have the file `$0`
/// open, which tells whether they are alive.
const STUBBORN: &str = r#"
trap '' HUP INT TERM
exec 9> "$0"
sh -c 'printf c >&9; while :; do sleep 1000; done' &
printf s >&9
. "$1"
while :; do sleep 1000; done
"#;

/// A running command beside a stubborn server.
struct Running {
    _dir: TempDir,
    goondan: Child,
    _stdin: ChildStdin,
    alive: File,
}

impl Running {
    /// Starts the command, and waits until the server and its child run.
    fn start() -> Self {
        let dir = TempDir::new().unwrap();
        let alive = dir.path().join("alive");
        nix::unistd::mkfifo(&alive, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let bundle = fs::read_to_string(example().join("goondan.yaml")).unwrap();
        let server = example().join("server.sh");
        let command = serde_json::json!(["sh", "-c", STUBBORN, alive, server]).to_string();
        assert!(bundle.contains("[sh, server.sh]"));
        fs::write(dir.path().join("goondan.yaml"), bundle.replace("[sh, server.sh]", &command)).unwrap();
        fs::copy(example().join("script.yaml"), dir.path().join("script.yaml")).unwrap();
        let mut command = goondan();
        command.args(["run", "--trust", "--state-root"]).arg(dir.path().join("state")).arg(dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut goondan = command.spawn().unwrap();
        let stdin = goondan.stdin.take().unwrap();
        let mut alive = File::open(alive).unwrap();
        alive.read_exact(&mut [0; 2]).unwrap();
        Self { _dir: dir, goondan, _stdin: stdin, alive }
    }

    fn kill(&mut self) {
        self.goondan.kill().unwrap();
        self.goondan.wait().unwrap();
    }

    /// Waits until the server and its child are gone.
    fn wait_for_end(mut self) {
        assert_eq!(self.alive.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
#[covers("PROC-01", "PATTERN-MCP-05")]
fn a_stubborn_server_and_its_child_end_with_a_command_that_is_killed() {
    // Four at a time. Each is killed at another moment of the start of the conversation.
    let (done, all) = mpsc::channel();
    for _ in 0..4 {
        let done = done.clone();
        thread::spawn(move || {
            for moment in 0..25 {
                let mut running = Running::start();
                thread::sleep(Duration::from_millis(moment));
                running.kill();
                running.wait_for_end();
                done.send(()).unwrap();
            }
        });
    }
    for kills in 0..100 {
        all.recv_timeout(LONG).unwrap_or_else(|error| panic!("after {kills} kills: {error}"));
    }
}
