//! `goondan completions` and `goondan man`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::support;

fn goondan(arguments: &[&str]) -> Output {
    support::goondan().args(arguments).output().unwrap()
}

/// Returns the completions that bash offers for a line that ends in `words`.
fn completed(script: &Path, words: &[&str]) -> Vec<String> {
    let line = r#"source "$1"; shift; COMP_WORDS=(goondan "$@"); COMP_CWORD=$#
        _goondan goondan "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; echo "${COMPREPLY[@]}""#;
    let output = Command::new("bash").args(["-c", line, "bash"]).arg(script).args(words).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let dir = TempDir::new().unwrap();
    let script = dir.path().join("goondan.bash");
    fs::write(&script, goondan(&["completions", "bash"]).stdout).unwrap();
    assert!(Command::new("bash").arg("-n").arg(&script).status().unwrap().success());
    assert_eq!(completed(&script, &["instance", "sh"]), ["show"]);
    assert_eq!(completed(&script, &["run", "--inp"]), ["--input"]);
    assert_eq!(completed(&script, &["check", "--log-format", "j"]), ["json"]);
    assert_eq!(completed(&script, &["explain", "E_EXT_L"]), ["E_EXT_LOAD"]);
    let commands = completed(&script, &[""]);
    for command in ["run", "check", "order", "instance", "schema", "new", "plugin", "explain", "completions", "man"] {
        assert!(commands.iter().any(|offered| offered == command), "{command} in {commands:?}");
    }
}

#[test]
fn every_shell_has_a_script_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = goondan(&["completions", shell]);
        assert!(output.status.success(), "{shell}: {output:?}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("state-root"), "{shell}");
    }
    assert_eq!(goondan(&["completions", "sh"]).status.code(), Some(2));
}

#[test]
fn each_command_has_a_page() {
    let dir = TempDir::new().unwrap();
    let directory = dir.path().join("share/man1");
    let output = goondan(&["man", directory.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    for page in ["goondan", "goondan-run", "goondan-check", "goondan-instance", "goondan-instance-show"] {
        let file = directory.join(format!("{page}.1"));
        let text = fs::read_to_string(&file).unwrap();
        for part in [".TH", ".SH NAME", ".SH SYNOPSIS", "log\\-level"] {
            assert!(text.contains(part), "{part} in {page}: {text}");
        }
        // Warnings of groff are mistakes in the page. Without groff, only the structure is checked.
        if let Ok(formatted) = Command::new("groff").args(["-man", "-ww", "-Tutf8"]).arg(&file).output() {
            assert!(formatted.status.success() && formatted.stderr.is_empty(), "{page}: {formatted:?}");
            assert!(!formatted.stdout.is_empty());
        }
    }
    let pages = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(pages.filter(|page| page.contains("help") || page.contains("describe")).count(), 0);
    let run = fs::read_to_string(directory.join("goondan-run.1")).unwrap();
    assert!(run.contains("Exit status"), "{run}");

    fs::write(dir.path().join("file"), "").unwrap();
    let refused = goondan(&["man", dir.path().join("file").to_str().unwrap()]);
    assert!(refused.status.code() == Some(1) && String::from_utf8_lossy(&refused.stderr).contains("E_IO"));
}

#[test]
fn global_options_stand_behind_those_of_the_command() {
    for command in [&["run"][..], &["check"], &["instance", "show"], &["plugin", "list"]] {
        for help in ["--help", "-h"] {
            let output = goondan(&[command, &[help]].concat());
            let page = String::from_utf8(output.stdout).unwrap();
            let (own, global) = page.split_once("\nLogging:\n").unwrap();
            assert!(own.contains("Options:\n") && !own.contains("--log-"), "{page}");
            assert!(global.contains("--log-level") && global.contains("--log-format"), "{page}");
        }
    }
}
