//! The types of goondan that functions of an extension take, known by their names.

use syn::Type;

pub(super) const HANDLE: &str = "ExtensionApi";
pub(super) const INIT_CONTEXT: &str = "InitContext";
pub(super) const CONTEXT: &str = "ToolContext";

/// If the type has the name of a context, of the event or of the handle: that name, and whether it is behind a shared
/// reference.
pub(super) fn known(ty: &Type) -> Option<(String, bool)> {
    const ALL: [&str; 7] = ["TurnContext", "StepContext", "ToolCallContext", "Event", CONTEXT, HANDLE, INIT_CONTEXT];
    let (target, borrowed) = match ty {
        Type::Reference(reference) => (&*reference.elem, reference.mutability.is_none()),
        ty => (ty, false),
    };
    let Type::Path(path) = target else { return None };
    let name = path.path.segments.last()?.ident.to_string();
    ALL.contains(&&*name).then_some((name, borrowed))
}
