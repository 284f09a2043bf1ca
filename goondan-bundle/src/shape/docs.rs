//! Owns the tables of `docs/bundles.md`: they say what the shapes say, or the test fails.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{DOCUMENT, FieldShape, Shape, Takes};
use crate::document::Kind;

const DOCUMENT_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/bundles.md");

#[test]
fn tables_of_the_documentation_are_those_of_the_reader() {
    let written = fs::read_to_string(Path::new(DOCUMENT_FILE)).unwrap();
    let mut right = replace(&written, "Document", &table(&DOCUMENT, ""));
    for kind in Kind::ALL {
        right = replace(&right, kind.as_str(), &table(kind.shape(), "spec."));
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(DOCUMENT_FILE, right).unwrap();
        return;
    }
    assert_eq!(written, right, "docs/bundles.md is behind: BLESS=1 cargo test -p goondan-bundle writes it");
}

/// `document` with `table` between the marks of `name`.
fn replace(document: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- fields of {name} -->\n"), "<!-- end -->".to_owned());
    let (before, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("docs/bundles.md has no `{begin}`"));
    let (_, after) = rest.split_once(&end).unwrap();
    format!("{before}{begin}\n{table}\n{end}{after}")
}

fn table(shape: &Shape, path: &str) -> String {
    let mut table = "| Field | Takes | Meaning |\n|---|---|---|\n".to_owned();
    add_rows(&mut table, shape, path);
    table
}

fn add_rows(table: &mut String, shape: &Shape, path: &str) {
    for field in shape.fields {
        let FieldShape { name, required, about, takes, .. } = field;
        let required = if *required { "**Required.** " } else { "" };
        writeln!(table, "| `{path}{name}` | {} | {required}{about} |", said(takes)).unwrap();
        match takes {
            Takes::Table(shape) => add_rows(table, shape, &format!("{path}{name}.")),
            Takes::List { of, .. } => add_rows(table, of, &format!("{path}{name}[].")),
            _ => {}
        }
    }
}

fn said(takes: &Takes) -> String {
    match takes {
        Takes::Text => "text".to_owned(),
        Takes::FilledText => "text that is not empty".to_owned(),
        Takes::Name => "a name".to_owned(),
        Takes::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or "),
        Takes::Kind => Kind::ALL.map(|kind| format!("`{kind}`")).join(", "),
        Takes::Path => "a path".to_owned(),
        Takes::Entry => "`linked:` and a name, or a path".to_owned(),
        Takes::Digest => "64 hexadecimal digits".to_owned(),
        Takes::Positive => format!("a whole number from 1 to {}", u32::MAX),
        Takes::Object => "a mapping of anything".to_owned(),
        Takes::Labels => "a mapping of text".to_owned(),
        Takes::Reference(kind) => format!("a reference to a resource of the kind {kind}"),
        Takes::Table(_) | Takes::Spec => "a mapping".to_owned(),
        Takes::List { at_least: 0, .. } => "a list".to_owned(),
        Takes::List { at_least, .. } => format!("a list of at least {at_least}"),
    }
}
