//! `goondan explain`, and the help lines that name it.

use std::process::Output;

use goondan::ErrorCode;

use crate::support::{self, printed};

fn goondan(arguments: &[&str]) -> Output {
    support::goondan().args(arguments).output().unwrap()
}

fn explained(arguments: &[&str]) -> String {
    printed(support::goondan().arg("explain").args(arguments))
}

fn refused(arguments: &[&str]) -> String {
    let output = goondan(arguments);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn every_code_is_explained_in_upper_and_lower_case() {
    for code in ErrorCode::ALL {
        let page = explained(&[code.as_str()]);
        assert!(page.starts_with(&format!("{code}\n\n")) && page.contains("\nWhat to do. "), "{page}");
        assert!(!page.contains("##"), "{page}");
        assert_eq!(explained(&[&code.as_str().to_lowercase()]), page);
    }
}

#[test]
fn without_a_code_all_are_listed_with_their_first_sentence() {
    let list = explained(&[]);
    let codes: Vec<_> = list.lines().map(|line| line.split("  ").next().unwrap()).collect();
    let known: Vec<_> = ErrorCode::ALL.iter().map(ErrorCode::as_str).collect();
    assert_eq!(codes, known);
    assert!(list.lines().all(|line| line.ends_with('.') && !line.contains(". ")), "{list}");
}

#[test]
fn near_codes_are_suggested_for_a_wrong_one() {
    for (wrong, suggested) in [
        ("E_EXT_LAOD", "did you mean E_EXT_LOAD?"),
        ("store_loc", "did you mean E_STORE_LOCKED?"),
        ("timeout", "did you mean E_TOOL_TIMEOUT or E_MODEL_TIMEOUT or E_TURN_TIMEOUT or AGENT_REQUEST_TIMEOUT?"),
        ("E_SOMETHING_OF_AN_EXTENSION", "help: `goondan explain` lists the codes"),
    ] {
        let error = refused(&["explain", wrong]);
        assert!(error.contains(&format!("no error code `{wrong}`")) && error.contains(suggested), "{error}");
    }
}

#[test]
fn a_help_line_names_a_command_that_works() {
    let error = refused(&["plugin", "inspect", "/dev/null"]);
    let (_, command) = error.trim_end().rsplit_once("see: goondan ").unwrap();
    assert_eq!(command, "explain E_EXT_LOAD");
    assert!(goondan(&command.split(' ').collect::<Vec<_>>()).status.success());
    assert!(!error.contains("http"), "{error}");
}
