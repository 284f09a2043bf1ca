//! Rules for borrowed and owned parameters, decided by the names of their types.
//!
//! For the other roles the traits in `goondan::params` decide, because names can be aliases. `#[init]` and tools need
//! names: their traits treat every unknown type as one to be read from JSON, which would give a misleading error.

use syn::Type;

use super::contexts::{CONTEXT, HANDLE, INIT_CONTEXT, known};
use super::object::as_field;
use super::{Candidate, types};
use crate::check::words::source_text;
use crate::errors::Errors;

/// `#[init]` may store its parameters in the extension. No turn runs yet, so there is no context to borrow.
pub(super) fn owns_everything(candidate: &Candidate<'_>, errors: &mut Errors) {
    for ty in types(candidate) {
        let Type::Reference(reference) = ty else { continue };
        if as_field(ty).is_some() {
            // `takes_an_object_as_config` shows the struct to take instead.
            continue;
        }
        match known(ty) {
            Some((name, _)) if name != HANDLE && name != INIT_CONTEXT => cannot_take(candidate, ty, &name, errors),
            _ => {
                let (owned, borrowed) = (source_text(&reference.elem), source_text(ty));
                candidate.error(errors, ty, &format!("must own what it takes; take `{owned}` instead of `{borrowed}`"));
            }
        }
    }
}

/// A tool borrows the context of its call, and the handle. An owned type with one of the other names can be the user's
/// own input type, so it is accepted.
pub(super) fn borrows_from_the_call(candidate: &Candidate<'_>, errors: &mut Errors) {
    for ty in types(candidate) {
        let Some((name, borrowed)) = known(ty) else { continue };
        match (&*name, borrowed) {
            (HANDLE, false) => candidate.error(errors, ty, "must borrow the handle; take `&ExtensionApi`"),
            (CONTEXT, false) => candidate.error(errors, ty, "must borrow its context; take `&ToolContext<'_>`"),
            (INIT_CONTEXT, _) => {
                let message = "cannot take `InitContext`: only `#[init]` can; keep it in the extension";
                candidate.error(errors, ty, message);
            }
            (HANDLE | CONTEXT, true) | (_, false) => {}
            (_, true) => cannot_take(candidate, ty, &name, errors),
        }
    }
}

fn cannot_take(candidate: &Candidate<'_>, ty: &Type, name: &str, errors: &mut Errors) {
    let remedy = match name != "Event" && candidate.legal.contains(CONTEXT) {
        true => "take `&ToolContext<'_>` instead",
        false => "remove this parameter",
    };
    candidate.error(errors, ty, &format!("cannot take `{name}`; {remedy}"));
}
