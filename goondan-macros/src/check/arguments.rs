//! Rules for the arguments of `#[extension]`, and those that several attributes share.

use syn::{LitStr, Meta, Path};

use super::plan::Effect;
use super::words::{is_kebab, list, nearest, source_text, to_kebab};
use crate::attr::{Arg, Args};
use crate::errors::Errors;
use crate::model::{Block, Helper};

/// A misspelled option would silently have no effect, and of two equal options one would silently win.
pub(super) fn are_known(attribute: &str, args: &Args, known: &[&str], errors: &mut Errors) {
    for (index, arg) in args.list.iter().enumerate() {
        let name = arg.name();
        if !known.contains(&&*name) {
            let remedy = match nearest(&name, known) {
                _ if let Some(remedy) = remedy_for_bare_value(attribute, arg, known) => remedy,
                _ if name == "description" => "write the text as a doc comment, `/// …`".to_owned(),
                Some(near) => format!("write `{near}`"),
                None => format!("{} can be given", list(known, "and")),
            };
            errors.at(&arg.key, format!("unknown option `{name}` of `#[{attribute}]`; {remedy}"));
        } else if args.list.iter().take(index).any(|earlier| earlier.name() == name) {
            errors.at(arg, format!("option `{name}` of `#[{attribute}]` is given twice; keep one"));
        }
    }
}

/// The `key = value` that was probably meant by a value without its key, or by `key: value`.
fn remedy_for_bare_value(attribute: &str, arg: &Arg, known: &[&str]) -> Option<String> {
    let text = arg.name();
    if arg.bare_string().is_some() && known.contains(&"name") {
        return Some(format!("write `name = {text}`"));
    }
    if let Some((key, value)) = text.split_once(':').filter(|(key, _)| known.contains(key)) {
        return Some(format!("write `{key} = {value}`"));
    }
    let effect = attribute == "tool" && Effect::ALL.iter().any(|effect| effect.as_str() == text);
    effect.then(|| format!("write `effect = {text}`"))
}

/// The name is the identity of the extension in bundles, state files and logs, so it has the grammar of resource names.
pub(super) fn name(args: &Args, block: &Block, errors: &mut Errors) -> Option<LitStr> {
    let suggestion = to_kebab(&block.name());
    let Some(arg) = args.get("name") else {
        if args.list.iter().any(|arg| remedy_for_bare_value("extension", arg, &["name"]).is_some()) {
            return None;
        }
        let name = block.name();
        errors.at_attribute(format!("extension `{name}` has no name; write `#[extension(name = \"{suggestion}\")]`"));
        return None;
    };
    let Some(literal) = arg.string() else {
        errors.at(arg, format!("option `name` takes a string; write `name = \"{suggestion}\"`"));
        return None;
    };
    let text = literal.value();
    if is_kebab(&text) && text.len() <= 63 {
        return Some(literal);
    }
    if text.is_empty() {
        let name = block.name();
        errors.at(literal, format!("extension `{name}` has an empty name; write `name = \"{suggestion}\"`"));
        return None;
    }
    let remedy = match to_kebab(&text) {
        kebab if kebab.is_empty() => format!("write `{suggestion}`"),
        kebab if kebab.len() > 63 => format!("it has {} characters; use at most 63", text.chars().count()),
        kebab if is_kebab(&kebab) => format!("write `{kebab}`"),
        _ => "use lower-case letters and digits, in words joined by single hyphens, starting with a letter".to_owned(),
    };
    errors.at(literal, format!("`{text}` is not a legal extension name; {remedy}"));
    None
}

/// The expansion appends `::__private`, which only a path allows.
pub(super) fn facade(args: &Args, errors: &mut Errors) -> Option<Path> {
    let arg = args.get("crate")?;
    let path = arg.path();
    if path.is_none() {
        errors.at(arg, "option `crate` takes a path; write `crate = the_name_of_goondan_here`");
    }
    path
}

/// The host looks them up before the extension runs, in static data: they are literals, not constants.
pub(super) fn requires(args: &Args, errors: &mut Errors) -> Option<Vec<LitStr>> {
    let Some(arg) = args.get("requires") else { return Some(Vec::new()) };
    let Some(all) = arg.strings() else {
        let suggestion = arg.string().map_or_else(|| "\"…\"".to_owned(), |text| source_text(&text));
        errors.at(arg, format!("option `requires` takes a list of strings; write `requires = [{suggestion}]`"));
        return None;
    };
    for empty in all.iter().filter(|text| text.value().trim().is_empty()) {
        errors.at(empty, "option `requires` holds an empty string; name what the host must offer, or remove it");
    }
    Some(all)
}

/// It says what the extension is; nothing could be chosen by a value.
pub(super) fn guard(args: &Args, errors: &mut Errors) -> Option<bool> {
    let Some(arg) = args.get("guard") else { return Some(false) };
    if arg.value.is_some() {
        errors.at(arg, "option `guard` takes no value; write `guard`, or remove it");
        return None;
    }
    Some(true)
}

/// `#[init]` and `#[cleanup]` have no options.
pub(super) fn are_absent(helper: &Helper, errors: &mut Errors) {
    if !matches!(helper.attribute.meta, Meta::Path(_)) {
        let name = source_text(helper.attribute.path());
        errors.at(&helper.attribute, format!("`#[{name}]` takes no arguments; write `#[{name}]`"));
    }
}
