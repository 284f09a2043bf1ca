//! The Markdown of an answer: styled on a terminal, as the model wrote it everywhere else.

use std::fs;
use std::io::Write;
use std::num::NonZero;

use crate::screen::Screen;
use crate::support::Fixture;

const ANSWER: &str = "## The plan\n\nRun **all** tests with `cargo test`, then read [the guide](https://x.y/z) twice.\n\n\
                      - *first* the words of an item that is longer than forty columns\n- then the rest\n\n```rust\nlet a = 1; // **kept**\n```\n\
                      | tool | does |\n|---|---|\n| a | `b` |\n\nDone.";

/// What a terminal of forty columns shows of it.
const NARROW: &str = "The plan\n\nRun all tests with cargo test, then read\nthe guide (https://x.y/z) twice.\n\n\
                      • first the words of an item that is\n  longer than forty columns\n• then the rest\n\n```rust\nlet a = 1; // **kept**\n```\n\
                      tool │ does\n─────┼─────\na    │ b\n\nDone.\n";

/// What a wider one shows of the lines that are longer.
const WIDE: &str = "\nRun all tests with cargo test, then read the guide (https://x.y/z) twice.\n\n\
                    • first the words of an item that is longer than forty columns\n• then the rest\n";

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let script = format!("- {{ say: {}, pieces: 40, repeat: true }}\n", serde_json::to_string(ANSWER).unwrap());
    fs::write(fixture.bundle().join("script.yaml"), script).unwrap();
    fixture
}

#[test]
fn an_answer_is_styled_at_any_width() {
    for (columns, shown) in [(40, NARROW), (80, WIDE), (200, WIDE)] {
        let fixture = fixture();
        let screen = Screen::start(&fixture, &[], &[]);
        screen.shows(">");
        screen.resize(NonZero::new(columns).unwrap());
        screen.send("hello\r");
        screen.contains("Done.\n>");
        screen.contains(shown);
        screen.send("/quit\r");
        let raw = screen.raw_at_end();
        for styled in [
            "\x1b[1mplan\x1b[0m",
            "\x1b[36mcargo\x1b[0m",
            "\x1b[3mfirst\x1b[0m",
            "\x1b[36mlet\x1b[0m",
            "\x1b[4mguide\x1b[0m",
        ] {
            assert!(raw.contains(styled), "{styled:?}: {raw}");
        }
    }
}

#[test]
fn without_colours_an_answer_is_as_it_was_written_but_for_its_width() {
    let fixture = fixture();
    let screen = Screen::start(&fixture, &[], &[("NO_COLOR", "1")]);
    screen.shows(">");
    screen.resize(NonZero::new(40).unwrap());
    screen.send("hello\r");
    screen.contains(
        "## The plan\n\nRun **all** tests with `cargo test`,\nthen read [the guide](https://x.y/z)\ntwice.\n",
    );
    screen.contains("| tool | does |\n|---|---|\n| a | `b` |\n\nDone.\n>");
    screen.send("/quit\r");
    assert!(!screen.raw_at_end().contains("\x1b[1m"));
}

#[test]
fn a_pipe_and_a_terminal_that_cannot_move_its_cursor_get_the_answer_as_it_was_written() {
    let fixture = fixture();
    let mut command = fixture.command(&[]).spawn().unwrap();
    command.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = command.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{ANSWER}\n"));
    let screen = Screen::start(&fixture, &[], &[("TERM", "dumb")]);
    screen.shows(">");
    screen.send("hello\r");
    screen.contains(&ANSWER[..40]);
    screen.contains("| a | `b` |\n\nDone.\n");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}
