//! Reads a bundle: its files, then each document by itself, then all of them together.

use std::path::Path;

use goondan_core::Result;

use super::Bundle;
use super::files::{Files, ParsedFile};
use super::reader::Reader;
use crate::check::{Extensions, check};
use crate::coverage::Coverage;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::known::KnownExtension;
use crate::read::{Document, Names};
use crate::resource::Resources;
use crate::yaml::{Node, Value, on_large_stack};

impl Bundle {
    /// Reads a bundle, as [`Bundle::check`] does.
    ///
    /// # Errors
    /// The first error of the bundle, with a code of the family `E_CONFIG_…`, or `E_EXT_LOAD` for the entry of a
    /// library that does not exist. The message begins with `<file>:<line>:<column>: `, or with the path alone when
    /// there is no text to point at. The suggestion is the remedy, and also says how many more errors there are.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::check(path).map_err(Diagnostics::into_error)
    }

    /// Reads a bundle without running anything. `path` is a YAML file, which is the whole bundle, or a directory. Of a
    /// directory all YAML files are read, also in nested directories, except for those in `dist`, `node_modules`,
    /// hidden and cache directories, and in directories that are bundles themselves because they contain a
    /// `goondan.yaml`. Files that do not look as if they declared resources are ignored.
    ///
    /// All of it, the checks of providers and libraries too, runs on a thread whose stack is large enough for nested
    /// YAML, while the caller waits.
    ///
    /// # Errors
    /// All errors of the bundle at once.
    ///
    /// ```
    /// # use goondan_bundle as goondan;
    /// use goondan::Bundle;
    ///
    /// let errors = Bundle::check("no/such/bundle").unwrap_err();
    /// assert_eq!(errors.first().code, Some("E_CONFIG_PARSE_ERROR".into()));
    /// assert_eq!(errors.first().message, "there is no such file or directory");
    /// assert_eq!(errors.first().suggestion, "check the path");
    /// ```
    // RULE-02
    pub fn check(path: impl AsRef<Path>) -> Result<Self, Diagnostics> {
        Self::reader().check(path)
    }

    /// As [`Bundle::check`], in a program with these extensions. Errors are also: entries of other extensions, configs
    /// that do not fit, and extensions of an agent that cannot be ordered.
    ///
    /// # Errors
    /// All errors of the bundle at once.
    // RULE-02, ORDER-11
    pub fn check_with(path: impl AsRef<Path>, extensions: &[KnownExtension<'_>]) -> Result<Self, Diagnostics> {
        Self::reader().linked(extensions).check(path)
    }

    pub(super) fn open(path: &Path, reader: &Reader<'_>) -> Result<Self, Diagnostics> {
        // Large for the script of a model too, which is read when the model is checked.
        on_large_stack(path, || Self::open_here(path, reader))?
    }

    fn open_here(path: &Path, reader: &Reader<'_>) -> Result<Self, Diagnostics> {
        let Files { root, parsed, complete } = Files::open(path)?;
        let (resources, warnings, coverage) = read(&parsed, &root, complete, reader);
        let files = parsed.iter().map(|file| file.sink.file().to_owned()).collect();
        match Diagnostics::gather(parsed.into_iter().map(|file| file.sink)) {
            Some(errors) => Err(errors),
            None => {
                let Resources { models, extensions, agents, swarms, servers } = resources;
                let (swarm, server) = (swarms.into_iter().next(), servers.into_iter().next());
                let path = path.to_owned();
                Ok(Self { path, files, root, models, extensions, agents, swarm, server, coverage, warnings })
            }
        }
    }
}

/// Reads and checks the documents of all files. Errors go to the sinks of the files; the warnings are returned.
fn read(
    files: &[ParsedFile],
    root: &Path,
    mut complete: bool,
    reader: &Reader<'_>,
) -> (Resources, Vec<Diagnostic>, Coverage) {
    let (mut documents, mut unread) = (Vec::new(), Vec::new());
    for (node, sink) in files.iter().flat_map(|file| file.nodes.iter().map(|node| (node, &file.sink))) {
        match Document::read(node, sink) {
            Some(document) => documents.push(document),
            None if node.get("kind").is_some() => unread.push(name_of(node)),
            None => {}
        }
    }
    // A document without a name may declare anything, and one of an unknown kind whatever has its name.
    complete &= unread.iter().all(Option::is_some) && documents.iter().all(|document| document.name().is_some());
    let names = Names::new(&documents, unread.into_iter().flatten().collect(), complete);
    let (resources, to_check) = Resources::read(&documents, &names, root, reader.allow_absolute, reader.cassettes);
    let extensions = Extensions::new(reader.linked, reader.libraries);
    let files: Vec<_> = files.iter().map(|file| file.sink.file()).collect();
    let (warnings, coverage) = check(&documents, &names, &resources, &to_check, extensions, root, &files);
    (resources, warnings, coverage)
}

/// The name that a document declares, whatever its kind.
fn name_of(node: &Node) -> Option<&str> {
    match &node.get("metadata")?.get("name")?.value {
        Value::Text(name) => Some(name),
        _ => None,
    }
}
