//! Errors about `#[extension]` on a module.

use proc_macro2::TokenStream;
use quote::quote;

use super::{errors, expand, one};

/// The one error of a module that has `function`.
fn error_in_a_module(function: TokenStream) -> String {
    one(errors(quote!(name = "hello"), quote!(mod hello { #function })))
}

#[test]
fn a_valid_module_has_no_errors() {
    let (errors, rest) = expand(
        quote!(name = "hello"),
        quote! {
            /// Says hello.
            pub(crate) mod hello {
                #![allow(dead_code)]
                use goondan::prelude::*;
                static COUNT: AtomicUsize = AtomicUsize::new(0);
                impl Other { fn f(&self) {} }
                macro_rules! also { () => {} }
                #[init]
                fn start(config: Config) {}
                #[middleware(turn)]
                async fn trim(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {}
                #[tool(name = "a__b", effect = idempotent, timeout = "1m 30s")]
                async fn status(ctx: &ToolContext<'_>) -> Result<()> {}
                #[tool(blocking)]
                fn scan(input: Input) -> Result<()> {}
                #[on("turn.*")]
                async fn count(event: &Event) -> Result<()> {}
                #[cleanup]
                async fn close() {}
                fn helper() {}
            }
        },
    );
    assert_eq!(errors, [""; 0]);
    assert!(rest.contains("pub enum Extension { }") && rest.contains("\"hello__scan\""), "{rest}");
    assert!(!rest.contains("# [tool"), "{rest}");
}

#[test]
fn a_module_may_be_empty() {
    assert_eq!(
        errors(
            quote!(name = "hello"),
            quote!(
                mod hello {}
            )
        ),
        [""; 0]
    );
}

#[test]
fn a_rejected_module_still_has_the_type_extension() {
    let (errors, rest) = expand(
        quote!(),
        quote!(
            mod hello {
                #[tool]
                #[inline]
                async fn f() -> Result<()> {}
            }
        ),
    );
    assert_eq!(one(errors), "extension `hello` has no name; write `#[extension(name = \"hello\")]`");
    assert!(rest.starts_with("mod hello {") && rest.contains("# [inline]") && !rest.contains("tool]"), "{rest}");
    assert!(rest.contains("impl :: goondan :: __private :: Extension for Extension"), "{rest}");
}

#[test]
fn module_in_a_file() {
    assert_eq!(
        one(errors(
            quote!(name = "hello"),
            quote!(
                mod hello;
            )
        )),
        "`#[extension]` cannot see into a file; write the module with its body, `mod name { … }`, or put `#[extension]` \
         on an `impl` block in the file"
    );
}

#[test]
fn self_in_a_module() {
    let message =
        "must not take `self`; remove it, or write the extension as an `impl` block: a module has no instance";
    for (function, subject) in [
        (
            quote!(
                #[init]
                fn new(&self) {}
            ),
            "initializer `new`",
        ),
        (
            quote!(
                #[middleware(turn)]
                async fn trim(&self) -> Result<TurnResult> {}
            ),
            "middleware `trim`",
        ),
        (
            quote!(
                #[tool]
                async fn search(&self) -> Result<()> {}
            ),
            "tool `search`",
        ),
        (
            quote!(
                #[tool(blocking)]
                fn search(self) -> Result<()> {}
            ),
            "tool `search`",
        ),
        (
            quote!(
                #[on("a")]
                async fn count(&mut self) -> Result<()> {}
            ),
            "subscriber `count`",
        ),
        (
            quote!(
                #[cleanup]
                async fn close(&self) {}
            ),
            "cleanup `close`",
        ),
    ] {
        assert_eq!(error_in_a_module(function), format!("{subject} {message}"));
    }
}

#[test]
fn rejected_function_with_self_becomes_a_method() {
    // As a free function it would be a second error, from the compiler.
    let (_, rest) = expand(
        quote!(name = "hello"),
        quote!(
            mod hello {
                #[cleanup]
                async fn close(&self) {}
            }
        ),
    );
    let method =
        quote!(impl Extension { #[allow(clippy::unused_async, clippy::unused_self)] async fn close(&self) {} });
    assert!(rest.contains(&method.to_string()), "{rest}");
}

#[test]
fn two_inits_in_a_module() {
    let two = quote! {
        #[init]
        fn a() {}
        #[init]
        fn b() {}
    };
    assert_eq!(error_in_a_module(two), "extension `hello` has a second `#[init]`, `b`; keep one");
}

#[test]
fn role_on_a_struct_in_a_module() {
    assert_eq!(
        error_in_a_module(quote!(
            #[tool]
            struct Search;
        )),
        "`#[tool]` must be on a function; remove it here"
    );
}

#[test]
fn messages_show_signatures_in_a_module_without_self() {
    let (errors, _) = expand(
        quote!(name = "hello"),
        quote!(
            mod hello {
                #[cleanup]
                fn close() {}
            }
        ),
    );
    assert!(one(errors).ends_with("\nthe whole signature is `async fn close()`"));
}
