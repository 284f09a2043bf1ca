//! Owns the rules for the arguments of `#[on]`.

use syn::LitStr;

use super::plan::Subscription;
use super::signature;
use super::words::written;
use crate::fault::Faults;
use crate::model::{Block, Function, Helper};

pub(super) fn subscription<'m>(
    block: &Block,
    helper: &Helper,
    function: &'m Function,
    faults: &mut Faults,
) -> Option<Subscription<'m>> {
    let pattern = pattern(helper, &function.name(), faults);
    signature::check_on(block, function, faults);
    Some(Subscription { function, pattern: pattern? })
}

/// The record in the binary carries the pattern, so it must be known here: a literal, not a constant.
fn pattern(helper: &Helper, function: &str, faults: &mut Faults) -> Option<LitStr> {
    let Some((first, others)) = helper.args.list.split_first() else {
        faults.at(
            &helper.attribute,
            format!(
                "function `{function}` says no event; write `#[on(\"turn.completed\")]`, or a glob as in `\"turn.*\"`"
            ),
        );
        return None;
    };
    for other in others {
        let written = written(other);
        faults.at(
            other,
            format!("`#[on]` takes one name or glob; remove `{written}`, or put it on a function of its own"),
        );
    }
    let Some(literal) = first.text_alone() else {
        // `turn.completed`, or `event = "turn.completed"`: what was meant is in it.
        let meant = first.text().map_or_else(|| first.name(), |text| text.value());
        faults.at(first, format!("`#[on]` takes a string; write `#[on(\"{meant}\")]`"));
        return None;
    };
    let text = literal.value();
    if text.is_empty() {
        let cure = "name an event, as in `#[on(\"turn.completed\")]`, or all of them by `*`";
        faults.at(&literal, format!("function `{function}` listens to an empty name; {cure}"));
        return None;
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-:*".contains(c);
    if !text.chars().all(legal) {
        faults.at(
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
