//! Bundles that are reloaded while their agents have conversations.

use goondan_bundle::{Bundle, Declared, Libraries, LibraryEntry};
use goondan_core::{Error, ErrorCode, ExtensionDescriptor, Result};
use goondan_runtime::{Change, MemoryStore};
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{MODEL, directory_of};

/// A library with an extension whose config decides whether `#[init]` succeeds.
struct Fickle;

static FICKLE: ExtensionDescriptor = ExtensionDescriptor::new("fickle", &|| json!({}), &|_, config| {
    Box::pin(async move {
        if config["works"] == true { Ok(()) } else { Err(Error::new(ErrorCode::EXT_INIT, "it does not work")) }
    })
})
.package("fickle", "0.1.0");

impl Libraries for Fickle {
    fn declared(&self, _: &LibraryEntry) -> Result<Declared> {
        Ok(Declared::default())
    }

    fn load(&self, _: &LibraryEntry) -> Result<&'static ExtensionDescriptor> {
        Ok(&FICKLE)
    }
}

/// A bundle of agents with that extension, each with its `works` setting.
fn bundle(agents: &[(&str, bool)], version: u32) -> (TempDir, Bundle) {
    let extension = "apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: fickle }
spec: { entry: ./fickle }
";
    let agents = agents.iter().map(|(name, works)| {
        format!(
            "---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: {name} }}
spec:
  model: Model/main
  extensions: [ {{ ref: Extension/fickle, config: {{ works: {works}, version: {version} }} }} ]
"
        )
    });
    let text = format!("{MODEL}---\n{extension}{}", agents.collect::<String>());
    let file = format!("{}fickle{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let directory = directory_of(&[("goondan.yaml", &text), ("script.yaml", "- say: hi\n"), (&file, "")]);
    let bundle = Bundle::load(directory.path()).unwrap();
    (directory, bundle)
}

#[tokio::test]
async fn agents_that_cannot_be_reloaded_do_not_keep_others_from_it() {
    let (_directory, old) = bundle(&[("a", true), ("b", true), ("c", true), ("gone", true)], 1);
    let mut agents = old.build_with(MemoryStore::new(), &Fickle).await.unwrap();
    let mut open = Vec::new();
    for agent in agents.iter() {
        open.push(agent.instance("one").await.unwrap());
    }
    let (_directory, new) = bundle(&[("a", false), ("b", true), ("c", false), ("new", true)], 2);
    let outcomes = agents.reload(&new, Some(&Fickle)).await.unwrap();
    let outcomes: Vec<_> = outcomes.iter().map(|(name, outcome)| (name.as_str(), outcome)).collect();
    let [("a", Err(first)), ("b", Ok(reloaded)), ("c", Err(second))] = outcomes.as_slice() else {
        panic!("{outcomes:?}");
    };
    for error in [first, second] {
        assert_eq!(error.code(), &ErrorCode::EXT_INIT, "{error:?}");
    }
    assert!(
        matches!(reloaded.changes.as_slice(), [only] if matches!(only.change, Change::Configured { .. })),
        "{reloaded:?}"
    );
    let names: Vec<_> = agents.iter().map(|agent| agent.name().as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "new"]);
}
