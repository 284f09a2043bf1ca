//! A conversation as it looks: ten screens at three widths, and three of them as pictures for `docs/terminal.md`.
//! `BLESS=1` writes what is shown.

use std::env;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;

use goondan_covers::covers;

use crate::screen::Screen;
use crate::support::Fixture;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

const BUNDLE: &str = "
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: plan }
spec: { entry: 'linked:plan' }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: file-system }
spec: { entry: 'linked:file-system' }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: bash }
spec: { entry: 'linked:bash' }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main, extensions: [ { ref: Extension/plan }, { ref: Extension/file-system }, { ref: Extension/bash } ] }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: test }
spec: { agents: [ { ref: Agent/main } ], entryAgent: Agent/main }
";

const SCRIPT: &str = r#"
- raw: { toolCalls: [ { id: c1, name: plan__write, args: { items: [ { text: read the parser, state: active }, { text: mend it, state: open }, { text: run all tests, state: open } ] } } ], USAGE }
- raw: { toolCalls: [ { id: c2, name: file-system__write, args: { path: parser.rs, content: "fn parse(text: &str) -> usize {\n    text.len()\n}\n" } } ], USAGE }
- raw: { toolCalls: [ { id: c3, name: bash__exec, args: { command: "printf 'test a ... ok\ntest b ... ok\ntest c ... FAILED\n1 failed\n'; exit 101" } } ], USAGE }
- raw: { toolCalls: [ { id: c4, name: plan__write, args: { items: [ { text: read the parser, state: done }, { text: mend it, state: active }, { text: run all tests, state: open } ] } } ], USAGE }
- raw: { toolCalls: [ { id: c5, name: bash__exec, args: { command: cat results } } ], USAGE }
- raw: { text: "ANSWER", USAGE }
"#;

const USAGE: &str = "model: m-1, usage: { promptTokens: 12400, completionTokens: 310, totalTokens: 12710, \
                     cachedPromptTokens: 11500, cost: 0.0112 }";

const ANSWER: &str = "## Mended\\n\\nThe parser counted **bytes**; it counts *characters* now. See `parser.rs`:\\n\\n\
                      ```rust\\nfn parse(text: &str) -> usize {\\n    text.chars().count()\\n}\\n```\\n\\n\
                      - the tests pass\\n- 漢字 have two columns each, and a line that is longer than the terminal is wide is \
                      broken between words\\n\\n| test | before | after |\\n|---|---|---|\\n| c | failed | ok |\\n";

/// One conversation, and what was shown of it.
struct Session {
    screen: Screen,
    results: PathBuf,
    columns: u16,
    shown: String,
}

impl Session {
    fn start(columns: u16) -> (Fixture, Self) {
        let fixture = Fixture::new();
        fs::write(fixture.manifest(), BUNDLE).unwrap();
        let script = SCRIPT.replace("USAGE", USAGE).replace("ANSWER", ANSWER);
        fs::write(fixture.bundle().join("script.yaml"), script).unwrap();
        let workdir = fixture.state().join("workspaces/test/instances/main:default/workspace");
        fs::create_dir_all(&workdir).unwrap();
        let results = workdir.join("results");
        assert!(Command::new("mkfifo").arg(&results).status().unwrap().success());
        let screen = Screen::start_with_columns(&fixture, NonZero::new(columns).unwrap());
        screen.shows(">");
        (fixture, Self { screen, results, columns, shown: String::new() })
    }

    /// Adds what the screen shows from the last `from` on.
    fn add(&mut self, name: &str, from: &str) {
        let text = self.screen.text();
        let start = text.rfind(from).unwrap_or_else(|| panic!("`{from}` is not there: {text}"));
        self.shown.push_str(&format!("== {name}\n{}\n\n", text[start..].trim_end()));
    }

    /// Draws the screen from the last row on that begins with `from`.
    fn draw(&self, name: &str, from: &str) {
        if self.columns == 80 {
            same(&Path::new(HERE).join(format!("../../docs/terminal/{name}.svg")), &self.screen.svg(from));
        }
    }
}

/// Compares a file with what it should be.
pub(crate) fn same(path: &Path, now: &str) {
    if env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(path, now).unwrap();
    }
    let before = fs::read_to_string(path).unwrap_or_default();
    assert!(before == now, "{} is not what is shown; `BLESS=1` writes it:\n{now}", path.display());
}

#[test]
#[covers("PRESENT-01", "SHOW-01", "STEER-01", "BACK-01")]
fn a_conversation_looks_like_this() {
    for columns in [40, 80, 200] {
        let (_fixture, mut session) = Session::start(columns);
        session.add("a conversation begins", "/help lists");
        session.screen.send("mend the parser\r");
        session.screen.contains("cat results ");
        session.add("a turn runs", "> mend the parser");
        session.draw("running", "> mend the parser");
        session.screen.send("and the doc");
        session.screen.contains("\n> and the doc");
        session.add("an input is typed", "plan: Plan");
        session.screen.send("s\r");
        session.screen.contains("1 input joins");
        session.add("it waits for the next step", "plan: Plan");
        fs::write(&session.results, "ok\n").unwrap();
        session.screen.contains("5 calls");
        session.screen.shows(">");
        session.add("the turn has ended", "✓ bash__exec  cat results");
        session.draw("ended", "✓ bash__exec  cat results");
        for (name, command) in [
            ("what it cost", "/cost"),
            ("the order of the layers", "/order"),
            ("the tools", "/tools"),
            ("the commands", "/help"),
        ] {
            session.screen.send(&format!("{command}\r"));
            session.screen.contains(&format!("> {command}\n"));
            session.screen.shows("\n>");
            session.add(name, &format!("> {command}"));
        }
        session.screen.send("/undo\r");
        session.screen.shows("> mend the parser");
        session.add("the turn is taken back", "> /undo");
        session.draw("undone", "> /undo");
        session.screen.send("\x03");
        session.screen.shows("mend the parser\n>");
        session.screen.send("/quit\r");
        same(&Path::new(HERE).join(format!("tests/terminal/screens/{columns}.txt")), &session.shown);
        assert_eq!(session.screen.end().0.code(), Some(0));
    }
}
