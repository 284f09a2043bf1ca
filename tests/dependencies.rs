//! Licences, sources and versions of all dependencies are those that `deny.toml` allows.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs};

use regex::Regex;
use serde_json::Value;

/// The one source of packages beside this repository.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The packages that are built on this platform, with all features.
static PACKAGES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let about = output("rustc", &["-vV"]);
    let platform = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let args = ["metadata", "--format-version=1", "--locked", "--all-features", "--filter-platform", platform];
    let mut metadata: Value = serde_json::from_str(&output(env!("CARGO"), &args)).unwrap();
    let packages = serde_json::from_value::<Vec<Value>>(metadata["packages"].take()).unwrap();
    assert!(packages.len() > 200, "the dependencies were not found");
    packages
});

fn text<'a>(package: &'a Value, member: &str) -> &'a str {
    package[member].as_str().unwrap_or_default()
}

/// Splits an SPDX expression at a word that is not in parentheses.
fn split<'a>(expression: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in expression.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 && expression[at..].starts_with(word) {
            parts.push(&expression[start..at]);
            start = at + word.len();
        }
    }
    parts.push(&expression[start..]);
    parts
}

/// Returns whether an SPDX expression can be met with these licences. `/` is the old form of `OR`.
fn allowed(expression: &str, licences: &BTreeSet<&str>) -> bool {
    let any = |expression: &str| split(expression, " OR ").into_iter().any(|part| all(part, licences));
    expression.split('/').map(str::trim).any(any)
}

fn all(expression: &str, licences: &BTreeSet<&str>) -> bool {
    split(expression, " AND ").into_iter().all(|part| {
        let inner = part.strip_prefix('(').and_then(|part| part.strip_suffix(')'));
        inner.map_or_else(|| licences.contains(part), |inner| allowed(inner, licences))
    })
}

#[test]
fn every_licence_is_allowed() {
    let policy = fs::read_to_string("deny.toml").unwrap();
    let list = policy.split_once("\nallow = [").unwrap().1.split_once(']').unwrap().0;
    let licences: BTreeSet<_> = list.split('"').skip(1).step_by(2).collect();
    assert!(allowed("(MIT OR GPL-3.0) AND Unicode-3.0", &licences));
    assert!(!allowed("(MIT AND GPL-3.0) OR GPL-2.0", &licences));
    let other: Vec<_> = PACKAGES
        .iter()
        .filter(|package| !allowed(text(package, "license"), &licences))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(other.is_empty(), "deny.toml does not allow these licences: {other:#?}");
}

#[test]
fn every_package_is_of_this_repository_or_of_the_registry() {
    let other: Vec<_> = PACKAGES.iter().filter(|package| !["", REGISTRY].contains(&text(package, "source"))).collect();
    assert!(other.is_empty(), "{other:#?}");
}

#[test]
fn a_package_has_one_version_unless_there_is_a_reason() {
    let policy = fs::read_to_string("deny.toml").unwrap();
    let skipped = Regex::new(r#"\{ crate = "(.+)@(.+)", reason = ".+" \}"#).unwrap();
    let skipped: Vec<_> = skipped.captures_iter(&policy).map(|skip| skip.extract::<2>().1).collect();
    let mut versions = BTreeMap::<_, Vec<_>>::new();
    for package in PACKAGES.iter() {
        let (name, version) = (text(package, "name"), text(package, "version"));
        if !skipped.iter().any(|skip| skip[0] == name && version.starts_with(&format!("{}.", skip[1]))) {
            versions.entry(name.to_owned()).or_default().push(version.to_owned());
        }
    }
    versions.retain(|_, versions| versions.len() > 1);
    assert!(versions.is_empty(), "deny.toml gives no reason for several versions: {versions:#?}");
}
