//! What the agents of a bundle can do, as its configs say it.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};

use goondan_bundle::{Bundle, Capabilities, CapabilityKind, CapabilityOwner, Entry};
use goondan_covers::covers;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{MODEL, directory_of};

/// The schema of every extension of these bundles.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": { "type": "array", "x-goondan": "command" },
            "env": { "type": "object", "x-goondan": "variable" },
            "url": { "type": "string", "x-goondan": "host" },
            "roots": { "type": "array", "x-goondan": "root", "default": ["here"] },
            "protect": { "type": "array", "x-goondan": "limit" },
            "shell": { "type": "boolean", "x-goondan": { "shell": "any" } },
        },
    })
}

/// Returns a bundle with an extension that has this entry and this config, which its agent completes.
fn bundle(entry: &str, config: &str, of_agent: &str) -> (TempDir, Bundle) {
    let text = format!(
        "{MODEL}---
apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: act }}
spec: {{ entry: \"{entry}\", config: {config} }}
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: unused }}
spec: {{ entry: \"linked:act\", config: {{ shell: true }} }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: main }}
spec: {{ model: Model/main, extensions: [ {{ ref: Extension/act, config: {of_agent} }} ] }}
"
    );
    let library = format!("{DLL_PREFIX}act{DLL_SUFFIX}");
    let directory = directory_of(&[("goondan.yaml", &text), ("script.yaml", "- say: hi\n"), (&library, "")]);
    let bundle = Bundle::load(directory.path()).unwrap();
    (directory, bundle)
}

fn capabilities(entry: &str, config: &str, of_agent: &str) -> Capabilities {
    let (_directory, bundle) = bundle(entry, config, of_agent);
    Capabilities::of(&bundle, |_| Ok(Some(schema()))).unwrap()
}

#[test]
#[covers("TREE-01")]
fn what_a_config_lets_an_extension_do_is_listed() {
    let all = capabilities(
        "./act#it",
        "{ command: [npx, a b], env: { TOKEN: { valueFrom: { env: GH } }, A: b }, url: https://a.b/c, shell: true }",
        "{ command: [npx, foo], protect: [] }",
    );
    let library = format!("library {DLL_PREFIX}act{DLL_SUFFIX}");
    let expected = format!(
        "command npx foo, shell any, {library}, host https://a.b, root here, variable A=b, variable TOKEN=$GH, \
         reads GH for env.TOKEN, setting protect: []"
    );
    assert_eq!(all.to_string(), expected);
    assert_eq!(all.iter().len(), 9);
    let owner = CapabilityOwner::Extension("main".parse().unwrap(), "act".parse().unwrap());
    assert!(all.iter().all(|each| each.owner == owner), "{all:?}");
    assert!(capabilities("linked:act", "{ roots: [] }", "{ shell: false, protect: [a] }").is_empty());
}

#[test]
fn of_an_extension_whose_schema_is_not_known_only_the_library_is() {
    let (_directory, bundle) = bundle("./act", "{ command: [npx] }", "{}");
    let all = Capabilities::of(&bundle, |_| Ok(None)).unwrap();
    assert_eq!(all.iter().map(|each| each.kind).collect::<Vec<_>>(), [CapabilityKind::Library]);
    let asked = Capabilities::of(&bundle, |entry: &Entry| Ok(entry.linked_schema())).unwrap();
    assert_eq!(all, asked);
}

#[test]
fn what_is_new_is_found_by_its_owner_but_hosts_and_libraries_are_those_of_all() {
    let old = capabilities("./act", "{ command: [a], url: https://a.b, roots: [x] }", "{}");
    let beyond = |new: &Capabilities| new.beyond(&old).to_string();
    assert_eq!(beyond(&old), "");
    // Less is no addition, and neither is another place of the same host or library.
    assert_eq!(beyond(&capabilities("./act#other", "{ url: https://a.b/d, roots: [x] }", "{}")), "");
    let new = capabilities("linked:act", "{ command: [a, b], url: https://a.c, roots: [x, y] }", "{}");
    assert_eq!(beyond(&new), "command a b, host https://a.c, root y");
    let mut both = old.clone();
    both.append(&mut new.beyond(&old));
    assert!(new.beyond(&both).is_empty());
    let (_directory, bundle) = bundle("./act", "{ command: [a], url: https://a.b, roots: [x] }", "{}");
    let mut renamed = bundle.clone();
    assert!(Capabilities::of(&renamed, |_| Ok(Some(schema()))).unwrap().beyond(&old).is_empty());
    let text = std::fs::read_to_string(bundle.files().next().unwrap()).unwrap().replace("name: main", "name: other");
    let other = directory_of(&[
        ("goondan.yaml", &text.replace("Model/main", "Model/other")),
        ("script.yaml", "- say: hi\n"),
        (&format!("{DLL_PREFIX}act{DLL_SUFFIX}"), ""),
    ]);
    renamed = Bundle::load(other.path()).unwrap();
    let renamed = Capabilities::of(&renamed, |_| Ok(Some(schema()))).unwrap();
    assert_eq!(beyond(&renamed), "command a, root x", "another agent has them");
}
