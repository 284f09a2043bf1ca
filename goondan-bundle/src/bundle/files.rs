//! Owns the files of a bundle: which of those that were found declare something, and their documents.

use std::path::{Path, PathBuf};

use goondan_core::ErrorCode;

use crate::fault::{Collector, Fault, Flaw, Place};
use crate::faults::Faults;
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
    pub(super) faults: Collector,
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
        let mut opened = Self { faults: Collector::new(file), nodes: Vec::new(), main, whole: true };
        match text.and_then(|text| text.map(|text| yaml::documents(&text)).transpose()) {
            Ok(Some(documents)) => documents.into_iter().for_each(|document| match document {
                Ok(node) => opened.nodes.push(node),
                Err(flaw) => opened.refuse(flaw),
            }),
            Ok(None) => return None,
            Err(flaw) => opened.refuse(flaw),
        }
        Some(opened)
    }

    fn refuse(&mut self, flaw: Flaw) {
        self.whole = false;
        self.faults.report(flaw);
    }

    fn declares(&self) -> bool {
        !self.whole || self.nodes.iter().any(|node| node.get("kind").is_some())
    }
}

impl Files {
    pub(super) fn open(path: &Path) -> Result<Self, Faults> {
        let scan = Scan::of(path)?;
        let main = scan.main.iter().cloned().filter_map(|file| Opened::read(file, true));
        let others = scan.others.iter().cloned().filter_map(|file| Opened::read(file, false));
        let mut opened: Vec<_> = main.chain(others).collect();
        if scan.faults.is_empty() && !opened.iter().any(Opened::declares) {
            return Err(nothing_in(path, &scan, &opened).into());
        }
        opened.retain(Opened::declares);
        let complete = scan.faults.is_empty() && opened.iter().all(|file| file.whole);
        opened.extend(scan.faults.into_iter().map(|fault| {
            let faults = Collector::new(fault.file.clone());
            faults.report_elsewhere(fault);
            Opened { faults, nodes: Vec::new(), main: false, whole: false }
        }));
        Ok(Self { root: scan.root, opened, complete })
    }
}

fn nothing_in(path: &Path, scan: &Scan, opened: &[Opened]) -> Fault {
    let cure = "add a document with `kind: Agent` and one with `kind: Model`";
    let Some(main) = opened.iter().find(|file| file.main) else {
        let message = "the directory holds no `goondan.yaml`, and no other YAML file in it declares anything";
        let suggestion = match scan.nested.first() {
            Some(nested) => format!("name a bundle below it, such as `{}`", nested.display()),
            None => "create `goondan.yaml` there, or name the YAML file itself".to_owned(),
        };
        return source::refuse(message, suggestion).of(path);
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
    Flaw::new(code, Place::START, message, cure).of(main.faults.file())
}
