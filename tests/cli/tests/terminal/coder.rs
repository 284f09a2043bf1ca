//! `examples/coder` on a terminal: what is seen of changes, and Ctrl-C while its tests run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::screen::{CTRL_C, Screen};
use crate::support::Fixture;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/coder");

/// The example, and a repository with the sample, whose tests wait at the gate as long as there is one.
struct Coder {
    fixture: Fixture,
}

impl Coder {
    fn new() -> Self {
        let this = Self { fixture: Fixture::new() };
        this.shell(&format!("rm -r bundle && cp -r '{EXAMPLE}' bundle && mv bundle/sample repository"));
        let (tests, gate) = (this.repository().join("test.sh"), this.fixture.gate());
        let waiting = format!("if [ -e '{0}' ]; then cat '{0}'; fi\n", gate.display());
        fs::write(&tests, waiting + &fs::read_to_string(&tests).unwrap()).unwrap();
        this.shell(
            "cd repository && git init -q && git add -A && \
             git -c user.name=me -c user.email=me@localhost commit -qm 'by hand'",
        );
        this
    }

    fn repository(&self) -> PathBuf {
        self.fixture.root().join("repository")
    }

    /// Runs a command, and returns what it prints.
    fn shell(&self, command: &str) -> String {
        let output = Command::new("sh").args(["-c", command]).current_dir(self.fixture.root()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn screen(&self) -> Screen {
        let screen = Screen::start(&self.fixture, &[], &[("PWD", self.repository().to_str().unwrap())]);
        screen.shows(">");
        screen
    }

    /// Returns how many processes run in work trees.
    fn commands(&self) -> usize {
        let state = fs::canonicalize(self.fixture.state()).unwrap();
        let runs = |process: &Path| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&state));
        fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(|process| runs(&process.path())).count()
    }
}

const CHANGE: &str = "\n  greet.sh\n  @@ -1 +1 @@\n  -echo \"Hello, $1\"\n  +echo \"Hello, $1!\"\n";
const DONE: &str = "\nDone: the greeting ends with an exclamation mark, and the tests pass.\n>";

/// Says yes to the question about a call.
fn approve(screen: &Screen, call: &str) {
    screen.contains(&format!("? {call}"));
    screen.shows("(Ctrl-C: later)\n>");
    screen.send("y\r");
}

#[test]
fn edits_and_commits_are_shown_as_differences() {
    let coder = Coder::new();
    fs::remove_file(coder.fixture.gate()).unwrap();
    let screen = coder.screen();
    screen.send("fix the greeting\r");
    approve(&screen, "bash__exec  sh test.sh");
    approve(&screen, "changesets__commit  Greet with an exclamation mark");
    screen.shows(DONE);
    screen.send("/quit\r");
    let (status, shown) = screen.end();
    assert_eq!(status.code(), Some(0));
    assert_eq!(shown.matches(CHANGE).count(), 3, "{shown}");
    let (_, question) = shown.split_once("? changesets__commit").unwrap_or_else(|| panic!("nobody is asked: {shown}"));
    let (question, _) = question.split_once("approval asks: Run changesets__commit?").unwrap();
    assert!(question.contains("It commits the tree ") && question.contains(CHANGE), "{question}");
    // Each is above the end of its call.
    let (edit, commit) = shown.split_once("✓ bash__exec").unwrap_or_else(|| panic!("no tests ran: {shown}"));
    for (part, call) in [(edit, "✓ file-system__edit"), (commit, "✓ changesets__commit")] {
        let at = |text: &str| part.find(text).unwrap_or_else(|| panic!("{text} is not in {shown}"));
        assert!(at(CHANGE) < at(call), "{shown}");
    }
}

#[test]
fn ctrl_c_ends_a_command_and_leaves_the_changeset_open() {
    let coder = Coder::new();
    let screen = coder.screen();
    screen.send("fix the greeting\r");
    approve(&screen, "bash__exec  sh test.sh");
    let held = coder.fixture.reached();
    screen.contains("bash__exec sh test.sh N s");
    assert!(coder.commands() > 0, "the tests run in the work tree");
    screen.send(CTRL_C);
    screen.shows("\ncancelled\n>");
    while coder.commands() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    drop(held);
    assert_eq!(coder.shell("cd repository && git status --porcelain && git log --format=%s"), "by hand\n");
    assert_eq!(coder.shell("cd repository && git worktree list").lines().count(), 2);

    fs::remove_file(coder.fixture.gate()).unwrap();
    screen.send("go on\r");
    screen.contains("✓ changesets__list");
    approve(&screen, "bash__exec  sh test.sh");
    approve(&screen, "changesets__commit  Greet with an exclamation mark");
    screen.shows(DONE);
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
    let log = coder.shell("cd repository && git log --format=%s && git worktree list");
    assert_eq!(log.lines().next(), Some("Greet with an exclamation mark"));
    assert_eq!(log.lines().count(), 3, "{log}");
}
