//! An answer that an extension replaces: with a held stream, the original is printed nowhere; without, the answer is
//! printed after it.

use std::fs;

use serde_json::Value;

use crate::screen::Screen;
use crate::support::Fixture;

/// A bundle in which an extension replaces answers with a secret, and holds the stream if `hold` says so.
fn fixture(hold: bool) -> Fixture {
    let fixture = Fixture::new();
    let withholding = format!(
        "---\napiVersion: goondan.ai/v1\nkind: Extension\nmetadata: {{ name: withholding }}\n\
         spec: {{ entry: 'linked:withholding', config: {{ hold: {hold} }} }}\n"
    );
    let bundle = fs::read_to_string(fixture.manifest()).unwrap() + &withholding;
    let bundle = bundle.replace("{ ref: Extension/gate }", "{ ref: Extension/gate }, { ref: Extension/withholding }");
    fs::write(fixture.manifest(), bundle).unwrap();
    let script = "- { say: the secret is 42, pieces: 5, when: ^tell, repeat: true }\n\
                  - { call: { tool: gate__fail }, pieces: 2, when: ^fail, repeat: true }\n\
                  - { say: fine, pieces: 2, repeat: true }\n";
    fs::write(fixture.bundle().join("script.yaml"), script).unwrap();
    fixture
}

/// Returns what a run with these arguments prints to standard output.
fn printed(fixture: &Fixture, arguments: &[&str]) -> String {
    let output = fixture.run(&[arguments, &["--input", "tell me"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the pieces of text of a run with `--stream`, and the answer.
fn streamed(fixture: &Fixture) -> (Vec<String>, String) {
    let printed = printed(fixture, &["--json", "--stream"]);
    let lines: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let pieces = lines.iter().filter(|line| line["type"] == "text");
    let pieces = pieces.map(|line| line["text"].as_str().unwrap().to_owned()).collect();
    (pieces, lines.last().unwrap()["response"].as_str().unwrap().to_owned())
}

#[test]
fn a_held_answer_that_was_replaced_is_printed_nowhere() {
    let fixture = fixture(true);
    assert_eq!(printed(&fixture, &[]), "withheld\n");
    assert!(!printed(&fixture, &["--json"]).contains("secret"));
    assert!(!printed(&fixture, &["--json", "--stream"]).contains("secret"));
    assert_eq!(streamed(&fixture), (vec!["withheld".to_owned()], "withheld".to_owned()));

    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("tell me\r");
    screen.shows("> tell me\nwithheld\n>");
    // The held call is told after it has ended, so nothing waits for it.
    screen.send("fail\r");
    screen.shows("> fail\n✗ gate__fail  no such gate · N s\nfine\n>");
    screen.send("/quit\r");
    let raw = screen.raw_at_end();
    assert!(!raw.contains("secret") && !raw.contains("calling"), "{raw}");
}

#[test]
fn an_answer_that_was_replaced_after_it_was_shown_is_printed_after_it() {
    let fixture = fixture(false);
    assert_eq!(printed(&fixture, &[]), "withheld\n");
    let (pieces, answer) = streamed(&fixture);
    assert_eq!((pieces.concat().as_str(), answer.as_str()), ("the secret is 42", "withheld"));

    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("tell me\r");
    screen.shows("> tell me\nthe secret is 42\nwithheld\n>");
    screen.send("hello\r");
    screen.shows("> hello\nfine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}
