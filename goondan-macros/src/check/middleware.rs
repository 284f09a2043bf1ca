//! Owns the rules for the arguments of `#[middleware]`.

use syn::LitStr;

use super::arguments::are_known;
use super::plan::{Kind, Layer};
use super::signature;
use super::words::{is_kebab, kebab, listed};
use crate::attr::Args;
use crate::fault::Faults;
use crate::model::{Block, Function, Helper};

/// What can be said of a middleware beside its kind.
const OPTIONS: [&str; 3] = ["priority", "before", "after"];

pub(super) fn layer<'m>(
    block: &Block,
    extension: Option<&LitStr>,
    helper: &Helper,
    function: &'m Function,
    faults: &mut Faults,
) -> Option<Layer<'m>> {
    let kind = kind(helper, &function.name(), faults);
    options(helper, faults);
    let priority = priority(helper, faults);
    let own = extension.map(LitStr::value);
    let before = neighbours(helper, "before", own.as_deref(), faults);
    let after = neighbours(helper, "after", own.as_deref(), faults);
    signature::check_middleware(block, function, kind, faults);
    Some(Layer { function, kind: kind?, priority: priority?, before: before?, after: after? })
}

/// There are three kinds and no others (API-05): what older drafts called `llmCall`, or cut into `pre` and `post`, is
/// said in terms of them.
fn kind(helper: &Helper, function: &str, faults: &mut Faults) -> Option<Kind> {
    if let Some(arg) = helper.args.get("kind") {
        let meant = arg.text().map_or_else(|| "turn".to_owned(), |text| text.value());
        faults.at(arg, format!("the kind is a word of its own; write `#[middleware({meant})]`"));
        return None;
    }
    let words: Vec<_> =
        helper.args.list.iter().filter(|arg| arg.value.is_none() && !OPTIONS.contains(&&*arg.name())).collect();
    let kinds = Kind::ALL.map(Kind::word);
    if words.is_empty() {
        let kinds = listed(&kinds, "or");
        faults.at(
            &helper.attribute,
            format!("middleware `{function}` has no kind; write `#[middleware(turn)]`, the kind being {kinds}"),
        );
    }
    for second in words.iter().skip(1) {
        let name = second.name();
        match name.parse::<i32>() {
            Ok(_) => {
                faults.at(second, format!("unknown option `{name}` of `#[middleware]`; write `priority = {name}`"))
            }
            Err(_) => faults.at(second, format!("middleware `{function}` has a second kind, `{name}`; keep one")),
        }
    }
    let word = words.first()?;
    let name = word.name();
    let found = Kind::ALL.into_iter().find(|kind| kind.word() == name);
    if found.is_none() {
        faults.at(word, format!("unknown middleware kind `{name}`; {}", cure(&name)));
    }
    found
}

fn cure(kind: &str) -> String {
    let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let named = |text: &str| Kind::ALL.map(Kind::word).into_iter().find(|word| letters(word) == letters(text));
    if let Some(word) = named(kind) {
        return format!("write `{word}`");
    }
    if ["llmcall", "llm", "model", "modelcall"].contains(&&*letters(kind)) {
        return "write `step`, which replaces it".to_owned();
    }
    match kind.split_once('.').map(|(word, phase)| (named(word), phase)) {
        Some((Some(word), "pre")) => format!("write `{word}`; what comes before `next.run(ctx)` is its pre phase"),
        Some((Some(word), "post")) => format!("write `{word}`; what comes after `next.run(ctx)` is its post phase"),
        _ => format!("write {}", listed(&Kind::ALL.map(Kind::word), "or")),
    }
}

/// Options beside the kind.
fn options(helper: &Helper, faults: &mut Faults) {
    let options = helper.args.list.iter().filter(|arg| arg.value.is_some() || OPTIONS.contains(&&*arg.name()));
    // A kind that was given like an option is judged as one.
    let options = options.filter(|arg| arg.name() != "kind");
    are_known("middleware", &Args { list: options.cloned().collect() }, &OPTIONS, faults);
}

/// Names are known here, as the priority is. Within one extension the order of the source decides (ORDER-09).
fn neighbours(helper: &Helper, option: &str, own: Option<&str>, faults: &mut Faults) -> Option<Vec<LitStr>> {
    let Some(arg) = helper.args.get(option) else { return Some(Vec::new()) };
    let Some(names) = arg.text().map(|name| vec![name]).or_else(|| arg.texts()) else {
        faults
            .at(arg, format!("option `{option}` takes names of extensions; write `{option} = \"logging\"`, or a list"));
        return None;
    };
    for literal in &names {
        let text = literal.value();
        let name = text.strip_suffix('?').unwrap_or(&text);
        if own == Some(name) {
            faults.at(
                literal,
                format!("`{name}` is this extension; put its functions in the order that they shall have"),
            );
        } else if !is_kebab(name) {
            let kebab = kebab(name);
            let cure = if is_kebab(&kebab) { format!("write `{kebab}`") } else { "use lower-case words".to_owned() };
            faults.at(literal, format!("`{name}` is not a legal extension name; {cure}"));
        }
    }
    Some(names)
}

/// The record in the binary carries the priority, so it must be known here: a literal, not a constant.
fn priority(helper: &Helper, faults: &mut Faults) -> Option<i32> {
    let Some(arg) = helper.args.get("priority") else { return Some(0) };
    let priority = arg.integer();
    if priority.is_none() {
        faults.at(arg, "option `priority` takes a 32-bit integer literal; write `priority = -5`");
    }
    priority
}
