//! The kind `Model`: the provider of a model, and what the provider needs.

use std::path::{Component, Path, PathBuf};

use goondan_core::{ErrorCode, ScriptItem};

use super::ToCheck;
use crate::kind::Kind;
use crate::nearest::{did_you_mean, nearest};
use crate::plain::read_file;
use crate::read::{Cursor, Document, MapReader, Resource};
use crate::schema::MODEL;

/// The providers that this version supports.
const PROVIDERS: [&str; 1] = ["scripted"];

/// A model that agents call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelResource {
    /// `metadata.name`.
    pub name: String,
    /// The provider, with its settings.
    pub provider: Provider,
}

/// The provider of a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Provider {
    /// A list of answers, played in order: no key, no network.
    Scripted {
        /// The YAML file with the answers: below the root of the bundle, joined to it. It exists.
        script: PathBuf,
        /// The answers that the file had when the bundle was read.
        items: Vec<ScriptItem>,
        /// The file to which every request is appended as a line of JSON: below the root of the bundle, joined to it.
        record: Option<PathBuf>,
    },
}

impl Resource for ModelResource {
    const KIND: Kind = Kind::Model;

    fn name(&self) -> &str {
        &self.name
    }
}

impl ModelResource {
    pub(crate) fn read<'a>(document: &Document<'a>, root: &Path, to_check: &mut ToCheck<'a>) -> Option<Self> {
        let spec = MapReader::lenient(document.spec.as_ref()?, &MODEL)?;
        let provider = spec.require("provider");
        let named = provider.as_ref().and_then(Cursor::text);
        if let (Some(provider), Some(named)) = (&provider, named)
            && !PROVIDERS.contains(&named)
        {
            // The other fields may be settings of that provider, so they are not checked.
            let guess = did_you_mean(nearest(named, PROVIDERS));
            let message = format!("unknown provider `{named}`: this build knows `scripted`{guess}");
            provider.error(ErrorCode::CONFIG_SCHEMA, message, "write `provider: scripted`, with a `script`");
            return None;
        }
        spec.deny_unknown();
        let scripted = scripted(&spec, root, to_check);
        named?;
        Some(Self { name: document.name()?.to_owned(), provider: scripted? })
    }
}

fn scripted<'a>(spec: &MapReader<'a>, root: &Path, to_check: &mut ToCheck<'a>) -> Option<Provider> {
    let script = spec.require("script").and_then(|script| {
        let file = below(root, &script)?;
        if file.is_file() {
            // RULE-02: the script of a model is checked before any turn.
            let items = read_file(&file).unwrap_or_else(|errors| {
                errors.into_iter().for_each(|error| script.sink().report(error));
                Vec::new()
            });
            return Some((file, items));
        }
        script.error(
            ErrorCode::CONFIG_ENTRY_NOT_FOUND,
            format!("{} names a file that does not exist: `{}`", script.name(), file.display()),
            "create it, or write its path relative to the bundle",
        );
        None
    });
    let record = spec.get("record").map(|cursor| {
        let file = below(root, &cursor)?;
        to_check.records.push((file.clone(), cursor));
        Some(file)
    });
    let ((script, items), record) = (script?, record.map_or(Some(None), |record| record.map(Some))?);
    Some(Provider::Scripted { script, items, record })
}

/// The path at `cursor`, which must not lead out of the bundle (F-REF).
fn below(root: &Path, cursor: &Cursor<'_>) -> Option<PathBuf> {
    let text = cursor.text()?;
    let inside = |component: &Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    let components: Vec<_> = Path::new(text).components().collect();
    if components.iter().all(inside) && components.iter().any(|component| *component != Component::CurDir) {
        return Some(root.join(components.into_iter().filter(|part| *part != Component::CurDir).collect::<PathBuf>()));
    }
    cursor.error(
        ErrorCode::CONFIG_SCHEMA,
        format!("{} must be a path below the bundle's directory, but is {}", cursor.name(), cursor.value()),
        "write a relative path without `..`",
    );
    None
}
