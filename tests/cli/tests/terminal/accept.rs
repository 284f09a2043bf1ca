//! A reload that adds something, on a terminal: a person accepts it.

use std::fs;

use goondan_covers::covers;

use crate::screen::Screen;
use crate::support::Fixture;

const MODEL: &str = "---
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: other }
spec: { provider: openai-compatible, model: m, baseUrl: 'https://example.com/v1' }
";

#[test]
#[covers("TREE-01")]
fn what_a_reload_adds_waits_until_a_person_accepts_it() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &["--watch"], &[]);
    screen.shows(">");
    screen.send("/accept\r");
    screen.shows("> /accept\nno reload waits\n>");
    let old = fs::read_to_string(fixture.manifest()).unwrap();
    let changed = old.replace("model: Model/main", "system: changed, model: Model/main") + MODEL;
    fs::write(fixture.manifest(), &changed).unwrap();
    screen.shows("no reload waits\nreload adds: host https://example.com; /accept\n>");
    screen.send("hello\r");
    screen.shows("fine\n>");
    assert!(!requests(&fixture).contains("\"changed\""), "the conversation goes on as it was");
    screen.send("/accept\r");
    screen.shows("reloaded\n>");
    screen.send("hello again\r");
    screen.shows("fine\n>");
    assert!(requests(&fixture).contains("\"changed\""));
    // What comes after it is no addition any more.
    fs::write(fixture.manifest(), changed.replace("system: changed, ", "")).unwrap();
    screen.shows("fine\nreloaded\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}

#[test]
#[covers("TREE-01")]
fn a_reload_that_was_typed_waits_too() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    let old = fs::read_to_string(fixture.manifest()).unwrap();
    fs::write(fixture.manifest(), old.clone() + MODEL).unwrap();
    screen.send("/reload\r");
    screen.shows("> /reload\nreload adds: host https://example.com; /accept\n>");
    // It is taken back.
    fs::write(fixture.manifest(), &old).unwrap();
    screen.send("/reload\r");
    screen.shows("> /reload\nreloaded\n>");
    screen.send("/accept\r");
    screen.shows("> /accept\nno reload waits\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}

/// Returns the requests that the model was sent.
fn requests(fixture: &Fixture) -> String {
    fs::read_to_string(fixture.bundle().join("requests.jsonl")).unwrap()
}
