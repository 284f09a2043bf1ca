//! Nothing that a model, a tool, a library or a file says reaches the terminal as a control sequence, whichever command
//! prints it.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use goondan_covers::covers;
use goondan_libraries::Build;
use regex::Regex;
use tempfile::TempDir;

use crate::screen::Screen;
use crate::support::{Fixture, PROGRAM};

/// What a terminal would obey: colours, titles, links, device control, clearing, resetting, in the 7-bit and 8-bit
/// forms; single controls; overwriting a line; and reordering it.
const SEQUENCES: [&str; 14] = [
    "\x1b[35;45m",
    "\x1b]0;title\x07",
    "\x1b]8;;http://localhost\x1b\\",
    "\x1bP$q\x1b\\",
    "\x1b[2J",
    "\x1bc",
    "\u{9b}2J",
    "\u{9d}0;title\u{9c}",
    "\x07",
    "\x08",
    "\x7f",
    "\rover",
    "\u{202e}",
    "\u{2066}",
];

/// All of them in one text.
fn hostile() -> String {
    format!("hostile{}end", SEQUENCES.concat())
}

/// Quotes a text for YAML, with every character that is not printable escaped.
fn quoted(text: &str) -> String {
    let escape = |char: char| match char {
        '"' | '\\' => format!("\\{char}"),
        ' '..='~' => char.to_string(),
        _ => format!("\\u{:04x}", u32::from(char)),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

/// Asserts that what a terminal got has the text, and no control sequence.
#[track_caller]
fn assert_clean(raw: &str, way: &str) {
    assert!(raw.contains("hostile") || raw.contains("Hostile"), "{way} does not print the text: {raw:?}");
    assert_no_sequence(raw, way);
}

/// Asserts that a terminal got no control sequence but those of goondan and its line editor.
#[track_caller]
fn assert_no_sequence(raw: &str, way: &str) {
    for sequence in SEQUENCES {
        assert!(!raw.contains(sequence), "{way} prints {sequence:?}: {raw:?}");
    }
    let own = Regex::new(r"\x1b\[[\d;]*m|\x1b\[\d*[ABCDGKJ]|\x1b\[\?20(04|26)[hl]").unwrap();
    let rest = own.replace_all(raw, "").replace("\r\n", "\n");
    let foreign = |char: &char| {
        let legal = matches!(char, '\n' | '\t' | '\r');
        (char.is_control() && !legal) || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert_eq!(rest.chars().find(foreign), None, "{way}: {raw:?}");
}

/// Runs the command on a terminal. Returns all that it printed there.
fn on_a_terminal(directory: &Path, arguments: &[&str]) -> String {
    let (mut terminal, pts) = pty_process::blocking::open().unwrap();
    terminal.resize(pty_process::Size::new(24, 300)).unwrap();
    // The end of the input, for commands that ask.
    terminal.write_all(b"\x04").unwrap();
    let command = pty_process::blocking::Command::new(PROGRAM).args(arguments).current_dir(directory);
    let command = command.env_remove("NO_COLOR").env_remove("RUST_LOG").env("TERM", "xterm").env("RUST_BACKTRACE", "0");
    let command = command.env("GOONDAN_STATE_ROOT", directory.join("state"));
    let mut child = command.spawn(pts).unwrap();
    let mut output = Vec::new();
    // On some systems, reading fails when the other side is closed.
    _ = terminal.read_to_end(&mut output);
    child.wait().unwrap();
    String::from_utf8(output).unwrap()
}

/// Runs the command with pipes.
fn on_pipes(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).env_remove("RUST_LOG");
    command.env("RUST_BACKTRACE", "0").output().unwrap()
}

/// A bundle whose model plays `script`, with the hostile extension.
fn bundle(script: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    let text = "apiVersion: goondan.ai/v1\nkind: Model\nmetadata: { name: main }\n\
                spec: { provider: scripted, script: ./script.yaml }\n---\n\
                apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: { name: hostile }\n\
                spec: { entry: 'linked:hostile' }\n---\n\
                apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: { name: main }\n\
                spec: { model: Model/main, extensions: [ { ref: Extension/hostile } ] }\n";
    fs::write(directory.path().join("goondan.yaml"), text).unwrap();
    fs::write(directory.path().join("script.yaml"), script).unwrap();
    directory
}

/// Scripts in which the model, a tool or the provider says something hostile.
fn scripts() -> [(&'static str, String); 6] {
    let text = quoted(&hostile());
    let call = |tool: &str| format!("- call: {{ tool: {tool}, args: {{ text: {text} }} }}\n- say: done\n");
    [
        ("an answer", format!("- say: {text}\n")),
        ("an error of a provider", format!("- fail: {{ message: {text} }}\n")),
        ("a log line", call("hostile__log")),
        ("a panicking tool", call("hostile__panic")),
        ("a failing tool", call("hostile__fail")),
        ("the name of a tool", format!("- call: {{ tool: {text} }}\n- say: done\n")),
    ]
}

#[test]
#[covers("MASK-01")]
fn a_run_prints_no_control_sequence() {
    let run = ["run", "--trust", "--input", "hello", "--state-root", "state"];
    for (index, (way, script)) in scripts().into_iter().enumerate() {
        for more in [&[][..], &["--json"], &["--log-format", "json"], &["--log-level", "trace"]] {
            let raw = on_a_terminal(bundle(&script).path(), &[&run[..], more].concat());
            assert_no_sequence(&raw, way);
            // Without the REPL, nothing is printed of a call that fails.
            assert!(index >= 4 || raw.contains("hostile"), "{way} is not printed: {raw:?}");
        }
    }
}

#[test]
#[covers("MASK-01")]
fn the_repl_prints_no_control_sequence() {
    for (way, script) in scripts() {
        let fixture = Fixture::new();
        let directory = bundle(&script);
        for file in ["goondan.yaml", "script.yaml"] {
            fs::copy(directory.path().join(file), fixture.bundle().join(file)).unwrap();
        }
        let screen = Screen::start(&fixture, &[], &[]);
        screen.shows(">");
        for input in ["hello\r", "/history\r", "/state\r", "/tools\r", "/quit\r"] {
            screen.send(input);
        }
        assert_clean(&screen.raw_at_end(), way);
    }
}

#[test]
#[covers("MASK-01")]
fn stored_conversations_are_shown_without_control_sequences() {
    let directory = bundle(&scripts()[2].1);
    let (text, key) = (hostile(), "hostile\x1b[35;45m\u{9b}2J\u{202e}");
    let run = ["run", "--trust", "--input", &text, "--instance", key, "--state-root", "state"];
    let ran = on_pipes(directory.path(), &run);
    assert!(ran.status.success(), "{ran:?}");
    let id = format!("main:{key}");
    for arguments in [
        &["instance", "list"][..],
        &["instance", "list", "--json"],
        &["instance", "show", &id],
        &["instance", "show", &id, "--full", "--json"],
        &["instance", "export", &id, "-"],
        &["instance", "repair", &id],
        &["instance", "delete", &id],
    ] {
        let raw = on_a_terminal(directory.path(), &[arguments, &["--state-root", "state"]].concat());
        assert_no_sequence(&raw, &arguments.join(" "));
        // The conversation has no damage, so there is nothing to tell of it.
        assert!(arguments[1] == "repair" || raw.contains("hostile"), "{arguments:?}: {raw:?}");
    }
}

#[test]
#[covers("MASK-01")]
fn names_and_mistakes_are_printed_without_control_sequences() {
    let root = TempDir::new().unwrap();
    let name = "hostile\x1b[35;45m\x1b]0;title\x07\u{9b}2J\u{202e}";
    let directory = root.path().join(name);
    fs::create_dir(&directory).unwrap();
    let yaml = format!(
        "apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: {{ name: {} }}\nspec:\n  modle: {}\n",
        quoted(&hostile()),
        quoted(&hostile())
    );
    fs::write(directory.join("goondan.yaml"), yaml).unwrap();
    fs::write(root.path().join("raw.yaml"), format!("hostile: [ {}\n", hostile())).unwrap();
    for arguments in [
        &["check", name][..],
        &["check", name, "--json"],
        &["order", name],
        &["run", "--trust", name, "--input", "x"],
        &["check", "raw.yaml"],
        &["run", "--trust", &format!("{name}/missing")],
        &["plugin", "inspect", name],
        &["plugin", "list", &format!("{name}/missing")],
        &["new", "extension", "weather", "--path", &format!("{name}/weather")],
        &["instance", "show", name],
        &["instance", "import", name, "--workspace", "x"],
        &["explain", name],
        &["run", "--trust", &format!("--{name}")],
        &[name],
    ] {
        assert_clean(&on_a_terminal(root.path(), arguments), &format!("{arguments:?}"));
    }
}

fn library() -> PathBuf {
    Build::new("goondan-cli-tests").no_default_features().run(env!("CARGO_TARGET_TMPDIR"))
}

#[test]
#[covers("MASK-01")]
fn the_strings_of_a_library_are_printed_without_control_sequences() {
    let (directory, library) = (TempDir::new().unwrap(), library());
    let library = library.to_str().unwrap();
    for arguments in [
        &["plugin", "inspect", library][..],
        &["plugin", "inspect", library, "--json"],
        &["plugin", "inspect", library, "--describe"],
        &["plugin", "list"],
    ] {
        assert_clean(&on_a_terminal(directory.path(), arguments), &arguments.join(" "));
    }
}

/// Data for programs is exact in a pipe; text for people is clean everywhere, since files are shown later.
#[test]
fn pipes_get_data_as_it_is_and_text_cleaned() {
    let run = ["run", "--trust", "--input", "hello", "--state-root", "state"];
    let answer = bundle(&scripts()[0].1);
    let output = on_pipes(answer.path(), &run);
    assert_eq!(output.stdout, format!("{}\n", hostile()).as_bytes());
    let json = on_pipes(answer.path(), &["instance", "show", "main:default", "--json", "--state-root", "state"]);
    let message: serde_json::Value =
        serde_json::from_slice(json.stdout.split(|byte| *byte == b'\n').nth(1).unwrap()).unwrap();
    assert_eq!(message["data"]["content"], hostile());
    let shown = on_pipes(answer.path(), &["instance", "show", "main:default", "--state-root", "state"]);
    assert_clean(&String::from_utf8(shown.stdout).unwrap(), "show");
    let failing = on_pipes(bundle(&scripts()[1].1).path(), &run);
    assert_clean(&String::from_utf8(failing.stderr).unwrap(), "an error");
    let logging = on_pipes(bundle(&scripts()[2].1).path(), &run);
    assert_clean(&String::from_utf8(logging.stderr).unwrap(), "the log");
}

#[test]
fn a_line_break_of_another_system_is_a_line_break() {
    let directory = bundle("- say: \"one\\r\\ntwo\\rthree\"\n");
    let raw = on_a_terminal(directory.path(), &["run", "--trust", "--input", "x", "--state-root", "state"]);
    assert!(raw.contains("one\r\ntwo␍three"), "{raw:?}");
}
