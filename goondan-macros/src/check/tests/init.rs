//! Functions under `#[init]`.

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
        "initializer `new` must return something; add the return type"
    );
}
