//! Owns the rules for the arguments of attributes.

use syn::{LitStr, Path};

use super::Kind;
use crate::attr::Args;
use crate::fault::Faults;
use crate::model::{Block, Helper};

/// A misspelled option would be ignored in silence, and of two equal ones nobody could say which counts.
pub(super) fn are_known(attribute: &str, args: &Args, legal: &[&str], faults: &mut Faults) {
    for (index, arg) in args.list.iter().enumerate() {
        let name = arg.name();
        if !legal.contains(&&*name) {
            let cure = match legal.iter().min_by_key(|legal| distance(&name, legal)) {
                Some(near) if distance(&name, near) <= 2 => format!("write `{near}`"),
                _ => format!("{} can be given", listed(legal, "and")),
            };
            faults.at(&arg.key, format!("unknown option `{name}` of `#[{attribute}]`; {cure}"));
        } else if args.list.iter().take(index).any(|earlier| earlier.name() == name) {
            faults.at(arg, format!("option `{name}` of `#[{attribute}]` is given twice; keep one"));
        }
    }
}

/// The name is the identity: bundles, state files and logs carry it, so it has the grammar of resource names.
pub(super) fn name(args: &Args, block: &Block, faults: &mut Faults) -> Option<LitStr> {
    let suggestion = kebab(&block.name());
    let Some(arg) = args.get("name") else {
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
    let cure = match kebab(&text) {
        kebab if kebab.len() > 63 => "use at most 63 characters".to_owned(),
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

/// There are three kinds and no others (API-05): what older drafts called `llmCall`, or cut into `pre` and `post`, is
/// said in terms of them.
pub(super) fn kind(helper: &Helper, function: &str, faults: &mut Faults) -> Option<Kind> {
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
pub(super) fn middleware_options(helper: &Helper, faults: &mut Faults) {
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
pub(super) fn priority(helper: &Helper, faults: &mut Faults) -> Option<i32> {
    let Some(arg) = helper.args.get("priority") else { return Some(0) };
    let priority = arg.integer();
    if priority.is_none() {
        faults.at(arg, "option `priority` takes a 32-bit integer literal; write `priority = -5`");
    }
    priority
}

/// `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`
fn is_kebab(text: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.split('-').all(word)
}

/// `MessageWindow`, `message_window` or `Message Window` as `message-window`.
fn kebab(text: &str) -> String {
    let mut kebab = String::new();
    for letter in text.chars() {
        let joint = !letter.is_alphanumeric();
        if (joint || letter.is_uppercase()) && !kebab.is_empty() && !kebab.ends_with('-') {
            kebab.push('-');
        }
        if !joint {
            kebab.extend(letter.to_lowercase());
        }
    }
    kebab.trim_end_matches('-').to_owned()
}

/// How many letters must be inserted, removed or replaced to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<_> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, letter) in from.chars().enumerate() {
        let mut last = vec![above + 1];
        for ((cell, wanted), diagonal) in row.iter().skip(1).zip(&to).zip(&row) {
            let replaced = diagonal + usize::from(letter != *wanted);
            let left = last.last().map_or(replaced, |left| left + 1);
            last.push(replaced.min(left).min(cell + 1));
        }
        row = last;
    }
    row.last().copied().unwrap_or_default()
}

/// `` `a`, `b` or `c` ``
fn listed(words: &[&str], joint: &str) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} {joint} {last}", first.join(", ")),
        None => String::new(),
    }
}
