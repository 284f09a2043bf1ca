//! Owns the rules for the arguments of `#[middleware]`.

use super::arguments::are_known;
use super::plan::{Kind, Layer};
use super::signature;
use super::words::listed;
use crate::attr::Args;
use crate::fault::Faults;
use crate::model::{Block, Function, Helper};

pub(super) fn layer<'m>(
    block: &Block,
    helper: &Helper,
    function: &'m Function,
    faults: &mut Faults,
) -> Option<Layer<'m>> {
    let kind = kind(helper, &function.name(), faults);
    options(helper, faults);
    let priority = priority(helper, faults);
    signature::check_middleware(block, function, kind, faults);
    Some(Layer { function, kind: kind?, priority: priority? })
}

/// There are three kinds and no others (API-05): what older drafts called `llmCall`, or cut into `pre` and `post`, is
/// said in terms of them.
fn kind(helper: &Helper, function: &str, faults: &mut Faults) -> Option<Kind> {
    let words: Vec<_> = helper.args.list.iter().filter(|arg| arg.value.is_none() && arg.name() != "priority").collect();
    let kinds = Kind::ALL.map(Kind::word);
    if words.is_empty() {
        let kinds = listed(&kinds, "or");
        faults.at(
            &helper.attribute,
            format!("middleware `{function}` has no kind; write `#[middleware(turn)]`, the kind being {kinds}"),
        );
    }
    for second in words.iter().skip(1) {
        faults.at(second, format!("middleware `{function}` has a second kind, `{}`; keep one", second.name()));
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

/// Options beside the kind; the order relative to other extensions comes later.
fn options(helper: &Helper, faults: &mut Faults) {
    let options = helper.args.list.iter().filter(|arg| arg.value.is_some() || arg.name() == "priority");
    let (later, now): (Vec<_>, Vec<_>) = options.partition(|arg| ["before", "after"].contains(&&*arg.name()));
    for arg in later {
        let name = arg.name();
        faults.at(arg, format!("option `{name}` is not in this version of goondan; order with `priority = -5`"));
    }
    let now = Args { list: now.into_iter().cloned().collect() };
    are_known("middleware", &now, &["priority"], faults);
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
