//! Opens an instance in real processes while others delete it.

use std::process::Command;

#[test]
fn an_instance_that_others_open_and_delete_is_open_once_at_a_time() {
    let output = Command::new(env!("CARGO_BIN_EXE_goondan-crash")).args(["race", "1000"]).output().unwrap();
    let (counts, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{counts}{errors}");
    assert!(counts.starts_with("1000 openings beside "), "{counts}");
    assert!(counts.contains("; 0 double, 0 turns lost, "), "{counts}");
}
