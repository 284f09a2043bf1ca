//! Rules for the signatures of several roles.

use syn::{ReturnType, Safety, Type};

use super::contexts::{HANDLE, INIT_CONTEXT};
use super::object::as_field;
use super::{Candidate, types};
use crate::check::words::source_text;
use crate::errors::Errors;

/// The runtime awaits the function, and the function awaits calls such as `next.run(ctx)`.
pub(super) fn is_async(candidate: &Candidate<'_>, errors: &mut Errors) {
    let sig = &candidate.function.sig;
    if sig.asyncness.is_none() {
        candidate.error(errors, sig.fn_token, "must be async; add `async` before `fn`");
    }
}

/// The generated code calls the function as a safe Rust function.
pub(super) fn is_plain(candidate: &Candidate<'_>, errors: &mut Errors) {
    let sig = &candidate.function.sig;
    if let Safety::Unsafe(token) = &sig.safety {
        candidate.error(errors, token, "must not be unsafe; remove `unsafe`");
    }
    if let Some(token) = &sig.constness {
        candidate.error(errors, token, "must not be const; remove `const`");
    }
    if let Some(abi) = &sig.abi {
        candidate.error(errors, abi, "must not have a foreign ABI; remove `extern`");
    }
}

/// The generated call has no type arguments, and parameters are found by their types.
pub(super) fn is_not_generic(candidate: &Candidate<'_>, errors: &mut Errors) {
    let sig = &candidate.function.sig;
    if !sig.generics.params.is_empty() {
        let generics = source_text(&sig.generics);
        let message = format!("must not be generic; remove `{generics}` and write concrete types");
        candidate.error(errors, &sig.generics, &message);
    }
    for ty in types(candidate).filter(|ty| matches!(ty, Type::ImplTrait(_))) {
        candidate.error(errors, ty, "must not take an `impl Trait`; write a concrete type");
    }
}

/// Every build of the extension needs its `#[init]`.
pub(super) fn is_unconditional(candidate: &Candidate<'_>, errors: &mut Errors) {
    for attr in candidate.function.cfgs() {
        candidate.error(
            errors,
            attr,
            "must not be under `#[cfg]`; put the condition into its body, or on the whole extension",
        );
    }
}

/// Without this rule the compiler would report a trait bound in the generated code.
pub(super) fn returns(candidate: &Candidate<'_>, errors: &mut Errors) {
    let sig = &candidate.function.sig;
    if matches!(sig.output, ReturnType::Default)
        && let Some((_, output)) = candidate.legal.split_once(" -> ")
    {
        candidate.error(errors, &sig.ident, &format!("returns nothing; add `-> {output}`"));
    }
}

/// Each parameter is available once. The same type under two names is left to the traits in `goondan::params`.
pub(super) fn takes_nothing_twice(candidate: &Candidate<'_>, errors: &mut Errors) {
    let mut earlier = Vec::new();
    // Of types that are no JSON object, `takes_an_object` reports the first.
    for ty in types(candidate).filter(|ty| as_field(ty).is_none()) {
        let text = source_text(ty);
        if earlier.contains(&text) {
            let takes_json = candidate.legal.contains("Config") || candidate.legal.contains("Input");
            let is_given = matches!(ty, Type::Reference(_)) || text.ends_with(HANDLE) || text.ends_with(INIT_CONTEXT);
            let remedy = match takes_json && !is_given {
                true => "write one type that holds both, and derives `Deserialize` and `JsonSchema`",
                false => "remove the second",
            };
            candidate.error(errors, ty, &format!("takes `{text}` twice; {remedy}"));
        }
        earlier.push(text);
    }
}
