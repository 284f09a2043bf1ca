//! Modules import each other in one direction only, the root of the facade is small, and links of pages lead somewhere.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use goondan_covers::covers;
use regex::Regex;

/// The folders whose folders are crates.
const CRATES: [&str; 4] = ["", "adapters", "kit", "plugins"];

/// Rooms whose files import each other, with the number of these files. It may only fall.
const CYCLES: [(&str, usize); 2] = [("goondan-core/src/pipeline", 2), ("goondan-runtime/src/instance", 4)];

/// The one pair that imports each other: the grammar of a name is an error, and an error names an extension.
const PAIR: (&str, &str) = ("name", "error");

/// For each module, the modules that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Returns the files of a folder that are compiled into the product.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let product = paths.filter(|path| path.file_stem().unwrap() != "tests");
    product.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Returns the code of a file, without comments and without its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Expands `a::{b, c::{d, e}}` into its paths.
fn expand(path: &str) -> Vec<String> {
    let Some((prefix, group)) = path.split_once('{') else { return vec![path.trim().to_owned()] };
    let (mut depth, mut items) = (0, vec![String::new()]);
    for c in group[..group.rfind('}').unwrap_or(group.len())].chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => items.push(String::new()),
            _ => items.last_mut().unwrap().push(c),
        }
    }
    items.iter().flat_map(|item| expand(item)).map(|item| format!("{}{item}", prefix.trim())).collect()
}

/// Returns which modules of `folder` import which others. What the folder re-exports counts for its module.
fn imports(folder: &Path) -> Imports {
    let krate = folder.ancestors().find(|path| path.ends_with("src")).unwrap();
    let segments = |path: &Path| -> Vec<String> {
        let parts = path.with_extension("").strip_prefix(krate).unwrap().to_owned();
        let parts = parts.iter().map(|part| part.to_str().unwrap().to_owned());
        parts.filter(|part| !["mod", "lib", "main"].contains(&part.as_str())).collect()
    };
    let root = segments(folder);
    let is_module = |name: &str| folder.join(name).is_dir() || folder.join(name).with_extension("rs").is_file();
    let mut homes = BTreeMap::new();
    let own = [folder.join("lib.rs"), folder.join("mod.rs"), folder.with_extension("rs")];
    let own = own.iter().find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    for export in Regex::new(r"(?s)pub(?:\([a-z ]+\))? use (\w+)::([^;]+);").unwrap().captures_iter(&own) {
        homes.extend(expand(&export[2]).into_iter().map(|name| (name, export[1].to_owned())));
    }
    let path = Regex::new(r"\b(crate|super(?:::super)*)::(\{[^;]*\};|[\w:]+(?:\{[^;]*\};)?)").unwrap();
    let mut imports = Imports::new();
    for file in sources(folder) {
        let module = segments(&file);
        let Some(importer) = module.get(root.len()) else { continue };
        for found in path.captures_iter(&code(&file)) {
            let up = module.len().checked_sub(found[1].matches("super").count()).unwrap();
            let base = if &found[1] == "crate" { &[][..] } else { &module[..up] };
            for relative in expand(&found[2]) {
                let full: Vec<_> = base.iter().map(String::as_str).chain(relative.split("::")).collect();
                let Some(inside) = full.strip_prefix(&root.iter().map(String::as_str).collect::<Vec<_>>()[..]) else {
                    continue;
                };
                let Some(name) = inside.first() else { continue };
                let imported = homes.get(*name).map_or(*name, String::as_str);
                if imported != importer && is_module(imported) {
                    imports.entry(importer.clone()).or_default().insert(imported.to_owned());
                }
            }
        }
    }
    imports
}

/// Removes modules that import nothing and modules that nothing imports, until only cycles are left.
fn cycles(mut imports: Imports) -> Imports {
    imports.entry(PAIR.0.to_owned()).or_default().remove(PAIR.1);
    loop {
        let before = imports.len();
        let imported: BTreeSet<_> = imports.values().flatten().cloned().collect();
        imports.retain(|module, imports| !imports.is_empty() && imported.contains(module));
        let rest: BTreeSet<_> = imports.keys().cloned().collect();
        imports.values_mut().for_each(|imports| imports.retain(|module| rest.contains(module)));
        if imports.len() == before {
            return imports;
        }
    }
}

/// Returns every folder with modules: the `src` of each crate, and the rooms in it.
fn folders() -> Vec<PathBuf> {
    fn rooms(folder: PathBuf) -> Vec<PathBuf> {
        let inner = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        let inner: Vec<_> = inner.filter(|path| path.file_stem().unwrap() != "tests").flat_map(rooms).collect();
        [folder].into_iter().chain(inner).collect()
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = CRATES.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let sources = crates.map(|entry| entry.unwrap().path().join("src"));
    let sources = sources.filter(|path| path.join("lib.rs").is_file() && !path.starts_with(root.join("benches")));
    sources.flat_map(rooms).collect()
}

#[test]
fn modules_import_each_other_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = folders();
    assert!(folders.len() > 80, "the crates were not found");
    let known: BTreeMap<_, _> = CYCLES.into_iter().collect();
    let mut found = BTreeMap::new();
    for folder in folders {
        let cycles = cycles(imports(&folder));
        let name = folder.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if cycles.len() != known.get(&*name).copied().unwrap_or_default() {
            found.insert(name, cycles);
        }
    }
    assert!(found.is_empty(), "modules that import each other: {found:#?}");
}

#[test]
fn the_root_of_the_facade_has_few_names() {
    let root = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let root = root.split("pub mod __private").next().unwrap();
    let exports = Regex::new(r"(?s)pub use \w+::([^;]+);").unwrap();
    let names = exports.captures_iter(root).flat_map(|export| expand(&export[1]));
    // Modules and macros are in lower case.
    let names: Vec<_> = names.filter(|name| name.starts_with(char::is_uppercase)).collect();
    assert!((1..=20).contains(&names.len()), "{names:?}");
}

/// The crates that read files of bundles, whose authors are not trusted with pipes, devices and large files.
const READERS: [&str; 3] = ["goondan-bundle", "adapters/models", "plugins/skills"];

/// The one file of theirs that is opened otherwise: a recording, which is written to a new file.
const WRITER: &str = "adapters/models/src/cassette/record.rs";

#[test]
#[covers("SIZE-01")]
fn files_of_bundles_are_opened_in_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let opens = Regex::new(r"\bFile::open\b|\bfs::read(_to_string)?\(|\bOpenOptions\b").unwrap();
    let files = READERS.iter().flat_map(|reader| sources(&root.join(reader).join("src")));
    // Generated documentation is compared in a test.
    let files = files.filter(|file| !file.ends_with("goondan-bundle/src/schema/docs.rs"));
    let others: Vec<_> = files.filter(|file| opens.is_match(&code(file))).collect();
    assert_eq!(others, [root.join(WRITER)], "`BundleFile` opens regular files only, and reads no more than a limit");
}

/// The files that start processes: all others go through the first one, which keeps keys from them. The second one
/// starts a shell without any variable.
const SPAWNERS: [&str; 2] = ["kit/process/src/environment.rs", "kit/process/src/keeper.rs"];

#[test]
#[covers("ENV-01")]
fn child_processes_are_started_in_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let starts = Regex::new(r"\bCommand::new\b|\b(execve?p?|posix_spawnp?)\(").unwrap();
    let crates = CRATES.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let crates = crates.map(|entry| entry.unwrap().path()).filter(|path| *path != root.join("benches"));
    let files = crates.map(|path| path.join("src")).filter(|path| path.is_dir()).flat_map(|path| sources(&path));
    let found: BTreeSet<_> = files.filter(|file| starts.is_match(&code(file))).collect();
    let known: BTreeSet<_> = SPAWNERS.iter().map(|file| root.join(file)).collect();
    assert_eq!(found, known, "`process::Environment` starts commands without the keys of the program");
}

/// Crates whose versions change often, and the one file of the product that names each.
const NAMED_ONCE: [(&str, &str); 2] =
    [("rmcp", "plugins/mcp/src/server/protocol.rs"), ("jsonschema", "goondan-runtime/src/schema/mod.rs")];

#[test]
fn one_file_names_a_crate_that_changes_often() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = CRATES.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let folders = crates.map(|entry| entry.unwrap().path().join("src")).filter(|folder| folder.is_dir());
    let files: BTreeSet<_> = folders.chain([root.join("src")]).flat_map(|folder| sources(&folder)).collect();
    for (name, home) in NAMED_ONCE {
        let path = Regex::new(&format!(r"\b{name}::")).unwrap();
        let naming = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
        let naming: Vec<_> = naming.filter(|file| path.is_match(&code(file))).collect();
        assert_eq!(naming, [&root.join(home)], "{name}");
    }
}

/// Returns the pages below a folder that are written for readers.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() && !path.is_symlink() && name != "target" && name != "node_modules" && !name.starts_with('.') {
            found.extend(pages(&path));
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

/// Returns the lines of a page without its blocks of code.
fn prose(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code
    });
    lines.map(str::to_owned).collect()
}

/// Returns the names by which links refer to the headings of a page.
fn headings(page: &Path) -> BTreeSet<String> {
    let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let lines = prose(page);
    let titles = lines.iter().filter(|line| line.starts_with('#'));
    let name = |title: &String| {
        let text = link.replace_all(title.trim_start_matches('#').trim(), "$1").to_lowercase();
        let kept = text.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
        kept.map(|char| if char == ' ' { '-' } else { char }).collect()
    };
    titles.map(name).collect()
}

/// The pages of packages are read beside the repository too, where their links lead out of the package.
#[test]
fn links_of_pages_lead_to_files_and_headings() {
    let (link, code) = (Regex::new(r"\]\(([^)\s]+)\)").unwrap(), Regex::new("`[^`]*`").unwrap());
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages(Path::new(env!("CARGO_MANIFEST_DIR"))) {
        for line in prose(&page).into_iter().filter(|line| line.contains("](")) {
            let line = code.replace_all(&line, "").into_owned();
            for target in link.captures_iter(&line).map(|found| found.extract::<1>().1[0]) {
                if target.contains("://") {
                    continue;
                }
                let (path, heading) = target.split_once('#').unwrap_or((target, ""));
                let leads_to = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
                let is_page = leads_to.extension().is_some_and(|extension| extension == "md");
                if !leads_to.exists() || (is_page && !heading.is_empty() && !headings(&leads_to).contains(heading)) {
                    wrong.push(format!("{}: {target}", page.display()));
                }
                count += 1;
            }
        }
    }
    assert!(wrong.is_empty() && count > 100, "{count} links, of which these lead nowhere: {wrong:#?}");
}

/// Returns whether code has tests of its own.
fn has_tests(code: &str) -> bool {
    ["#[cfg(test)]", "#[test]", "#[tokio::test", "proptest!"].into_iter().any(|test| code.contains(test))
}

/// Returns whether documentation has examples that are run.
fn has_examples(code: &str) -> bool {
    let lines = code.lines().map(|line| line.trim_start().trim_start_matches("//!").trim_start_matches("///").trim());
    let mut is_open = false;
    let mut fences = lines.filter_map(|line| line.strip_prefix("```"));
    let opens_rust = |language: &str| {
        is_open = !is_open;
        is_open && (language.is_empty() || language.starts_with("rust") || language.starts_with("no_run"))
    };
    fences.any(opens_rust) || code.contains("doc = include_str!")
}

/// Compiling a target for tests that it does not have takes time.
#[test]
fn targets_that_are_left_out_of_the_tests_have_none() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let inner =
        ["", "benches", "examples/notes", "examples/provider_tools", "tests/covers", "tests/crash", "tests/fuzz"];
    let packages = folders().into_iter().filter_map(|folder| Some(folder.ancestors().nth(1)?.to_owned()));
    let packages: BTreeSet<_> = packages.chain(inner.map(|inner| root.join(inner))).collect();
    for package in packages.iter().filter(|package| package.join("Cargo.toml").is_file()) {
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        for section in
            manifest.split("\n[").filter(|section| section.starts_with("lib]") || section.starts_with("[bin]]"))
        {
            let all: String =
                sources(&package.join("src")).iter().map(|file| fs::read_to_string(file).unwrap()).collect();
            let is_lib = section.starts_with("lib]");
            // The rest of a package with a library is tested with that.
            let own = if is_lib || !package.join("src/lib.rs").exists() { all.as_str() } else { "" };
            let shown = package.display();
            assert!(!section.contains("\ntest = false") || !has_tests(own), "{shown} has tests that do not run");
            // The facade runs the examples of the macros.
            let leaves_out = section.contains("\ndoctest = false") && !section.contains("\nproc-macro = true");
            assert!(!leaves_out || !has_examples(&all), "{shown} has examples that do not run");
        }
    }
}
