//! Kills a process that owns others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use goondan_covers::covers;
use nix::sys::stat::Mode;

#[test]
#[covers("PROC-01")]
fn children_are_killed_with_their_owner() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..20 {
        let alive = dir.path().join(number.to_string());
        nix::unistd::mkfifo(&alive, Mode::S_IRWXU).unwrap();
        let mut owner = Command::new(env!("CARGO_BIN_EXE_goondan-crash"));
        let mut owner = owner.arg("owner").arg(&alive).stdin(Stdio::null()).spawn().unwrap();
        // Until both processes have opened it.
        let mut alive = File::open(&alive).unwrap();
        alive.read_exact(&mut [0; 2]).unwrap();

        owner.kill().unwrap();
        assert_eq!(owner.wait().unwrap().code(), None, "it was killed by the signal");
        assert_eq!(alive.read(&mut [0]).unwrap(), 0, "the end comes when both processes are gone");
    }
}
