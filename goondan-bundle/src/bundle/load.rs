//! Owns how a bundle is read: each document by itself, then each kind after those that it refers to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::{ErrorCode, Result};

use super::Bundle;
use crate::document::Document;
use crate::fault::{Fault, Faults, Place};
use crate::reference::{Names, Resource};
use crate::resource::{AgentResource, ExtensionResource, ModelResource, SwarmResource};
use crate::{source, yaml};

impl Bundle {
    /// Reads a bundle: `path` is a YAML file, or a directory that holds `goondan.yaml` or `goondan.yml`.
    ///
    /// # Errors
    /// The first fault in the file, with a code of the family `E_CONFIG_…`, or `E_EXT_LOAD` for an entry that this
    /// version cannot load. The message begins with `<file>:<line>:<column>: `, or with the path alone when there is
    /// no text to point at; the suggestion is the remedy.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let (file, root) = source::locate(path.as_ref())?;
        let text = source::read(&file)?;
        Self::read(&text, &file, root).map_err(|fault| fault.into_error(&file))
    }

    fn read(text: &str, file: &Path, root: PathBuf) -> Result<Self, Fault> {
        let faults = Faults::default();
        let mut complete = true;
        let mut nodes = Vec::new();
        for document in yaml::documents(text)? {
            match document {
                Ok(node) => nodes.push(node),
                Err(fault) => {
                    complete = false;
                    faults.report(fault);
                }
            }
        }
        if complete && !nodes.iter().any(|node| node.get("kind").is_some()) {
            return Err(nothing_in(nodes.len()));
        }
        let documents: Vec<_> = nodes.iter().filter_map(|node| Document::read(node, &faults)).collect();
        let kinds = nodes.iter().filter(|node| node.get("kind").is_some()).count();
        complete &= documents.len() == kinds && documents.iter().all(|document| document.name().is_some());
        let names = Names::of(&documents, complete);
        let models = read_all(&documents, |document| ModelResource::read(document, &root));
        let extensions = read_all(&documents, ExtensionResource::read);
        let agents = read_all(&documents, |document| AgentResource::read(document, &names, &models, &extensions));
        let swarms = read_all(&documents, |document| SwarmResource::read(document, &names, &agents));
        refuse_second_swarm(&documents);
        drop(documents);
        match faults.into_first() {
            Some(fault) => Err(fault),
            None => {
                let swarm = swarms.into_iter().next();
                Ok(Self { file: file.to_owned(), root, models, extensions, agents, swarm })
            }
        }
    }
}

fn read_all<T: Resource>(documents: &[Document<'_>], read: impl Fn(&Document<'_>) -> Option<T>) -> Vec<Arc<T>> {
    documents.iter().filter(|document| document.kind == T::KIND).filter_map(read).map(Arc::new).collect()
}

/// Two swarms would leave open which of them input goes to.
fn refuse_second_swarm(documents: &[Document<'_>]) {
    let swarms = documents.iter().filter(|document| document.kind == SwarmResource::KIND);
    for name in swarms.skip(1).filter_map(|document| document.name.as_ref()) {
        let message = "there is another Swarm above, and a bundle has one at most";
        name.refuse(ErrorCode::CONFIG_SCHEMA, message, "keep one Swarm, or move the other to a bundle of its own");
    }
}

fn nothing_in(documents: usize) -> Fault {
    let message = match documents {
        0 => "the file is empty: expected documents with `apiVersion`, `kind`, `metadata` and `spec`",
        _ => "the file declares nothing: expected documents with a `kind`, and those without one are ignored",
    };
    let code = if documents == 0 { ErrorCode::CONFIG_PARSE } else { ErrorCode::CONFIG_SCHEMA };
    Fault::new(code, Place::START, message, "add a document with `kind: Agent` and one with `kind: Model`")
}
