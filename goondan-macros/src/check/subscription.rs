//! Rules for the argument of `#[on]`.

use syn::LitStr;

use super::plan::Subscription;
use super::signature;
use super::words::source_text;
use crate::errors::Errors;
use crate::model::{Block, Function, Helper};

pub(super) fn subscription<'m>(
    block: &Block,
    helper: &Helper,
    function: &'m Function,
    errors: &mut Errors,
) -> Option<Subscription<'m>> {
    let pattern = pattern(helper, &function.name(), errors);
    signature::check_on(block, function, errors);
    Some(Subscription { function, pattern: pattern? })
}

/// The record in the binary contains the pattern, so it is a literal, not a constant.
fn pattern(helper: &Helper, function: &str, errors: &mut Errors) -> Option<LitStr> {
    let Some((first, others)) = helper.args.list.split_first() else {
        errors.at(
            &helper.attribute,
            format!(
                "function `{function}` names no event; write `#[on(\"turn.completed\")]`, or a glob as in `\"turn.*\"`"
            ),
        );
        return None;
    };
    for other in others {
        let text = source_text(other);
        errors.at(other, format!("`#[on]` takes one name or glob; remove `{text}`, or put it on another function"));
    }
    let Some(literal) = first.bare_string() else {
        // `turn.completed` or `event = "turn.completed"`: the message shows the name as a string.
        let meant = first.string().map_or_else(|| first.name(), |text| text.value());
        errors.at(first, format!("`#[on]` takes a string; write `#[on(\"{meant}\")]`"));
        return None;
    };
    let text = literal.value();
    if text.is_empty() {
        let remedy = "name an event, as in `#[on(\"turn.completed\")]`, or write `*` for all events";
        errors.at(&literal, format!("function `{function}` listens to an empty name; {remedy}"));
        return None;
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-:*".contains(c);
    if !text.chars().all(legal) {
        errors.at(
            &literal,
            format!(
                "`{text}` is not a name or a glob of events; use letters, digits, `.`, `_`, `-` and `:`, and `*` for any \
                 text, as in `workspace.*`"
            ),
        );
        return None;
    }
    Some(literal)
}
