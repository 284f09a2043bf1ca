//! Owns the rules for what functions are lent, by the names of the types. Elsewhere the parameter traits judge, as names
//! can be aliases; but to the traits of tools and of `#[init]`, whatever they do not know is meant to be read from JSON.

use syn::Type;

use super::{Case, types};
use crate::check::words::written;
use crate::fault::Faults;

pub(super) const HANDLE: &str = "ExtensionApi";
const CALL: &str = "ToolContext";

/// `#[init]` may keep what it is given, and nothing runs yet that could lend it a context.
pub(super) fn owns_everything(case: &Case<'_>, faults: &mut Faults) {
    for ty in types(case) {
        let Type::Reference(reference) = ty else { continue };
        match known(ty) {
            Some((name, _)) if name != HANDLE => is_given_none(case, ty, &name, faults),
            _ => {
                let (owned, written) = (written(&reference.elem), written(ty));
                case.fault(faults, ty, &format!("must own what it takes; take `{owned}` in the place of `{written}`"));
            }
        }
    }
}

/// A tool is lent the context of its call, and the handle. A type of the user's may have one of the other names.
pub(super) fn borrows_from_the_call(case: &Case<'_>, faults: &mut Faults) {
    for ty in types(case) {
        let Some((name, borrowed)) = known(ty) else { continue };
        match (&*name, borrowed) {
            (HANDLE, false) => case.fault(faults, ty, "must borrow the handle; take `&ExtensionApi`"),
            (CALL, false) => case.fault(faults, ty, "must borrow its context; take `&ToolContext<'_>`"),
            (HANDLE | CALL, true) | (_, false) => {}
            (_, true) => is_given_none(case, ty, &name, faults),
        }
    }
}

fn is_given_none(case: &Case<'_>, ty: &Type, name: &str, faults: &mut Faults) {
    let cure = match name != "Event" && case.legal.contains(CALL) {
        true => "take `&ToolContext<'_>` in its place",
        false => "remove this parameter",
    };
    case.fault(faults, ty, &format!("is given no `{name}`; {cure}"));
}

/// The name of a type that is named like one of ours, and whether it is behind a shared reference.
pub(super) fn known(ty: &Type) -> Option<(String, bool)> {
    const ALL: [&str; 6] = ["TurnContext", "StepContext", "ToolCallContext", "Event", CALL, HANDLE];
    let (target, borrowed) = match ty {
        Type::Reference(reference) => (&*reference.elem, reference.mutability.is_none()),
        ty => (ty, false),
    };
    let Type::Path(path) = target else { return None };
    let name = path.path.segments.last()?.ident.to_string();
    ALL.contains(&&*name).then_some((name, borrowed))
}
