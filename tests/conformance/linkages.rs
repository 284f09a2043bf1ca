//! LINK: the suite runs in both linkages, with exceptions that are listed here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use goondan::extension::ExtensionDescriptor;
use goondan_covers::covers;

use crate::linkage::library;

/// The cases with an extension that run only linked, with the reason.
const LINKED_ONLY: [(&str, &str); 2] = [
    ("an_extension_that_is_not_linked_is_refused_with_the_line_to_add", "it is about what is linked"),
    (
        "another_version_of_the_contract_is_refused_before_any_code_runs",
        "a library of another version is refused when it is inspected: goondan-abi/tests/library/inspect.rs",
    ),
];

/// The code with which a case would add an extension independently of its linkage.
const FIXED_LINKAGE: [&str; 5] =
    [".extension::<", ".linked_extension(", ".described_extension(", "Chat::with::<", "#[goondan::extension"];

#[test]
fn every_case_with_an_extension_runs_in_both_linkages_or_has_a_reason() {
    let mut linked_only = BTreeSet::new();
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")).unwrap() {
        let path = file.unwrap().path();
        let own = path.ends_with("linkage.rs") || path.ends_with("linkages.rs");
        if own || path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let mut function = String::new();
        for line in fs::read_to_string(&path).unwrap().lines() {
            if let Some((_, rest)) = line.split_once("fn ").filter(|_| !line.starts_with(' ')) {
                function = rest.split('(').next().unwrap_or_default().to_owned();
            }
            if FIXED_LINKAGE.iter().any(|code| line.contains(code)) {
                linked_only.insert(function.clone());
            }
        }
    }
    let known: BTreeSet<_> = LINKED_ONLY.iter().map(|(case, _)| (*case).to_owned()).collect();
    assert_eq!(linked_only, known);
}

/// Returns everything that a descriptor says, as text.
fn described(extension: &ExtensionDescriptor) -> String {
    let tool = |tool: &goondan::extension::ToolDescriptor| format!("{tool:?} {}", (tool.parameters)());
    let tools: Vec<_> = extension.tools.iter().map(tool).collect();
    let config = (extension.config_schema)();
    format!("{extension:?} {} {} {tools:?} {config}", extension.description, extension.api_version)
}

#[test]
#[covers("LINK-01")]
fn an_extension_describes_itself_the_same_in_both_linkages() {
    let linked =
        goondan::extension::linked().into_iter().filter(|extension| extension.package == "conformance-extensions");
    let mut loaded = library().extensions().to_vec();
    loaded.sort_by_key(|extension| extension.name);
    let linked: Vec<_> = linked.collect();
    assert!(linked.len() > 40, "{linked:?}");
    assert!(linked.iter().zip(&loaded).all(|(linked, loaded)| !std::ptr::eq(*linked, *loaded)));
    let [loaded, linked] = [loaded, linked].map(|all| all.into_iter().map(described).collect::<Vec<_>>());
    assert_eq!(loaded, linked);
}
