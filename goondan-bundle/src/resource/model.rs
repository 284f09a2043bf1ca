//! Owns the kind `Model`: who answers.

use std::path::{Component, Path, PathBuf};

use goondan_core::{ErrorCode, ScriptItem};

use crate::document::{Document, Kind};
use crate::field::{Field, meant};
use crate::nearest::nearest;
use crate::plain::read_file;
use crate::reference::Resource;
use crate::shape::MODEL;
use crate::table::Table;

/// The providers that this version knows.
const PROVIDERS: [&str; 1] = ["scripted"];

/// A model that agents ask.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelResource {
    /// `metadata.name`.
    pub name: String,
    /// Who answers, with what this provider needs to know.
    pub provider: Provider,
}

/// Who answers for a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Provider {
    /// A list of answers, played in order: no key, no network.
    Scripted {
        /// The YAML file with the answers: below the bundle's root, and joined to it. It exists.
        script: PathBuf,
        /// What stood in it when the bundle was read.
        items: Vec<ScriptItem>,
        /// The file that gets every request as a line of JSON: below the bundle's root, and joined to it.
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
    pub(crate) fn read(document: &Document<'_>, root: &Path) -> Option<Self> {
        let spec = document.spec.as_ref()?.open(&MODEL)?;
        let provider = spec.need("provider");
        let named = provider.as_ref().and_then(Field::text);
        if let (Some(provider), Some(named)) = (&provider, named)
            && !PROVIDERS.contains(&named)
        {
            // The other fields may be those of that provider.
            let message =
                format!("unknown provider `{named}`: this build knows `scripted`{}", meant(nearest(named, PROVIDERS)));
            provider.refuse(ErrorCode::CONFIG_SCHEMA, message, "write `provider: scripted`, with a `script`");
            return None;
        }
        spec.only();
        let scripted = scripted(&spec, root);
        named?;
        Some(Self { name: document.name()?.to_owned(), provider: scripted? })
    }
}

fn scripted(spec: &Table<'_>, root: &Path) -> Option<Provider> {
    let script = spec.need("script").and_then(|field| {
        let file = below(root, &field)?;
        if file.is_file() {
            // RULE-02: what the script of a model says is checked before any turn.
            let items = read_file(&file).unwrap_or_else(|diagnostics| {
                diagnostics.into_iter().for_each(|diagnostic| field.sink().report(diagnostic));
                Vec::new()
            });
            return Some((file, items));
        }
        field.refuse(
            ErrorCode::CONFIG_ENTRY_NOT_FOUND,
            format!("{} names a file that does not exist: `{}`", field.name(), file.display()),
            "create it, or write its path relative to the bundle",
        );
        None
    });
    let record = spec.get("record").map(|field| below(root, &field));
    let ((script, items), record) = (script?, record.map_or(Some(None), |record| record.map(Some))?);
    Some(Provider::Scripted { script, items, record })
}

/// The path that `field` names, which must not lead out of the bundle (F-REF).
fn below(root: &Path, field: &Field<'_>) -> Option<PathBuf> {
    let text = field.text()?;
    let inside = |component: &Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    let components: Vec<_> = Path::new(text).components().collect();
    if components.iter().all(inside) && components.iter().any(|component| *component != Component::CurDir) {
        return Some(root.join(components.into_iter().filter(|part| *part != Component::CurDir).collect::<PathBuf>()));
    }
    field.refuse(
        ErrorCode::CONFIG_SCHEMA,
        format!("{} must be a path below the bundle's directory, but is {}", field.name(), field.value()),
        "write a relative path without `..`",
    );
    None
}
