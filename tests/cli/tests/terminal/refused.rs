//! Bundles whose extensions cannot be ordered are refused before anything runs, with file, line and column.

use std::fs;
use std::process::Command;

use crate::screen::Screen;
use crate::support::{Fixture, PROGRAM};

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
    let fixture = Fixture::new();
    let good = fs::read_to_string(fixture.manifest()).unwrap() + GUARDED;
    let both = good.replace("{ ref: Extension/gate }", "{ ref: Extension/gate }, { ref: Extension/guarded }");
    fs::write(fixture.manifest(), &both).unwrap();
    assert_eq!(fixture.run(&["--input", "hello"]).status.code(), Some(0));
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    fs::write(fixture.manifest(), good.replace("{ ref: Extension/gate }", "{ ref: Extension/guarded }")).unwrap();
    let run = fixture.run(&["--input", "hello"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8(run.stderr.clone()).unwrap().ends_with(FAULT), "{run:?}");
    let check = Command::new(PROGRAM).arg("check").arg(fixture.manifest().parent().unwrap()).output().unwrap();
    assert_eq!((check.status.code(), check.stdout), (Some(2), run.stderr));
    // The open conversation goes on unchanged.
    screen.send("/reload\r");
    screen.contains("{ ref: Extension/guarded } ] }\n    ·");
    screen.contains("1 fault\nnot reloaded; the conversation goes on as it was\n>");
    screen.send("hello\r");
    screen.contains("fine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
}
