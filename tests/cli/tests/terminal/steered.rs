//! STEER-01: what a person types while a turn runs.

use std::num::NonZero;

use goondan_covers::covers;

use crate::screen::{BACKSPACE, CTRL_C, ENTER, LEFT, Screen};
use crate::support::Fixture;

const TAB: &str = "\t";
const ESC: &str = "\x1b";

/// A turn that waits in a tool.
fn waiting(fixture: &Fixture) -> Screen {
    let screen = Screen::start(fixture, &[], &[]);
    screen.shows(">");
    screen.send("wait\r");
    screen.contains("gate__wait GATE N s");
    screen.shows("> Enter steers · Tab is for afterwards · Esc cancels");
    screen
}

fn ends(screen: Screen) {
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}

#[test]
#[covers("STEER-01")]
fn what_is_entered_joins_the_turn_at_its_next_step() {
    let fixture = Fixture::new();
    let screen = waiting(&fixture);
    let gate = fixture.reached();
    screen.send("and thx");
    screen.shows("> and thx");
    screen.send(BACKSPACE);
    screen.send("s");
    screen.send(LEFT);
    screen.send("i");
    screen.shows("> and this");
    screen.send(ENTER);
    screen.shows("> 1 input joins at the next step · Esc cancels");
    // A pasted text is one input.
    screen.send("\x1b[200~three\rlines\x1b[201~");
    screen.shows("> three⏎lines");
    screen.send(ENTER);
    screen.shows("> 2 inputs join at the next step · Esc cancels");
    drop(gate);
    screen.shows("> wait\n✓ gate__wait  GATE · N s\n> and this\n> three\n  lines\nfine\n>");
    // They are in the history.
    screen.send("\x1b[A");
    screen.shows("\nfine\n> three\nlines");
    // The line editor forgets what is typed together with Ctrl-C.
    screen.send(CTRL_C);
    screen.shows("\n>");
    ends(screen);
    let stored = fixture.stored();
    assert_eq!(
        (stored[0].as_str(), &stored[3..]),
        ("wait", &["and this", "three\nlines", "fine"].map(str::to_owned)[..])
    );
}

#[test]
#[covers("STEER-01")]
fn what_is_for_afterwards_and_commands_wait_for_the_end() {
    let fixture = Fixture::new();
    let screen = waiting(&fixture);
    let gate = fixture.reached();
    screen.send("later");
    screen.send(TAB);
    screen.shows("> 1 for afterwards · Esc cancels");
    screen.send("/too");
    screen.send(TAB);
    screen.shows("> /tools");
    screen.send(ENTER);
    screen.shows("> 2 for afterwards · Esc cancels");
    screen.send("half a line");
    drop(gate);
    screen.shows("gate__fail   Always fails.\n> half a line");
    screen.contains("✓ gate__wait  GATE · N s\nfine\n> later\nfine\n> /tools\ngate__wait ");
    // The line editor forgets what is typed together with Ctrl-C.
    screen.send(CTRL_C);
    screen.shows("\n>");
    ends(screen);
    assert_eq!(fixture.stored()[3..], ["fine", "later", "fine"]);
}

#[test]
#[covers("STEER-01")]
fn a_turn_that_is_cancelled_gives_back_what_was_typed() {
    for key in [ESC, CTRL_C] {
        let fixture = Fixture::new();
        let screen = waiting(&fixture);
        let gate = fixture.reached();
        screen.send("do that");
        screen.send(ENTER);
        screen.shows("> 1 input joins at the next step · Esc cancels");
        screen.send("and more");
        screen.shows("> and more");
        screen.send(key);
        screen.shows("> wait\ncancelled\n> do that\nand more");
        drop(gate);
        screen.send(ENTER);
        screen.shows("and more\nfine\n>");
        ends(screen);
        let stored = fixture.stored();
        assert_eq!(stored[stored.len() - 2..], ["do that\nand more", "fine"]);
    }
}

#[test]
#[covers("STEER-01")]
fn an_input_for_a_turn_without_a_further_step_has_the_next_turn() {
    let fixture = Fixture::new();
    let pieces = "- { say: \"a long answer\\nof two lines\", pieces: 5, when: ^talk }\n- { say: fine, repeat: true }\n";
    std::fs::write(fixture.bundle().join("script.yaml"), pieces).unwrap();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.resize(NonZero::new(40).unwrap());
    screen.send("talk\r");
    screen.shows("> talk\na long answer\nof two lines\n>");
    screen.send("/history\r");
    screen.shows("user       talk\nassistant  a long answer of two lines\n>");
    ends(screen);
}
