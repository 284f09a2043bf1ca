//! What a person sees of what a turn uses: while it runs, after it, and of the whole conversation.

use std::fs;
use std::num::NonZero;

use crate::screen::Screen;
use crate::support::Fixture;

const USAGE: &str = "model: m-1, usage: { promptTokens: 12400, completionTokens: 310, totalTokens: 12710, \
                     cachedPromptTokens: 11500, cost: 0.0112 }";

/// A conversation whose model reports tokens.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let gate = fixture.gate();
    let call = |tool: &str, args: &str| {
        format!("toolCalls: [ {{ id: c-{tool}, name: gate__{tool}, args: {args} }} ], {USAGE}")
    };
    let script = format!(
        "- {{ raw: {{ {} }}, when: ^work }}\n- {{ raw: {{ {} }}, when: E_ }}\n\
         - {{ raw: {{ text: fine, {USAGE} }}, repeat: true }}\n",
        call("fail", "{}"),
        call("wait", &format!("{{ path: '{}' }}", gate.display())),
    );
    fs::write(fixture.bundle().join("script.yaml"), script).unwrap();
    fixture
}

#[test]
fn tokens_money_and_calls_are_told_while_a_turn_runs_and_after_it() {
    let fixture = fixture();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("/cost\r");
    screen.contains("no turn has ended yet");
    screen.send("hello\r");
    screen.shows("> hello\nfine\n12.4k in (92 % cached) · 310 out · $0.011 · N s\n>");
    screen.send("work\r");
    screen.contains("N s · m-1 · step 2 · 12.4k in · 310 out · $0.011");
    drop(fixture.reached());
    screen.shows("fine\n37.2k in (92 % cached) · 930 out · $0.034 · 2 calls · N s\n>");
    screen.send("/cost\r");
    screen.contains("2 turns · 49.6k in (92 % cached) · 1.2k out · $0.045 · 2 calls\n");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}

#[test]
fn a_narrow_terminal_shows_what_fits_and_breaks_no_word() {
    let fixture = fixture();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.resize(NonZero::new(40).unwrap());
    screen.send("work\r");
    screen.contains("gate__wait GATE N s");
    drop(fixture.reached());
    screen.contains("fine\n");
    screen.send("/help\r");
    screen.contains("/file      PATH: send a file with the\n           next message\n");
    screen.contains("Ctrl-C cancels a running turn or clears\nthe line;");
    screen.send("/tools\r");
    screen.contains("gate__wait");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}
