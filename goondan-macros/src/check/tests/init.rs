//! Errors about functions under `#[init]`.

use quote::quote;

use super::{error_of, error_of_init};

#[test]
fn two_inits() {
    assert_eq!(
        error_of(quote!(
            #[init]
            fn make() -> Self {}
        )),
        "extension `Window` has a second `#[init]`, `make`; keep one"
    );
}

#[test]
fn init_with_arguments() {
    assert_eq!(
        error_of_init(quote!(
            #[init(async)]
            fn new() -> Self {}
        )),
        "`#[init]` takes no arguments; write `#[init]`"
    );
}

#[test]
fn init_with_self() {
    assert_eq!(
        error_of_init(quote!(
            #[init]
            fn new(&self) -> Self {}
        )),
        "initializer `new` must not take `self`; remove it: this function makes the extension"
    );
}

#[test]
fn init_that_returns_nothing() {
    assert_eq!(
        error_of_init(quote!(
            #[init]
            fn new() {}
        )),
        "initializer `new` returns nothing; add `-> Result<Self>`"
    );
}

#[test]
fn init_under_a_condition() {
    assert_eq!(
        error_of_init(quote!(
            #[init]
            #[cfg(unix)]
            fn new() -> Self {}
        )),
        "initializer `new` must not be under `#[cfg]`; put the condition into its body, or on the whole extension"
    );
}

#[test]
fn parameters_that_init_cannot_take() {
    let error = |ty: proc_macro2::TokenStream| error_of_init(quote!(#[init] fn new(it: #ty) -> Self {}));
    assert_eq!(
        error(quote!(&InitContext)),
        "initializer `new` must own what it takes; take `InitContext` instead of `&InitContext`"
    );
    assert_eq!(
        error(quote!(&ExtensionApi)),
        "initializer `new` must own what it takes; take `ExtensionApi` instead of `&ExtensionApi`"
    );
    assert_eq!(error(quote!(&Config)), "initializer `new` must own what it takes; take `Config` instead of `&Config`");
    assert_eq!(error(quote!(&TurnContext<'_>)), "initializer `new` cannot take `TurnContext`; remove this parameter");
}

#[test]
fn config_that_is_no_object() {
    let error = |ty: proc_macro2::TokenStream| error_of_init(quote!(#[init] fn new(max: #ty) -> Self {}));
    let expected =
        |ty| format!("initializer `new` cannot take `{ty}`: a config is a JSON object; take `config: Config`");
    assert_eq!(error(quote!(usize)), expected("usize"));
    assert_eq!(error(quote!(&str)), expected("&str"));
}
