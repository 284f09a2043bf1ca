//! The files of a bundle: selects those that declare something, and parses their documents.

use std::path::{Path, PathBuf};

use goondan_core::ErrorCode;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Sink};
use crate::scan::Scan;
use crate::source;
use crate::yaml::{self, Node};

/// The files of a bundle.
pub(super) struct Files {
    pub(super) root: PathBuf,
    pub(super) parsed: Vec<ParsedFile>,
    /// Whether all documents could be parsed. If not, one of the others may declare the thing that seems to be missing.
    pub(super) complete: bool,
}

/// A file with its documents and its diagnostics.
pub(super) struct ParsedFile {
    pub(super) sink: Sink,
    pub(super) nodes: Vec<Node>,
    /// Whether it belongs to the bundle whatever it contains.
    main: bool,
    /// Whether all of it could be parsed.
    complete: bool,
}

impl ParsedFile {
    /// `None` for a file that has nothing to do with the bundle.
    fn read(file: PathBuf, main: bool) -> Option<Self> {
        let text = if main { source::read(&file).map(Some) } else { source::read_if_resources(&file) };
        let documents = text.and_then(|text| text.map(|text| yaml::documents(&file, &text)).transpose());
        let mut parsed = Self { sink: Sink::new(file), nodes: Vec::new(), main, complete: true };
        match documents {
            Ok(Some(documents)) => documents.into_iter().for_each(|document| match document {
                Ok(node) => parsed.nodes.push(node),
                Err(errors) => parsed.refuse(errors),
            }),
            Ok(None) => return None,
            Err(errors) => parsed.refuse(errors),
        }
        Some(parsed)
    }

    fn refuse(&mut self, errors: Diagnostics) {
        self.complete = false;
        errors.into_iter().for_each(|error| self.sink.report(error));
    }

    /// Whether the file declares something, as far as that is known.
    fn declares(&self) -> bool {
        !self.complete || self.nodes.iter().any(|node| node.get("kind").is_some())
    }
}

impl Files {
    pub(super) fn open(path: &Path) -> Result<Self, Diagnostics> {
        let scan = Scan::of(path)?;
        let main = scan.main.iter().cloned().filter_map(|file| ParsedFile::read(file, true));
        let others = scan.others.iter().cloned().filter_map(|file| ParsedFile::read(file, false));
        let mut parsed: Vec<_> = main.chain(others).collect();
        if scan.unreadable.is_empty() && !parsed.iter().any(ParsedFile::declares) {
            return Err(nothing_declared(path, &scan, &parsed).into());
        }
        parsed.retain(ParsedFile::declares);
        let complete = scan.unreadable.is_empty() && parsed.iter().all(|file| file.complete);
        // An unreadable directory counts as a file without documents, so that its error is reported with the others.
        parsed.extend(scan.unreadable.into_iter().map(|error| {
            let sink = Sink::new(error.file.clone());
            sink.report(error);
            ParsedFile { sink, nodes: Vec::new(), main: false, complete: false }
        }));
        Ok(Self { root: scan.root, parsed, complete })
    }
}

fn nothing_declared(path: &Path, scan: &Scan, parsed: &[ParsedFile]) -> Diagnostic {
    let remedy = "add a document with `kind: Agent` and one with `kind: Model`";
    let Some(main) = parsed.iter().find(|file| file.main) else {
        let message = "the directory holds no `goondan.yaml`, and no other YAML file in it declares anything";
        let suggestion = match scan.nested.first() {
            Some(nested) => format!("name a bundle below it, such as `{}`", nested.display()),
            None => "create `goondan.yaml` there, or name the YAML file itself".to_owned(),
        };
        return Diagnostic::parse_error(path, None, message, suggestion);
    };
    let (code, message) = match main.nodes.len() {
        0 => (
            ErrorCode::CONFIG_PARSE,
            "the file is empty: expected documents with `apiVersion`, `kind`, `metadata` and `spec`",
        ),
        _ => (
            ErrorCode::CONFIG_SCHEMA,
            "the file declares nothing: expected documents with a `kind`, and those without one are ignored",
        ),
    };
    Diagnostic::error(code, main.sink.file(), Place::START, message, remedy)
}
