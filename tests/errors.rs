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

#[test]
fn every_code_has_a_page_with_an_anchor() {
    let document = fs::read_to_string("docs/errors.md").unwrap();
    // rustdoc makes the id of a heading of its text in lower case.
    let anchors: Vec<_> = document.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_lowercase).collect();
    for code in ErrorCode::ALL {
        let url = code.help_url().unwrap();
        let (page, anchor) = url.split_once('#').unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(page, format!("https://docs.rs/goondan/{version}/goondan/errors/index.html"));
        assert!(anchors.iter().any(|known| known == anchor), "{anchor}");
        assert!(goondan::errors::explain(code).unwrap().contains("**What to do.** "), "{code}");
    }
    assert_eq!(goondan::errors::explain(&"E_OF_AN_EXTENSION".into()), None);
    // The page is also the documentation of a module, beside which no other page is.
    assert!(!document.contains("]("), "a link leads nowhere");
}
