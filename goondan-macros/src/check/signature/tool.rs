//! Rules for the signatures of tools.

use syn::Type;

use super::contexts::known;
use super::object::as_field;
use super::{Candidate, types};
use crate::check::words::source_text;
use crate::errors::Errors;

/// A plain function would block the thread of the runtime on which it runs.
pub(super) fn is_async_or_blocking(candidate: &Candidate<'_>, errors: &mut Errors) {
    let sig = &candidate.function.sig;
    if sig.asyncness.is_none() {
        let message = "must be async; add `async` before `fn`, or `blocking` to its `#[tool]` if it blocks its thread";
        candidate.error(errors, sig.fn_token, message);
    }
}

/// The thread of a blocking tool has no executor that would poll a future.
pub(super) fn is_not_async(candidate: &Candidate<'_>, errors: &mut Errors) {
    if let Some(token) = &candidate.function.sig.asyncness {
        candidate.error(
            errors,
            token,
            "is blocking and must not be async; remove `async`, or `blocking` from its `#[tool]`",
        );
    }
}

/// The input is deserialized from the arguments of one call, which are dropped afterwards, and nothing that a tool
/// borrows is mutable. Behind `&` can be an alias of the context or the handle, so that is left to the traits.
pub(super) fn owns_its_input(candidate: &Candidate<'_>, errors: &mut Errors) {
    for ty in types(candidate).filter(|ty| known(ty).is_none() && as_field(ty).is_none()) {
        if let Type::Reference(reference) = ty
            && reference.mutability.is_some()
        {
            let (owned, borrowed) = (source_text(&reference.elem), source_text(ty));
            candidate.error(errors, ty, &format!("must own its input; take `{owned}` instead of `{borrowed}`"));
        }
    }
}

/// The context ends with the call, but the thread may run longer.
pub(super) fn has_no_tool_context(candidate: &Candidate<'_>, errors: &mut Errors) {
    for ty in types(candidate) {
        if let Type::Reference(reference) = ty
            && let Type::Path(path) = &*reference.elem
            && path.path.segments.last().is_some_and(|last| last.ident == "ToolContext")
        {
            let message = "is blocking and cannot take `&ToolContext`; remove it, or make the tool async: \
                           its thread may outlive the call";
            candidate.error(errors, ty, message);
        }
    }
}

/// A tool that asks runs again, and would ask for ever. Behind `&` can be an alias of the context.
pub(super) fn can_read_its_decision(candidate: &Candidate<'_>, errors: &mut Errors) {
    let is_api = |ty: &Type| matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "ExtensionApi"));
    let has_context = types(candidate).any(|ty| matches!(ty, Type::Reference(reference) if !is_api(&reference.elem)));
    if !has_context {
        let message =
            "asks, and cannot read what is decided; let it take `ctx: &ToolContext<'_>`, and call `ctx.decision`";
        candidate.error(errors, &candidate.function.sig.ident, message);
    }
}
