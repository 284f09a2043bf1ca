//! The modules of the crate import each other in one direction only.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// For each module, the modules that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Adds the imports between the children of the module `scope` that the files below `directory` contain.
fn collect(directory: &Path, module: &[String], scope: &[&str], imports: &mut Imports) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let mut module = module.to_vec();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if !matches!(name, "mod" | "lib" | "main") {
            module.push(name.to_owned());
        }
        if path.is_dir() {
            collect(&path, &module, scope, imports);
            continue;
        }
        let Some(importer) = child_of(scope, &module) else { continue };
        for line in fs::read_to_string(&path).unwrap().lines().take_while(|line| !line.contains("#[cfg(test)]")) {
            let imported = paths(line, &module).into_iter().filter_map(|path| child_of(scope, &path));
            let imported = imported.filter(|imported| *imported != importer);
            imports.entry(importer.clone()).or_default().extend(imported);
        }
    }
}

/// Returns the child of `scope` that is or contains `module`.
fn child_of(scope: &[&str], module: &[String]) -> Option<String> {
    module.get(..scope.len()).filter(|parent| *parent == scope)?;
    module.get(scope.len()).cloned()
}

/// Returns the paths that a line of `module` contains, from the crate root.
fn paths(line: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("crate::").chain(line.match_indices("super::")) {
        if line[..at].ends_with("super::") || line.trim_start().starts_with("//") {
            continue;
        }
        let (mut rest, mut base) = (&line[at..], module);
        match rest.strip_prefix("crate::") {
            Some(after) => (rest, base) = (after, &[]),
            None => {
                while let Some(after) = rest.strip_prefix("super::") {
                    (rest, base) = (after, &base[..base.len() - 1]);
                }
            }
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_:{}, ".contains(c))).unwrap_or(rest.len());
        let (path, group) = rest[..end].split_once('{').unwrap_or((&rest[..end], ""));
        let path = path.split("::").filter(|name| !name.is_empty());
        let path: Vec<_> = base.iter().cloned().chain(path.map(|name| name.trim().to_owned())).collect();
        found.extend(group.trim_end_matches('}').split(", ").map(|name| [&path[..], &[name.to_owned()]].concat()));
    }
    found
}

/// Returns a module that imports itself through others, if any.
fn cycle(imports: &Imports) -> Option<&String> {
    imports.keys().find(|start| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![*start]);
        while let Some(module) = next.pop() {
            next.extend(imports.get(module).into_iter().flatten().filter(|imported| seen.insert(*imported)));
        }
        seen.contains(start)
    })
}

#[test]
fn no_module_imports_itself_through_others() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (scope, expected) in [
        (&[][..], [("commands", "args"), ("output", "outcome")]),
        (&["commands"][..], [("run", "order"), ("check", "plugin")]),
        (&["commands", "instance"][..], [("show", "find"), ("transfer", "find")]),
        (&["commands", "plugin"][..], [("pack", "child"), ("child", "describe")]),
        (&["commands", "run"][..], [("repl", "race"), ("batch", "conversation")]),
        (&["commands", "run", "repl"][..], [("editor", "command"), ("progress", "terminal")]),
    ] {
        let mut imports = Imports::new();
        collect(&source, &[], scope, &mut imports);
        for (importer, imported) in expected {
            assert!(imports[importer].contains(imported), "{importer} imports {imported}: {imports:#?}");
        }
        assert_eq!(cycle(&imports), None, "in {scope:?}: {imports:#?}");
    }
}
