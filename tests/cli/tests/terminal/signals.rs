//! `goondan run` on pipes, ended by signals.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use goondan_covers::covers;

use crate::screen::Screen;
use crate::support::{Fixture, PROGRAM, kill};

/// Waits until a process has ended. Returns its exit code and the rest of its standard output.
fn end(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// Waits until a process prints on standard error that it will exit.
fn wait_until_leaving(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("leaving when the running turn has ended"), "{line}");
}

#[test]
fn sigterm_lets_the_running_turn_end_and_takes_no_new_event() {
    for signal in ["-TERM", "-HUP"] {
        let fixture = Fixture::new();
        let mut child = fixture.command(&[]).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"wait\nnever heard\n").unwrap();
        let gate = fixture.reached();
        kill(signal, child.id());
        wait_until_leaving(&mut child);
        drop(gate);
        assert_eq!(end(child), (Some(0), "fine\n".to_owned()), "{signal}");
        let stored = fixture.stored();
        assert_eq!((stored.len(), stored[0].as_str(), stored[3].as_str()), (4, "wait", "fine"), "{stored:?}");
    }
}

#[test]
fn a_turn_that_outlasts_the_grace_period_is_cancelled_and_stored() {
    let fixture = Fixture::new();
    let child = fixture.command(&["--input", "wait", "--grace", "0"]).spawn().unwrap();
    let gate = fixture.reached();
    kill("-TERM", child.id());
    assert_eq!(end(child), (Some(0), String::new()));
    drop(gate);
    let stored = fixture.stored();
    assert_eq!(stored.len(), 3);
    assert!(stored[2].contains("E_TOOL_OUTCOME_UNKNOWN"), "{stored:?}");
}

#[test]
#[covers("RESUME-01")]
fn a_person_goes_on_with_a_turn_whose_process_was_killed() {
    let fixture = Fixture::new();
    let mut child = fixture.command(&["--input", "wait"]).spawn().unwrap();
    let gate = fixture.reached();
    child.kill().unwrap();
    drop(gate);
    assert_eq!(end(child).0, None);
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows("interrupted: \"wait\"; /continue goes on, another message closes it\n>");
    screen.send("/continue\r");
    screen.shows("fine\n>");
    screen.send("/continue\r");
    screen.shows("> /continue\nno turn was interrupted\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
    let stored = fixture.stored();
    assert_eq!((stored.len(), stored[3].as_str()), (4, "fine"), "{stored:?}");
    assert!(stored[2].contains("E_TOOL_OUTCOME_UNKNOWN"), "the call is not made again: {stored:?}");
}

#[test]
fn sigterm_between_events_ends_the_run() {
    for (signal, code) in [("-TERM", 0), ("-HUP", 0), ("-INT", 130)] {
        let fixture = Fixture::new();
        let mut child = fixture.command(&[]).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"hello\n").unwrap();
        let mut answer = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
        assert_eq!(answer, "fine\n");
        kill(signal, child.id());
        assert_eq!(end(child).0, Some(code), "{signal}");
        assert_eq!(fixture.stored(), ["hello", "fine"]);
        drop(input);
    }
}

#[test]
fn ctrl_c_cancels_the_turn_stores_it_and_the_next_run_goes_on() {
    let fixture = Fixture::new();
    let child = fixture.command(&["--input", "wait"]).spawn().unwrap();
    let gate = fixture.reached();
    kill("-INT", child.id());
    assert_eq!(end(child), (Some(130), String::new()));
    drop(gate);
    assert!(fixture.stored()[2].contains("E_TOOL_OUTCOME_UNKNOWN"), "{:?}", fixture.stored());
    let next = fixture.run(&["--input", "hello"]);
    assert_eq!((next.status.code(), next.stdout.as_slice()), (Some(0), b"fine\n".as_slice()));
    assert_eq!(fixture.stored()[3..], ["hello", "fine"]);
}

#[test]
fn a_second_signal_ends_at_once_what_the_first_cannot_cancel() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let fixture = Fixture::new();
        let mut child = fixture.command(&["--input", "stall"]).spawn().unwrap();
        let gate = fixture.reached();
        // Signals that come close together may be delivered as one.
        while child.try_wait().unwrap().is_none() {
            kill(signal, child.id());
        }
        drop(gate);
        assert_eq!(end(child).0, Some(code), "{signal}");
        let next = fixture.run(&["--input", "hello"]);
        assert_eq!(next.stdout, b"fine\n", "what was left open is closed");
        assert!(fixture.stored()[2].contains("E_TOOL_OUTCOME_UNKNOWN"), "{:?}", fixture.stored());
    }
}

#[test]
fn a_turn_whose_terminal_is_closed_has_the_grace_period() {
    for is_in_time in [true, false] {
        let fixture = Fixture::new();
        let (pty, pts) = pty_process::blocking::open().unwrap();
        let grace = if is_in_time { "60" } else { "0" };
        let command = pty_process::blocking::Command::new(PROGRAM).args(fixture.arguments()).args(["--grace", grace]);
        let mut child = command.env_remove("GOONDAN_LOG").env("TERM", "xterm-256color").spawn(pts).unwrap();
        let mut shown = Vec::new();
        let mut wait_for = |what: &str| {
            while !String::from_utf8_lossy(&shown).contains(what) {
                let mut buffer = [0; 4096];
                let read = (&pty).read(&mut buffer).unwrap();
                shown.extend_from_slice(&buffer[..read]);
            }
        };
        wait_for("> ");
        (&pty).write_all(b"wait\r").unwrap();
        let gate = fixture.reached();
        wait_for("Enter steers");
        drop(pty);
        let gate = (!is_in_time).then_some(gate);
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || sender.send(child.wait().unwrap()));
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)).unwrap().code(), Some(0));
        drop(gate);
        let stored = fixture.stored();
        assert_eq!(stored.len(), if is_in_time { 4 } else { 3 }, "{stored:?}");
        assert_eq!(stored[2].contains("E_TOOL_OUTCOME_UNKNOWN"), !is_in_time, "{stored:?}");
    }
}
