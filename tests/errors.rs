//! Every error code has a section in `docs/errors.md`, and every section a code.

use std::fs;

use goondan::ErrorCode;

#[test]
fn docs_and_code_have_the_same_errors() {
    let document = fs::read_to_string("docs/errors.md").unwrap();
    let sections: Vec<_> = document.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let codes: Vec<_> = ErrorCode::ALL.iter().map(ErrorCode::as_str).collect();
    assert_eq!(sections, codes);
}
