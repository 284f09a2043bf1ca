//! Owns the rules for the functions under `#[tool]`.

use syn::Type;

use super::lent::known;
use super::{Case, types};
use crate::check::words::written;
use crate::fault::Faults;

/// A plain function would hold up everything else that its thread does.
pub(super) fn is_async_or_blocking(case: &Case<'_>, faults: &mut Faults) {
    let sig = &case.function.sig;
    if sig.asyncness.is_none() {
        let message = "must be async; add `async` before `fn`, or `blocking` to its `#[tool]` if it blocks its thread";
        case.fault(faults, sig.fn_token, message);
    }
}

/// Nobody awaits on the thread of a blocking tool.
pub(super) fn is_not_async(case: &Case<'_>, faults: &mut Faults) {
    if let Some(token) = &case.function.sig.asyncness {
        case.fault(
            faults,
            token,
            "is blocking and must not be async; remove `async`, or `blocking` from its `#[tool]`",
        );
    }
}

/// The input is made from the arguments of one call, which are gone once it is read. The two things that a tool may
/// borrow have names, and are shared.
pub(super) fn owns_its_input(case: &Case<'_>, faults: &mut Faults) {
    for ty in types(case) {
        let Type::Reference(reference) = ty else { continue };
        if known(ty).is_some() {
            continue;
        }
        let target = written(&reference.elem);
        let cure = match &*reference.elem {
            Type::Path(_) if target == "str" => "`String`".to_owned(),
            Type::Slice(slice) => format!("`Vec<{}>`", written(&slice.elem)),
            _ if reference.mutability.is_some() => format!("`{target}`"),
            _ => continue,
        };
        case.fault(faults, ty, &format!("must own its input; take {cure} in the place of `{}`", written(ty)));
    }
}

/// The call may be over before its thread is.
pub(super) fn has_no_tool_context(case: &Case<'_>, faults: &mut Faults) {
    for ty in types(case) {
        if let Type::Reference(reference) = ty
            && let Type::Path(path) = &*reference.elem
            && path.path.segments.last().is_some_and(|last| last.ident == "ToolContext")
        {
            let message = "is blocking and cannot take `&ToolContext`; remove it, or make the tool async: \
                           its thread may outlive the call";
            case.fault(faults, ty, message);
        }
    }
}
