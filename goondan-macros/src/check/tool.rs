//! Rules for the arguments of `#[tool]`.

use std::collections::BTreeMap;

use quote::ToTokens;
use syn::{LitInt, LitStr, Path};

use super::arguments::are_known;
use super::plan::{Effect, Present, Tool};
use super::signature;
use super::words::{is_tool_name, list, nearest};
use crate::attr::Arg;
use crate::errors::Errors;
use crate::model::{Block, Function, Helper};

pub(super) fn tool<'m>(
    block: &Block,
    helper: &'m Helper,
    function: &'m Function,
    extension: Option<&LitStr>,
    errors: &mut Errors,
) -> Option<Tool<'m>> {
    are_known("tool", &helper.args, &["name", "effect", "timeout", "blocking", "asks", "parallel", "present"], errors);
    let name = name(helper, function, extension, errors);
    let effect = effect(helper, errors);
    let timeout = timeout(helper, errors);
    let words @ [blocking, asks] = ["blocking", "asks"].map(|word| flag(word, helper, errors));
    let parallel = parallel(effect, helper, errors);
    let present = present(helper, errors);
    signature::check_tool(block, function, words, errors);
    Some(Tool {
        function,
        name: name?,
        effect: effect?,
        timeout: timeout?,
        blocking,
        asks,
        parallel,
        present: present?,
    })
}

/// Models, logs and other extensions refer to a tool by this name, so one grammar applies everywhere (TOOL-01).
fn name(helper: &Helper, function: &Function, extension: Option<&LitStr>, errors: &mut Errors) -> Option<String> {
    let (function_name, prefix) = (function.name(), extension.map_or_else(|| "notes".to_owned(), LitStr::value));
    let Some(arg) = helper.args.get("name") else {
        // Without the name of the extension there is no default, and `arguments::name` has reported why.
        let name = format!("{}__{function_name}", extension?.value());
        let legal = is_tool_name(&name) && name.len() <= 64;
        if !legal {
            let one = if name.len() > 64 { "a shorter one" } else { "one" };
            errors.at(
                &function.sig.ident,
                format!("`{name}` is not a legal tool name; give {one}, as in `#[tool(name = \"{prefix}__search\")]`"),
            );
        }
        return legal.then_some(name);
    };
    let Some(literal) = arg.string() else {
        errors.at(arg, format!("option `name` takes a string; write `name = \"{prefix}__{function_name}\"`"));
        return None;
    };
    let name = literal.value();
    if is_tool_name(&name) && name.len() <= 64 {
        return Some(name);
    }
    if name.is_empty() {
        errors.at(
            literal,
            format!("tool `{function_name}` has an empty name; write `name = \"{prefix}__{function_name}\"`"),
        );
        return None;
    }
    let remedy = name_remedy(&name, &prefix, &function_name);
    errors.at(literal, format!("`{name}` is not a legal tool name; {remedy}"));
    None
}

/// Explains the first mistake in `name`, in reading order.
fn name_remedy(name: &str, prefix: &str, function: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let (first, second) = name.split_once("__").unwrap_or((name, ""));
    if let Some(illegal) = name.chars().find(|c| !legal(*c)) {
        format!("`{illegal}` cannot be in it; use letters, digits and hyphens, in words joined by `_`")
    } else if is_tool_name(name) {
        format!("it has {} characters; use at most 64", name.len())
    } else if !name.contains("__") && is_tool_name(&format!("{prefix}__{name}")) {
        format!("`__` joins a group and a tool; write `{prefix}__{name}`")
    } else if first.is_empty() {
        format!("nothing comes before `__`; write `{prefix}{name}`")
    } else if second.is_empty() {
        format!("nothing comes after `__`; write `{name}{function}`")
    } else if second.contains("__") {
        format!("`__` may occur only once, between a group and a tool; write `{first}__{}`", second.replace("__", "_"))
    } else {
        format!("words are joined by single `_`, and `__` joins a group and a tool; write `{prefix}__{function}`")
    }
}

/// The second registration would silently replace the first (TOOL-03). Two functions that are both under `#[cfg]` are
/// allowed: the conditions may exclude each other.
pub(super) fn is_unique(tool: &Tool<'_>, helper: &Helper, earlier: &mut BTreeMap<String, bool>, errors: &mut Errors) {
    let conditional = tool.function.cfgs().next().is_some();
    if earlier.insert(tool.name.clone(), conditional).is_some_and(|earlier| !(earlier && conditional)) {
        let written = helper.args.get("name").and_then(Arg::string);
        let wrong = written.map_or_else(|| tool.function.sig.ident.to_token_stream(), ToTokens::into_token_stream);
        let function = tool.function.name();
        errors.at(wrong, format!("function `{function}` is a second tool `{}`; give it another name", tool.name));
    }
}

/// Calls of tools that only read run beside others anyway (D-45).
fn parallel(effect: Option<Effect>, helper: &Helper, errors: &mut Errors) -> bool {
    let is_parallel = flag("parallel", helper, errors);
    if let Some(arg) = helper.args.get("parallel").filter(|_| is_parallel && effect == Some(Effect::Read)) {
        errors.at(arg, "a tool that only reads runs beside others anyway; remove `parallel`");
    }
    is_parallel
}

/// The runtime decides by the effect what may run twice, so it must be one of three words (EFFECT-01).
fn effect(helper: &Helper, errors: &mut Errors) -> Option<Effect> {
    let Some(arg) = helper.args.get("effect") else { return Some(Effect::default()) };
    let words = Effect::ALL.map(Effect::as_str);
    let Some(written) = arg.value.as_ref().map(ToString::to_string).filter(|written| !written.is_empty()) else {
        errors.at(arg, format!("option `effect` takes a word; write {}", list(&words, "or")));
        return None;
    };
    let found = Effect::ALL.into_iter().find(|effect| effect.as_str() == written);
    if found.is_none() {
        let remedy = match nearest(&written.trim_matches('"').to_lowercase(), &words) {
            Some(near) => format!("write `effect = {near}`"),
            None => format!("write {}", list(&words, "or")),
        };
        errors.at(arg, format!("unknown effect `{written}`; {remedy}"));
    }
    found
}

/// The record in the binary contains the timeout, so it is a literal, not a constant. A bare number is rejected,
/// because its unit would be ambiguous.
fn timeout(helper: &Helper, errors: &mut Errors) -> Option<Option<u64>> {
    let Some(arg) = helper.args.get("timeout") else { return Some(None) };
    let Some(literal) = arg.string() else {
        let number = arg.value.clone().and_then(|value| syn::parse2::<LitInt>(value).ok());
        let meant = number.map_or_else(
            || "5s".to_owned(),
            |number| match number.suffix() {
                "" => format!("{number}s"),
                _ => number.to_string(),
            },
        );
        errors.at(arg, format!("option `timeout` takes a string; write `timeout = \"{meant}\"`"));
        return None;
    };
    let text = literal.value();
    let remedy = match milliseconds(&text) {
        Some(0) => "a call needs some time; write `\"5s\"`, or leave the option out".to_owned(),
        Some(time) => return Some(Some(time)),
        None if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() => format!("write `\"{text}s\"`"),
        None => "write whole numbers, each with `ms`, `s`, `m` or `h`, as in `\"1m 30s\"`".to_owned(),
    };
    errors.at(literal, format!("`{text}` is not a time; {remedy}"));
    None
}

/// Parses `500ms`, `5s`, `1m 30s`, `2h`. Returns `None` for anything else, or on overflow.
fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut sum: Option<u64> = None;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        let time = number.parse::<u64>().ok()?.checked_mul(factor)?;
        sum = Some(sum.unwrap_or(0).checked_add(time)?);
        rest = after.trim_start();
    }
    sum
}

/// A word without a value: it describes the function itself.
fn flag(word: &str, helper: &Helper, errors: &mut Errors) -> bool {
    let Some(arg) = helper.args.get(word) else { return false };
    if arg.value.is_some() {
        errors.at(arg, format!("option `{word}` takes no value; write `{word}`, or remove it"));
    }
    true
}

/// A text shows arguments, whose names are checked when the tool is registered: the schema of the input has them. A
/// function is called by its path (PRESENT-01).
fn present<'m>(helper: &'m Helper, errors: &mut Errors) -> Option<Option<Present<'m>>> {
    let Some(arg) = helper.args.get("present") else { return Some(None) };
    if let Some(line) = arg.string() {
        if let Err(problem) = check_line(&line.value()) {
            errors.at(&line, problem);
            return None;
        }
        return Some(Some(Present::Line(line)));
    }
    match arg.value.as_ref().filter(|value| syn::parse2::<Path>((*value).clone()).is_ok()) {
        Some(function) => Some(Some(Present::Function(function))),
        None => {
            let remedy = "write `present = \"{argument}\"`, or `present = path::to::function`";
            errors.at(arg, format!("option `present` takes a text or a function; {remedy}"));
            None
        }
    }
}

/// Explains the first mistake in a text with arguments in braces.
fn check_line(line: &str) -> Result<(), String> {
    let mut rest = line;
    while let Some(at) = rest.find(['{', '}']) {
        let (brace, after) = rest[at..].split_at(1);
        rest = match after.strip_prefix(brace) {
            Some(after) => after,
            None if brace == "}" => return Err("`}` closes nothing; write `}}` for a brace".to_owned()),
            None => {
                let (name, after) = after.split_once('}').ok_or("`{` is not closed; write `{{` for a brace")?;
                if name.is_empty() || name.contains(|c: char| c == '{' || c.is_whitespace()) {
                    return Err(format!("`{{{name}}}` names no argument; write it as in `{{path}}`"));
                }
                after
            }
        };
    }
    Ok(())
}
