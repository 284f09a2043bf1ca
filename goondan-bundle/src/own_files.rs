//! The files that a bundle is made of.
// TREE-01

use std::path::{Path, PathBuf};

use goondan_core::BundleFiles;
use serde_json::Value;

use crate::bundle::Bundle;
use crate::capability::files_of_commands;
use crate::resource::ExtensionRef;

/// The files that decide which code the agents of a bundle run, as far as they are found.
pub(crate) struct OwnFiles<'a> {
    bundle: &'a Bundle,
    /// The root without links.
    root: PathBuf,
    files: Vec<PathBuf>,
}

impl<'a> OwnFiles<'a> {
    /// Finds those whose changes change the agents, and recordings that could be played.
    pub(crate) fn new(bundle: &'a Bundle) -> Self {
        let root = bundle.root().canonicalize().unwrap_or_else(|_| bundle.root().to_owned());
        let recordings = bundle.models().flat_map(|model| &model.recordings).map(PathBuf::as_path);
        let absolute = |file: &Path| root.join(file.strip_prefix(bundle.root()).unwrap_or(file));
        let files = bundle.sources().chain(recordings).map(absolute).collect();
        Self { bundle, root, files }
    }

    /// Adds the files that the commands in the config of an extension name. `schema` returns the schema of the config.
    pub(crate) fn add_commands(&mut self, used: &ExtensionRef, schema: impl FnOnce() -> Option<Value>) {
        let config = used.shown_config();
        // Most configs name nothing, and schemas take time.
        if has_text(&config)
            && let Some(schema) = schema()
        {
            self.files.extend(files_of_commands(&schema, &config, &self.root));
        }
    }

    pub(crate) fn list(self) -> BundleFiles {
        let files = BundleFiles::new(self.files);
        if self.bundle.is_directory() { files.read_from(self.root) } else { files }
    }
}

fn has_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().any(has_text),
        Value::Object(members) => members.values().any(has_text),
        _ => false,
    }
}
