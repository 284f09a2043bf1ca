//! Bundles whose extensions cannot lie around an agent together: refused before anything runs, with the place.

use std::fs;
use std::process::Command;

use crate::screen::Screen;
use crate::support::{PROGRAM, Place};

const GUARDED: &str = "\
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: guarded }
spec: { entry: 'linked:guarded' }
";

const FAULT: &str = "goondan.yaml:15:49: error[E_EXT_ORDER]: extension `guarded`, step middleware `inside`: \
                     `after = \"gate\"` names no extension of the agent\n    \
                     help: add `gate` to the agent, or write `\"gate?\"` if it may be missing\n1 fault\n";

#[test]
fn order_is_checked_before_anything_runs() {
    let place = Place::new();
    let good = fs::read_to_string(place.manifest()).unwrap() + GUARDED;
    let both = good.replace("{ ref: Extension/gate }", "{ ref: Extension/gate }, { ref: Extension/guarded }");
    fs::write(place.manifest(), &both).unwrap();
    assert_eq!(place.run(&["--input", "hello"]).status.code(), Some(0));
    let screen = Screen::start(&place, &[], &[]);
    screen.shows(">");
    fs::write(place.manifest(), good.replace("{ ref: Extension/gate }", "{ ref: Extension/guarded }")).unwrap();
    let run = place.run(&["--input", "hello"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8(run.stderr.clone()).unwrap().ends_with(FAULT), "{run:?}");
    let check = Command::new(PROGRAM).arg("check").arg(place.manifest().parent().unwrap()).output().unwrap();
    assert_eq!((check.status.code(), check.stdout), (Some(2), run.stderr));
    // The conversation that is open goes on as it was.
    screen.send("/reload\r");
    screen.contains("{ ref: Extension/guarded } ] }\n    ·");
    screen.contains("1 fault\nnot reloaded; the conversation goes on as it was\n>");
    screen.send("hello\r");
    screen.contains("fine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}
