//! `goondan run` on a terminal: what is typed, and what the screen shows.

use std::fs;
use std::num::NonZero;
use std::os::unix::fs::PermissionsExt;

use goondan_covers::covers;

use crate::screen::{BACKSPACE, CTRL_C, CTRL_D, CTRL_R, ENTER, LEFT, Screen, UP};
use crate::support::{Fixture, kill};

const BANNER: &str = "\
main:default, stored in STATE/workspaces/test/instances/main:default
/help lists the commands, Ctrl-D leaves
";

#[test]
#[covers("CUT-01")]
fn an_answer_that_was_cut_off_is_shown_as_cut() {
    let fixture = Fixture::new();
    let script = "- { raw: { text: Once upon, finishReason: length } }\n";
    fs::write(fixture.bundle().join("script.yaml"), script).unwrap();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("hello");
    screen.send(ENTER);
    screen.contains("Once upon\nthe answer was cut off at the model's limit of tokens");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is told from its start to its end")]
fn a_whole_conversation() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(&format!("{BANNER}>"));
    // An edit in the middle, and one at the end.
    screen.send("helox");
    screen.send(BACKSPACE);
    screen.send(LEFT);
    screen.send("l");
    screen.shows("> hello");
    screen.send(ENTER);
    screen.shows("> hello\nfine\n>");
    // A turn that hangs in a tool is cancelled.
    screen.send("wait");
    screen.send(ENTER);
    screen.contains("gate__wait GATE N s");
    let gate = fixture.reached();
    screen.send(CTRL_C);
    screen.shows("> wait\ncancelled\n>");
    drop(gate);
    // The next turn works, and the history of inputs is there.
    screen.send(UP);
    screen.shows("> wait");
    screen.send(UP);
    screen.shows("> hello");
    screen.send(ENTER);
    screen.shows("> hello\nfine\n>");
    // A turn that waits in a tool until the gate opens.
    screen.send("wai");
    screen.send("t");
    screen.send(ENTER);
    drop(fixture.reached());
    screen.shows("✓ gate__wait  GATE · N s\nfine\n>");
    screen.send("fail");
    screen.send(ENTER);
    screen.shows("✗ gate__fail  no such gate · N s\nfine\n>");
    screen.send("/tools");
    screen.send(ENTER);
    screen.shows("gate__fail   Always fails.\n>");
    screen.send("/quit");
    screen.send(ENTER);
    let (status, shown) = screen.end();
    assert_eq!(status.code(), Some(0));
    let transcript = format!(
        "{BANNER}\
> hello
fine
> wait
cancelled
> hello
fine
> wait
✓ gate__wait  GATE · N s
fine
> fail
✗ gate__fail  no such gate · N s
fine
> /tools
gate__wait   Waits at the gate, and counts the calls that passed it.
gate__stall  Waits at the gate and blocks the runtime's thread.
gate__fail   Always fails.
> /quit"
    );
    assert_eq!(shown, transcript);
    let stored = fixture.stored();
    assert_eq!((stored[0].as_str(), stored[1].as_str(), stored[2].as_str()), ("hello", "fine", "wait"));
    assert!(stored[4].contains("E_TOOL_OUTCOME_UNKNOWN"), "{stored:?}");
    assert_eq!(stored[5..7], ["hello", "fine"]);
}

#[test]
fn inputs_of_several_lines() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("one\\");
    screen.send(ENTER);
    screen.send("more");
    screen.send(ENTER);
    screen.shows("> one\\\nmore\nfine\n>");
    screen.send("\x1b[200~pasted\rlines\x1b[201~");
    screen.contains("lines");
    screen.send(ENTER);
    screen.shows("lines\nfine\n>");
    screen.send("//etc");
    screen.send(ENTER);
    screen.shows("> //etc\nfine\n>");
    screen.send("two");
    screen.send(ENTER);
    screen.shows("> two\ntwo\nlines\n>");
    screen.send(CTRL_D);
    assert_eq!(screen.end().0.code(), Some(0));
    let stored = fixture.stored();
    assert_eq!((stored[0].as_str(), stored[2].as_str(), stored[4].as_str()), ("one\nmore", "pasted\nlines", "/etc"));
    // The next run has the history of this one.
    let history = fixture.state().join("input-history.jsonl");
    assert_eq!(fs::metadata(history).unwrap().permissions().mode() & 0o777, 0o600);
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send(CTRL_R);
    screen.send("past");
    screen.contains("pasted");
    screen.send(ENTER);
    screen.shows("lines\nfine\n>");
    screen.send("/exit");
    screen.send(ENTER);
    assert_eq!(screen.end().0.code(), Some(0));
    assert_eq!(fixture.stored()[8], "pasted\nlines");
}

#[test]
fn commands() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("wait\r");
    drop(fixture.reached());
    screen.shows("fine\n>");
    screen.send("/history\r");
    screen.contains("user       wait");
    screen.shows("assistant  fine\n>");
    screen.send("/state\r");
    screen.shows("{\n  \"gate\": 1\n}\n>");
    screen.send("/order\r");
    screen.contains("turn\n  (the steps of the turn)");
    screen.shows("(the handler of the tool)\n>");
    screen.send("/help\r");
    screen.contains("/reload    read the bundle again");
    screen.send("/tolls\r");
    screen.shows("There is no command /tolls. Did you mean /tools? /help lists them; `//` begins a message.\n>");
    screen.send("/q\t\r");
    assert_eq!(screen.end().0.code(), Some(0), "Tab completes commands");
}

#[test]
fn reload_goes_on_with_the_bundle_as_it_is_now() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("hello\r");
    screen.shows("fine\n>");
    let good = fs::read_to_string(fixture.manifest()).unwrap();
    fs::write(fixture.manifest(), good.replace("linked:gate", "linked:gaet")).unwrap();
    screen.send("/reload\r");
    screen.contains("linked:gaet");
    screen.contains("1 fault");
    screen.send("still there?\r");
    screen.shows("> still there?\nfine\n>");
    fs::write(fixture.manifest(), good.replace(", extensions: [ { ref: Extension/gate } ]", "")).unwrap();
    screen.send("/reload\r");
    screen.shows(concat!("reloaded: gate ", env!("CARGO_PKG_VERSION"), " is gone\n>"));
    screen.send("/tools\r");
    screen.shows("The agent has no tools.\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
    assert_eq!(fixture.stored(), ["hello", "fine", "still there?", "fine"]);
}

#[test]
fn ctrl_c_clears_the_line_and_twice_leaves() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("half a line");
    screen.shows("> half a line");
    screen.send(CTRL_C);
    screen.shows("> half a line\n>");
    screen.send("hello\r");
    screen.shows("> hello\nfine\n>");
    screen.send(CTRL_C);
    screen.shows("> hello\nfine\n>\nCtrl-C again leaves\n>");
    screen.send(CTRL_C);
    assert_eq!(screen.end().0.code(), Some(130));
    assert_eq!(fixture.stored(), ["hello", "fine"]);
}

#[test]
fn after_a_cancelled_turn_ctrl_c_leaves() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("wait\r");
    let gate = fixture.reached();
    screen.send(CTRL_C);
    screen.shows("cancelled\n>");
    screen.send(CTRL_C);
    assert_eq!(screen.end().0.code(), Some(130));
    drop(gate);
    assert!(fixture.stored()[2].contains("E_TOOL_OUTCOME_UNKNOWN"));
}

#[test]
fn sigterm_leaves_from_the_prompt_and_gives_the_terminal_back() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("half a line");
    screen.shows("> half a line");
    kill("-TERM", screen.child.id());
    let raw = screen.raw_at_end();
    assert!(raw.ends_with("\x1b[?2004l"), "{raw:?}");
}

#[test]
fn sigterm_lets_the_running_turn_answer() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("wait\r");
    let gate = fixture.reached();
    kill("-TERM", screen.child.id());
    screen.contains("leaving when the running turn has ended, or in 300 s");
    drop(gate);
    let (status, shown) = screen.end();
    assert_eq!(status.code(), Some(0));
    assert!(shown.ends_with("✓ gate__wait  GATE · N s\nfine"), "{shown}");
}

#[test]
fn colours_and_drawing_only_where_they_are_wanted() {
    for (variables, colours, drawing) in
        [(&[][..], true, true), (&[("NO_COLOR", "1")][..], false, true), (&[("TERM", "dumb")][..], false, false)]
    {
        let fixture = Fixture::new();
        let screen = Screen::start(&fixture, &[], variables);
        screen.shows(">");
        screen.send("wait\r");
        drop(fixture.reached());
        screen.shows("✓ gate__wait  GATE · N s\nfine\n>");
        screen.send("/quit\r");
        let raw = screen.raw_at_end();
        assert_eq!(raw.contains("\x1b[32m✓"), colours, "{variables:?}: {raw:?}");
        assert_eq!(raw.contains("\x1b["), colours || drawing, "{variables:?}: {raw:?}");
        assert_eq!(raw.contains("waiting for the model"), drawing, "{variables:?}: {raw:?}");
    }
}

#[test]
fn a_tool_that_blocks_the_thread_is_named_while_it_runs() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("stall\r");
    let gate = fixture.reached();
    screen.contains("gate__stall GATE N s");
    drop(gate);
    screen.shows("✓ gate__stall  GATE · N s\nfine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}

#[test]
fn a_call_that_an_extension_holds_back_does_not_wait_for_the_model() {
    let fixture = Fixture::new();
    let asking = format!(
        "---\napiVersion: goondan.ai/v1\nkind: Extension\nmetadata: {{ name: asking }}\n\
         spec: {{ entry: 'linked:asking', config: {{ path: '{}' }} }}\n",
        fixture.gate().display()
    );
    let bundle = fs::read_to_string(fixture.manifest()).unwrap() + &asking;
    let bundle = bundle.replace("{ ref: Extension/gate }", "{ ref: Extension/gate }, { ref: Extension/asking }");
    fs::write(fixture.manifest(), bundle).unwrap();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("fail\r");
    let gate = fixture.reached();
    screen.contains("calling gate__fail N s");
    drop(gate);
    screen.shows("✗ gate__fail  no such gate · N s\nfine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}

#[test]
fn what_is_typed_during_a_turn_appears_in_the_next_prompt() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("wait\r");
    let gate = fixture.reached();
    screen.contains("gate__wait GATE N s");
    screen.send("typed ahead");
    drop(gate);
    screen.shows("✓ gate__wait  GATE · N s\nfine\n> typed ahead");
    screen.send(ENTER);
    screen.shows("> typed ahead\nfine\n>");
    screen.send(CTRL_D);
    assert_eq!(screen.end().0.code(), Some(0));
    assert_eq!(fixture.stored()[4..], ["typed ahead", "fine"]);
}

#[test]
fn the_history_follows_the_width_of_the_terminal() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send(&"every word is whole ".repeat(5));
    screen.send(ENTER);
    screen.shows("fine\n>");
    screen.resize(NonZero::new(60).unwrap());
    screen.send("/history\r");
    let line = "every word is whole every word is whole every";
    screen.contains(&format!("user       {line}\n           word is whole every word is whole every word is\n"));
    screen.contains("\n           whole\nassistant  fine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}

#[test]
fn a_reload_is_told_when_it_happens_and_the_edited_line_stays() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &["--watch"], &[]);
    screen.shows(">");
    screen.send("half a line");
    screen.shows("> half a line");
    let good = fs::read_to_string(fixture.manifest()).unwrap();
    fs::write(fixture.manifest(), good.replace(", extensions: [ { ref: Extension/gate } ]", "")).unwrap();
    screen.shows(concat!("reloaded: gate ", env!("CARGO_PKG_VERSION"), " is gone\n> half a line"));
    fs::write(fixture.manifest(), good.replace("linked:gate", "linked:gaet")).unwrap();
    screen.contains("linked:gaet");
    screen.shows("1 fault\nnot reloaded; the conversation goes on as it was\n> half a line");
    screen.send(" and more\r");
    screen.shows("> half a line and more\nfine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
    assert_eq!(fixture.stored(), ["half a line and more", "fine"]);
}

#[test]
fn what_the_model_thinks_is_folded_unless_it_is_asked_for() {
    let fixture = Fixture::new();
    for (arguments, shown) in
        [(&[][..], "> think\nthought for N s\nwell\n>"), (&["--reasoning"], "hm, let me see\nthought for N s\nwell\n>")]
    {
        let screen = Screen::start(&fixture, arguments, &[]);
        screen.shows(">");
        screen.send("think\r");
        screen.shows(shown);
        screen.send("/quit\r");
        assert_eq!(screen.end().0.code(), Some(0));
    }
}

#[test]
fn a_file_goes_with_the_next_message() {
    let fixture = Fixture::new();
    let path = fixture.bundle().join("a picture.png");
    fs::write(&path, b"\x89PNG\r\n\x1a\n").unwrap();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send(&format!("/file {}\r", path.display()));
    screen.shows("a picture.png (image/png) goes with the next message\n>");
    screen.send("/file no such file\r");
    screen.contains("E_INPUT_FILE: cannot read the file no such file");
    screen.send("hello\r");
    screen.shows("> hello\nfine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
    assert!(fixture.stored()[0].contains("data:image/png;base64,iVBORw0KGgo="));
}

#[test]
fn the_last_turn_is_taken_back_and_its_input_is_in_the_prompt_again() {
    let fixture = Fixture::new();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("/undo\r");
    screen.shows("there was nothing to take back\n>");
    screen.send("one\r");
    screen.shows("> one\nfine\n>");
    screen.send("fail\r");
    screen.contains("fine\n");
    screen.send("/undo\r");
    screen.shows(
        "took back 1 turn with 4 messages\nwhat these calls did stays, such as changes of files:\n  gate__fail\n> fail",
    );
    screen.send("\x03");
    screen.shows("> fail\n>");
    screen.send("/history\r");
    screen.shows("user       one\nassistant  fine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
    assert_eq!(fixture.stored(), ["one", "fine"]);
}
