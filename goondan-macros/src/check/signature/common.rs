//! Owns the rules for every function that the generated code calls.

use syn::{ReturnType, Safety, Type};

use super::lent::HANDLE;
use super::{Case, types};
use crate::check::words::written;
use crate::fault::Faults;

/// The runtime awaits it, and the function what it calls, such as `next.run(ctx)`.
pub(super) fn is_async(case: &Case<'_>, faults: &mut Faults) {
    let sig = &case.function.sig;
    if sig.asyncness.is_none() {
        case.fault(faults, sig.fn_token, "must be async; add `async` before `fn`");
    }
}

/// The generated code calls the function as an ordinary one.
pub(super) fn is_plain(case: &Case<'_>, faults: &mut Faults) {
    let sig = &case.function.sig;
    if let Safety::Unsafe(token) = &sig.safety {
        case.fault(faults, token, "must not be unsafe; remove `unsafe`");
    }
    if let Some(token) = &sig.constness {
        case.fault(faults, token, "must not be const; remove `const`");
    }
    if let Some(abi) = &sig.abi {
        case.fault(faults, abi, "must not have a foreign ABI; remove `extern`");
    }
}

/// Nobody names the types at the generated call, and each parameter is found by its type.
pub(super) fn is_not_generic(case: &Case<'_>, faults: &mut Faults) {
    let sig = &case.function.sig;
    if !sig.generics.params.is_empty() {
        let (written, message) = (written(&sig.generics), "must not be generic; remove");
        case.fault(faults, &sig.generics, &format!("{message} `{written}` and write concrete types"));
    }
    for ty in types(case).filter(|ty| matches!(ty, Type::ImplTrait(_))) {
        case.fault(faults, ty, "must not take an `impl Trait`; write a concrete type");
    }
}

/// There is one way to make the extension, wherever it is built.
pub(super) fn is_unconditional(case: &Case<'_>, faults: &mut Faults) {
    for attr in case.function.conditions() {
        case.fault(
            faults,
            attr,
            "must not be under `#[cfg]`; put the condition into its body, or on the whole extension",
        );
    }
}

/// Without a return type the compiler would speak of the traits in the generated code.
pub(super) fn returns(case: &Case<'_>, faults: &mut Faults) {
    let sig = &case.function.sig;
    if matches!(sig.output, ReturnType::Default)
        && let Some((_, returned)) = case.legal.split_once(" -> ")
    {
        case.fault(faults, &sig.ident, &format!("returns nothing; add `-> {returned}`"));
    }
}

/// Each thing is there once. The same type under two names is left to the parameter traits.
pub(super) fn takes_nothing_twice(case: &Case<'_>, faults: &mut Faults) {
    let mut earlier = Vec::new();
    for ty in types(case) {
        let written = written(ty);
        if earlier.contains(&written) {
            let json = case.legal.contains("Config") || case.legal.contains("Input");
            let cure = match json && !matches!(ty, Type::Reference(_)) && !written.ends_with(HANDLE) {
                true => "write one type that holds both, and derives `Deserialize` and `JsonSchema`",
                false => "remove the second",
            };
            case.fault(faults, ty, &format!("takes `{written}` twice; {cure}"));
        }
        earlier.push(written);
    }
}
