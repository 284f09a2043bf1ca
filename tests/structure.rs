//! The modules of each crate import each other in one direction only.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The pairs that may import each other: the grammar of a name is an error, and an error names an extension.
const PAIRS: [(&str, &str); 1] = [("error", "name")];

type Edges = BTreeMap<String, BTreeSet<String>>;

/// Every file of `directory` that is compiled into the product.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let product = entries.filter(|path| path.file_stem().is_some_and(|name| name != "tests" && name != "lib"));
    product.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Which top-level modules the top-level modules of a crate name. A name that the root re-exports counts for its module.
fn edges(root: &Path) -> Edges {
    let lib = fs::read_to_string(root.join("lib.rs")).unwrap();
    let mut homes = BTreeMap::new();
    let word = Regex::new(r"\w+").unwrap();
    for export in Regex::new(r"(?s)pub(?:\(crate\))? use (\w+)::([^;]+);").unwrap().captures_iter(&lib) {
        let names = word.find_iter(&export[2]).map(|name| name.as_str().to_owned());
        homes.extend(names.map(|name| (name, export[1].to_owned())));
    }
    let code_of = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    let mut edges = Edges::new();
    for path in sources(root) {
        let inside = path.strip_prefix(root).unwrap().with_extension("");
        let module: Vec<_> = inside.iter().map(|part| part.to_str().unwrap()).filter(|part| *part != "mod").collect();
        let code = code_of(&path);
        // `use crate::{a, b::c};`, `crate::a::b`, and as many `super`s as lead to the root.
        let up = vec!["super"; module.len()].join("::");
        let to_root = Regex::new(&format!(r"(?s)\b(?:crate|{up})::(\{{[^;]*?\}};|\w+)")).unwrap();
        let nested = Regex::new(r"::\{[^{}]*\}").unwrap();
        for path in to_root.captures_iter(&code) {
            let names = nested.replace_all(&path[1], "").into_owned();
            for first in names
                .split(',')
                .filter_map(|name| name.trim_matches(|c: char| "{};".contains(c)).trim().split("::").next())
            {
                let target = homes.get(first).map_or(first, String::as_str);
                if target != module[0]
                    && (root.join(target).is_dir() || root.join(target).with_extension("rs").is_file())
                {
                    edges.entry(module[0].to_owned()).or_default().insert(target.to_owned());
                }
            }
        }
    }
    edges
}

/// Removes modules that import nothing or that nothing imports, until only circles are left.
fn circles(mut edges: Edges) -> Edges {
    for (a, b) in PAIRS {
        edges.entry(b.to_owned()).or_default().remove(a);
    }
    loop {
        let imported: BTreeSet<_> = edges.values().flatten().cloned().collect();
        let before = edges.len();
        edges.retain(|from, to| !to.is_empty() && imported.contains(from));
        let rest: BTreeSet<_> = edges.keys().cloned().collect();
        edges.values_mut().for_each(|to| to.retain(|target| rest.contains(target)));
        if edges.len() == before {
            return edges;
        }
    }
}

#[test]
fn the_modules_of_a_crate_have_no_circles() {
    let crates = ["goondan-core", "goondan-macros", "goondan-abi"];
    let found = crates.map(|name| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(name).join("src");
        let edges = edges(&root);
        assert!(!edges.is_empty(), "no imports were found in {}", root.display());
        (name, circles(edges))
    });
    assert!(found.iter().all(|(_, circles)| circles.is_empty()), "modules that import each other: {found:#?}");
}
