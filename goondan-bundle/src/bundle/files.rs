//! Owns the files of a bundle: which of those that were found declare something, and their documents.

use std::path::{Path, PathBuf};

use goondan_core::ErrorCode;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Sink};
use crate::scan::Scan;
use crate::source;
use crate::yaml::{self, Node};

/// The files of a bundle.
pub(super) struct Files {
    pub(super) root: PathBuf,
    pub(super) opened: Vec<Opened>,
    /// Whether all documents could be read; if not, what seems to be missing may be in one that could not.
    pub(super) complete: bool,
}

/// A file, its documents, and what is wrong with it.
pub(super) struct Opened {
    pub(super) sink: Sink,
    pub(super) nodes: Vec<Node>,
    /// Whether it is a bundle file whatever it holds.
    main: bool,
    /// Whether all of it could be read.
    whole: bool,
}

impl Opened {
    /// `None` for a file that is none of ours.
    fn read(file: PathBuf, main: bool) -> Option<Self> {
        let text = if main { source::read(&file).map(Some) } else { source::read_if_ours(&file) };
        let documents = text.and_then(|text| text.map(|text| yaml::documents(&file, &text)).transpose());
        let mut opened = Self { sink: Sink::new(file), nodes: Vec::new(), main, whole: true };
        match documents {
            Ok(Some(documents)) => documents.into_iter().for_each(|document| match document {
                Ok(node) => opened.nodes.push(node),
                Err(diagnostics) => opened.refuse(diagnostics),
            }),
            Ok(None) => return None,
            Err(diagnostics) => opened.refuse(diagnostics),
        }
        Some(opened)
    }

    fn refuse(&mut self, diagnostics: Diagnostics) {
        self.whole = false;
        diagnostics.into_iter().for_each(|diagnostic| self.sink.report(diagnostic));
    }

    fn declares(&self) -> bool {
        !self.whole || self.nodes.iter().any(|node| node.get("kind").is_some())
    }
}

impl Files {
    pub(super) fn open(path: &Path) -> Result<Self, Diagnostics> {
        let scan = Scan::of(path)?;
        let main = scan.main.iter().cloned().filter_map(|file| Opened::read(file, true));
        let others = scan.others.iter().cloned().filter_map(|file| Opened::read(file, false));
        let mut opened: Vec<_> = main.chain(others).collect();
        if scan.unreadable.is_empty() && !opened.iter().any(Opened::declares) {
            return Err(nothing_in(path, &scan, &opened).into());
        }
        opened.retain(Opened::declares);
        let complete = scan.unreadable.is_empty() && opened.iter().all(|file| file.whole);
        opened.extend(scan.unreadable.into_iter().map(|diagnostic| {
            let sink = Sink::new(diagnostic.file.clone());
            sink.report(diagnostic);
            Opened { sink, nodes: Vec::new(), main: false, whole: false }
        }));
        Ok(Self { root: scan.root, opened, complete })
    }
}

fn nothing_in(path: &Path, scan: &Scan, opened: &[Opened]) -> Diagnostic {
    let cure = "add a document with `kind: Agent` and one with `kind: Model`";
    let Some(main) = opened.iter().find(|file| file.main) else {
        let message = "the directory holds no `goondan.yaml`, and no other YAML file in it declares anything";
        let suggestion = match scan.nested.first() {
            Some(nested) => format!("name a bundle below it, such as `{}`", nested.display()),
            None => "create `goondan.yaml` there, or name the YAML file itself".to_owned(),
        };
        return Diagnostic::parse_error(path, message, suggestion);
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
    Diagnostic::error(code, main.sink.file(), Place::START, message, cure)
}
