//! Owns the rules for the arguments of attributes.

use syn::{LitStr, Meta, Path};

use super::plan::Effect;
use super::words::{is_kebab, kebab, listed, nearest, written};
use crate::attr::{Arg, Args};
use crate::fault::Faults;
use crate::model::{Block, Helper};

/// A misspelled option would be ignored in silence, and of two equal ones nobody could say which counts.
pub(super) fn are_known(attribute: &str, args: &Args, legal: &[&str], faults: &mut Faults) {
    for (index, arg) in args.list.iter().enumerate() {
        let name = arg.name();
        if !legal.contains(&&*name) {
            let cure = match nearest(&name, legal) {
                _ if let Some(cure) = misplaced(attribute, arg, legal) => cure,
                _ if name == "description" => "write the text as a doc comment, `/// …`".to_owned(),
                Some(near) => format!("write `{near}`"),
                None => format!("{} can be given", listed(legal, "and")),
            };
            faults.at(&arg.key, format!("unknown option `{name}` of `#[{attribute}]`; {cure}"));
        } else if args.list.iter().take(index).any(|earlier| earlier.name() == name) {
            faults.at(arg, format!("option `{name}` of `#[{attribute}]` is given twice; keep one"));
        }
    }
}

/// What was meant by a value without its key, or by another sign between the two.
fn misplaced(attribute: &str, arg: &Arg, legal: &[&str]) -> Option<String> {
    let written = arg.name();
    if arg.text_alone().is_some() && legal.contains(&"name") {
        return Some(format!("write `name = {written}`"));
    }
    if let Some((key, value)) = written.split_once(':').filter(|(key, _)| legal.contains(key)) {
        return Some(format!("write `{key} = {value}`"));
    }
    let effect = attribute == "tool" && Effect::ALL.iter().any(|effect| effect.word() == written);
    effect.then(|| format!("write `effect = {written}`"))
}

/// The name is the identity: bundles, state files and logs carry it, so it has the grammar of resource names.
pub(super) fn name(args: &Args, block: &Block, faults: &mut Faults) -> Option<LitStr> {
    let suggestion = kebab(&block.name());
    let Some(arg) = args.get("name") else {
        if args.list.iter().any(|arg| misplaced("extension", arg, &["name"]).is_some()) {
            return None;
        }
        let name = block.name();
        faults
            .at_the_attribute(format!("extension `{name}` has no name; write `#[extension(name = \"{suggestion}\")]`"));
        return None;
    };
    let Some(literal) = arg.text() else {
        faults.at(arg, format!("option `name` takes a string; write `name = \"{suggestion}\"`"));
        return None;
    };
    let text = literal.value();
    if is_kebab(&text) && text.len() <= 63 {
        return Some(literal);
    }
    if text.is_empty() {
        let name = block.name();
        faults.at(literal, format!("extension `{name}` has an empty name; write `name = \"{suggestion}\"`"));
        return None;
    }
    let cure = match kebab(&text) {
        kebab if kebab.is_empty() => format!("write `{suggestion}`"),
        kebab if kebab.len() > 63 => format!("it has {} characters; use at most 63", text.chars().count()),
        kebab if is_kebab(&kebab) => format!("write `{kebab}`"),
        _ => "use lower-case letters and digits, in words joined by single hyphens, starting with a letter".to_owned(),
    };
    faults.at(literal, format!("`{text}` is not a legal extension name; {cure}"));
    None
}

/// The expansion puts the path before `::__private`, so nothing but a path will do.
pub(super) fn facade(args: &Args, faults: &mut Faults) -> Option<Path> {
    let arg = args.get("crate")?;
    let path = arg.path();
    if path.is_none() {
        faults.at(arg, "option `crate` takes a path; write `crate = the_name_of_goondan_here`");
    }
    path
}

/// The host looks each of them up before the extension runs, so they must be known here: literals, not constants.
pub(super) fn requires(args: &Args, faults: &mut Faults) -> Option<Vec<LitStr>> {
    let Some(arg) = args.get("requires") else { return Some(Vec::new()) };
    let Some(all) = arg.texts() else {
        let cure = arg.text().map_or_else(|| "\"…\"".to_owned(), |text| written(&text));
        faults.at(arg, format!("option `requires` takes a list of strings; write `requires = [{cure}]`"));
        return None;
    };
    for empty in all.iter().filter(|text| text.value().trim().is_empty()) {
        faults.at(empty, "option `requires` holds an empty string; name what the host must offer, or remove it");
    }
    Some(all)
}

/// There is nothing to be said about these roles.
pub(super) fn are_absent(helper: &Helper, faults: &mut Faults) {
    if !matches!(helper.attribute.meta, Meta::Path(_)) {
        let name = written(helper.attribute.path());
        faults.at(&helper.attribute, format!("`#[{name}]` takes no arguments; write `#[{name}]`"));
    }
}
