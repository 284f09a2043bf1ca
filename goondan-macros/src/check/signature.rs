//! Owns the rules for the signatures of functions that carry our attributes. Which types they may take and return is
//! not judged here: names can be aliases, so the parameter traits of `goondan::params` tell the compiler.

use quote::ToTokens;
use syn::{FnArg, ReceiverKind, ReturnType, Safety, Type};

use super::Kind;
use crate::fault::Faults;
use crate::model::Function;

/// A function under judgement.
struct Case<'a> {
    function: &'a Function,
    /// What the function is, for messages.
    what: String,
    /// The whole legal signature, which every message shows.
    legal: String,
}

impl Case<'_> {
    fn fault(&self, faults: &mut Faults, wrong: impl ToTokens, message: &str) {
        faults.at(wrong, format!("{} {message}\nthe whole signature is `{}`", self.what, self.legal));
    }
}

pub(super) fn check_init(function: &Function, faults: &mut Faults) {
    let name = function.name();
    let case = Case {
        function,
        what: format!("initializer `{name}`"),
        legal: format!("async fn {name}(api: ExtensionApi, config: Config) -> Result<Self>"),
    };
    for rule in [has_no_receiver, is_plain, is_not_generic, is_unconditional, returns] {
        rule(&case, faults);
    }
}

pub(super) fn check_middleware(function: &Function, kind: Option<Kind>, faults: &mut Faults) {
    let (name, kind) = (function.name(), kind.unwrap_or(Kind::Turn).type_name());
    let case = Case {
        function,
        what: format!("middleware `{name}`"),
        legal: format!(
            "async fn {name}(&self, ctx: &mut {kind}Context<'_>, next: Next<'_, {kind}>) -> Result<{kind}Result>"
        ),
    };
    for rule in [is_async, borrows_self, is_plain, is_not_generic, is_unconditional, returns] {
        rule(&case, faults);
    }
}

/// `next.run(ctx)` is a future, and only an async function can await it.
fn is_async(case: &Case<'_>, faults: &mut Faults) {
    let sig = &case.function.sig;
    if sig.asyncness.is_none() {
        case.fault(faults, sig.fn_token, "must be async; add `async` before `fn`");
    }
}

/// Runs of several turns share the extension, so a middleware gets it by shared reference.
fn borrows_self(case: &Case<'_>, faults: &mut Faults) {
    let sig = &case.function.sig;
    match sig.receiver() {
        None => case.fault(faults, &sig.ident, "must take the extension; add `&self` as its first parameter"),
        Some(receiver) => {
            if !matches!(receiver.kind, ReceiverKind::Reference(_, None, None)) {
                let written = receiver.to_token_stream();
                case.fault(faults, receiver, &format!("must take `&self`; write it in the place of `{written}`"));
            }
        }
    }
}

/// There is no extension before the initializer has made it.
fn has_no_receiver(case: &Case<'_>, faults: &mut Faults) {
    if let Some(receiver) = case.function.sig.receiver() {
        case.fault(faults, receiver, "must not take `self`; remove it: this function makes the extension");
    }
}

/// The generated code calls the function as an ordinary one.
fn is_plain(case: &Case<'_>, faults: &mut Faults) {
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
fn is_not_generic(case: &Case<'_>, faults: &mut Faults) {
    let sig = &case.function.sig;
    if !sig.generics.params.is_empty() {
        let (written, message) = (sig.generics.to_token_stream(), "must not be generic; remove");
        case.fault(faults, &sig.generics, &format!("{message} `{written}` and write concrete types"));
    }
    for arg in &sig.inputs {
        if let FnArg::Typed(arg) = arg
            && let Type::ImplTrait(ty) = &*arg.ty
        {
            case.fault(faults, ty, "must not take an `impl Trait`; write a concrete type");
        }
    }
}

/// The record in the binary says what the extension registers, and is written before conditions are known.
fn is_unconditional(case: &Case<'_>, faults: &mut Faults) {
    for attr in case.function.attrs.iter().filter(|attr| attr.path().is_ident("cfg")) {
        case.fault(faults, attr, "must not be under `#[cfg]`; put the condition on the whole `impl` block");
    }
}

/// Without a return type the compiler would speak of the traits in the generated code.
fn returns(case: &Case<'_>, faults: &mut Faults) {
    let sig = &case.function.sig;
    if matches!(sig.output, ReturnType::Default) {
        case.fault(faults, &sig.ident, "must return something; add the return type");
    }
}
