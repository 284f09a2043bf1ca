//! Owns the rules for the arguments of `#[tool]`.

use std::collections::BTreeMap;

use quote::ToTokens;
use syn::{LitInt, LitStr};

use super::arguments::are_known;
use super::plan::{Effect, Tool};
use super::signature;
use super::words::{is_tool_name, listed, nearest};
use crate::attr::Arg;
use crate::fault::Faults;
use crate::model::{Block, Function, Helper};

pub(super) fn tool<'m>(
    block: &Block,
    helper: &Helper,
    function: &'m Function,
    extension: Option<&LitStr>,
    faults: &mut Faults,
) -> Option<Tool<'m>> {
    are_known("tool", &helper.args, &["name", "effect", "timeout", "blocking"], faults);
    let name = name(helper, function, extension, faults);
    let effect = effect(helper, faults);
    let timeout = timeout(helper, faults);
    let blocking = blocking(helper, faults);
    signature::check_tool(block, function, blocking, faults);
    Some(Tool { function, name: name?, effect: effect?, timeout: timeout?, blocking })
}

/// Models, logs and other extensions call a tool by this name, so the grammar holds for it everywhere (TOOL-01).
fn name(helper: &Helper, function: &Function, extension: Option<&LitStr>, faults: &mut Faults) -> Option<String> {
    let (function_name, prefix) = (function.name(), extension.map_or_else(|| "notes".to_owned(), LitStr::value));
    let Some(arg) = helper.args.get("name") else {
        // Without a name the extension has a fault of its own.
        let name = format!("{}__{function_name}", extension?.value());
        let legal = is_tool_name(&name) && name.len() <= 64;
        if !legal {
            let cure = if name.len() > 64 { "a shorter one" } else { "one" };
            faults.at(
                &function.sig.ident,
                format!("`{name}` is not a legal tool name; give {cure}, as in `#[tool(name = \"{prefix}__search\")]`"),
            );
        }
        return legal.then_some(name);
    };
    let Some(literal) = arg.text() else {
        faults.at(arg, format!("option `name` takes a string; write `name = \"{prefix}__{function_name}\"`"));
        return None;
    };
    let name = literal.value();
    if is_tool_name(&name) && name.len() <= 64 {
        return Some(name);
    }
    if name.is_empty() {
        faults.at(
            literal,
            format!("tool `{function_name}` has an empty name; write `name = \"{prefix}__{function_name}\"`"),
        );
        return None;
    }
    let cure = name_cure(&name, &prefix, &function_name);
    faults.at(literal, format!("`{name}` is not a legal tool name; {cure}"));
    None
}

/// What is wrong with `name`, the first that a reader would see.
fn name_cure(name: &str, prefix: &str, function: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let (first, second) = name.split_once("__").unwrap_or((name, ""));
    if let Some(illegal) = name.chars().find(|c| !legal(*c)) {
        format!("`{illegal}` cannot be in it; use letters, digits and hyphens, in words joined by `_`")
    } else if is_tool_name(name) {
        format!("it has {} characters; use at most 64", name.len())
    } else if !name.contains("__") && is_tool_name(&format!("{prefix}__{name}")) {
        format!("`__` joins a group and a tool; write `{prefix}__{name}`")
    } else if first.is_empty() {
        format!("nothing stands before `__`; write `{prefix}{name}`")
    } else if second.is_empty() {
        format!("nothing stands after `__`; write `{name}{function}`")
    } else if second.contains("__") {
        format!("`__` stands once, between a group and a tool; write `{first}__{}`", second.replace("__", "_"))
    } else {
        format!("words are joined by single `_`, and `__` joins a group and a tool; write `{prefix}__{function}`")
    }
}

/// The second would take the place of the first in silence (TOOL-03). Of two that stand under conditions, one may be
/// there.
pub(super) fn is_new(tool: &Tool<'_>, helper: &Helper, earlier: &mut BTreeMap<String, bool>, faults: &mut Faults) {
    let conditional = tool.function.conditions().next().is_some();
    if earlier.insert(tool.name.clone(), conditional).is_some_and(|earlier| !(earlier && conditional)) {
        let written = helper.args.get("name").and_then(Arg::text);
        let wrong = written.map_or_else(|| tool.function.sig.ident.to_token_stream(), ToTokens::into_token_stream);
        let function = tool.function.name();
        faults.at(wrong, format!("function `{function}` is a second tool `{}`; give it another name", tool.name));
    }
}

/// The runtime decides by it what may run twice, so it is one of three words (EFFECT-01).
fn effect(helper: &Helper, faults: &mut Faults) -> Option<Effect> {
    let Some(arg) = helper.args.get("effect") else { return Some(Effect::default()) };
    let words = Effect::ALL.map(Effect::word);
    let Some(written) = arg.value.as_ref().map(ToString::to_string).filter(|written| !written.is_empty()) else {
        faults.at(arg, format!("option `effect` takes a word; write {}", listed(&words, "or")));
        return None;
    };
    let found = Effect::ALL.into_iter().find(|effect| effect.word() == written);
    if found.is_none() {
        let cure = match nearest(&written.trim_matches('"').to_lowercase(), &words) {
            Some(near) => format!("write `effect = {near}`"),
            None => format!("write {}", listed(&words, "or")),
        };
        faults.at(arg, format!("unknown effect `{written}`; {cure}"));
    }
    found
}

/// The record in the binary carries the time, so it must be known here: a literal, not a constant. A bare number would
/// leave its unit to guessing.
fn timeout(helper: &Helper, faults: &mut Faults) -> Option<Option<u64>> {
    let Some(arg) = helper.args.get("timeout") else { return Some(None) };
    let Some(literal) = arg.text() else {
        let number = arg.value.clone().and_then(|value| syn::parse2::<LitInt>(value).ok());
        let meant = number.map_or_else(
            || "5s".to_owned(),
            |number| match number.suffix() {
                "" => format!("{number}s"),
                _ => number.to_string(),
            },
        );
        faults.at(arg, format!("option `timeout` takes a string; write `timeout = \"{meant}\"`"));
        return None;
    };
    let text = literal.value();
    let cure = match milliseconds(&text) {
        Some(0) => "a call needs some time; write `\"5s\"`, or leave the option out".to_owned(),
        Some(time) => return Some(Some(time)),
        None if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() => format!("write `\"{text}s\"`"),
        None => "write whole numbers, each with `ms`, `s`, `m` or `h`, as in `\"1m 30s\"`".to_owned(),
    };
    faults.at(literal, format!("`{text}` is not a time; {cure}"));
    None
}

/// `500ms`, `5s`, `1m 30s`, `2h`
fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut sum: Option<u64> = None;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, behind) = rest.split_at(digits);
        let letters = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        let time = number.parse::<u64>().ok()?.checked_mul(factor)?;
        sum = Some(sum.unwrap_or(0).checked_add(time)?);
        rest = behind.trim_start();
    }
    sum
}

/// A word alone, as it is said of the function and not of a value.
fn blocking(helper: &Helper, faults: &mut Faults) -> bool {
    let Some(arg) = helper.args.get("blocking") else { return false };
    if arg.value.is_some() {
        faults.at(arg, "option `blocking` takes no value; write `blocking`, or remove it");
    }
    true
}
