//! Rules for the arguments of `#[middleware]`.

use syn::LitStr;

use super::arguments::are_known;
use super::plan::{Kind, Middleware};
use super::signature;
use super::words::{is_kebab, list, to_kebab};
use crate::attr::Args;
use crate::errors::Errors;
use crate::model::{Block, Function, Helper};

/// The options besides the kind.
const OPTIONS: [&str; 3] = ["priority", "before", "after"];

pub(super) fn middleware<'m>(
    block: &Block,
    extension: Option<&LitStr>,
    helper: &Helper,
    function: &'m Function,
    errors: &mut Errors,
) -> Option<Middleware<'m>> {
    let kind = kind(helper, &function.name(), errors);
    options(helper, errors);
    let priority = priority(helper, errors);
    let own_name = extension.map(LitStr::value);
    let before = neighbours(helper, "before", own_name.as_deref(), errors);
    let after = neighbours(helper, "after", own_name.as_deref(), errors);
    signature::check_middleware(block, function, kind, errors);
    Some(Middleware { function, kind: kind?, priority: priority?, before: before?, after: after? })
}

/// There are three kinds and no others (API-05).
fn kind(helper: &Helper, function: &str, errors: &mut Errors) -> Option<Kind> {
    if let Some(arg) = helper.args.get("kind") {
        let meant = arg.string().map_or_else(|| "turn".to_owned(), |text| text.value());
        errors.at(arg, format!("the kind is written without a key; write `#[middleware({meant})]`"));
        return None;
    }
    let words: Vec<_> =
        helper.args.list.iter().filter(|arg| arg.value.is_none() && !OPTIONS.contains(&&*arg.name())).collect();
    let kinds = Kind::ALL.map(Kind::as_str);
    if words.is_empty() {
        let kinds = list(&kinds, "or");
        errors.at(
            &helper.attribute,
            format!("middleware `{function}` has no kind; write `#[middleware(turn)]`, the kind being {kinds}"),
        );
    }
    for second in words.iter().skip(1) {
        let name = second.name();
        match name.parse::<i32>() {
            Ok(_) => {
                errors.at(second, format!("unknown option `{name}` of `#[middleware]`; write `priority = {name}`"))
            }
            Err(_) => errors.at(second, format!("middleware `{function}` has a second kind, `{name}`; keep one")),
        }
    }
    let word = words.first()?;
    let name = word.name();
    let found = Kind::ALL.into_iter().find(|kind| kind.as_str() == name);
    if found.is_none() {
        errors.at(word, format!("unknown middleware kind `{name}`; {}", remedy(&name)));
    }
    found
}

fn remedy(kind: &str) -> String {
    let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let named = Kind::ALL.map(Kind::as_str).into_iter().find(|word| letters(word) == letters(kind));
    match named {
        Some(word) => format!("write `{word}`"),
        None => format!("write {}", list(&Kind::ALL.map(Kind::as_str), "or")),
    }
}

/// Checks the keys of the arguments besides the kind.
fn options(helper: &Helper, errors: &mut Errors) {
    let options = helper.args.list.iter().filter(|arg| arg.value.is_some() || OPTIONS.contains(&&*arg.name()));
    // `kind` has reported `kind = …` already.
    let options = options.filter(|arg| arg.name() != "kind");
    are_known("middleware", &Args { list: options.cloned().collect() }, &OPTIONS, errors);
}

/// The record in the binary contains the names, so they are literals. An extension cannot name itself: its own layers
/// are in source order (ORDER-09).
fn neighbours(helper: &Helper, option: &str, own_name: Option<&str>, errors: &mut Errors) -> Option<Vec<LitStr>> {
    let Some(arg) = helper.args.get(option) else { return Some(Vec::new()) };
    let Some(names) = arg.string().map(|name| vec![name]).or_else(|| arg.strings()) else {
        errors
            .at(arg, format!("option `{option}` takes names of extensions; write `{option} = \"logging\"`, or a list"));
        return None;
    };
    for literal in &names {
        let text = literal.value();
        let name = text.strip_suffix('?').unwrap_or(&text);
        if own_name == Some(name) {
            errors.at(literal, format!("`{name}` is this extension; order its functions by their order in the source"));
        } else if !is_kebab(name) {
            let kebab = to_kebab(name);
            let remedy = if is_kebab(&kebab) { format!("write `{kebab}`") } else { "use lower-case words".to_owned() };
            errors.at(literal, format!("`{name}` is not a legal extension name; {remedy}"));
        }
    }
    Some(names)
}

/// The record in the binary contains the priority, so it is a literal, not a constant.
fn priority(helper: &Helper, errors: &mut Errors) -> Option<i32> {
    let Some(arg) = helper.args.get("priority") else { return Some(0) };
    let priority = arg.integer();
    if priority.is_none() {
        errors.at(arg, "option `priority` takes a 32-bit integer literal; write `priority = -5`");
    }
    priority
}
