//! Errors about functions under `#[on]` and `#[cleanup]`.

use proc_macro2::TokenStream;
use quote::quote;

use super::error_of;

/// The one error of a subscriber that is valid but for `attribute`.
fn error(attribute: TokenStream) -> String {
    error_of(quote!(#attribute async fn count(&self, event: &Event) -> Result<()> {}))
}

#[test]
fn no_pattern() {
    for attribute in [quote!(#[on]), quote!(#[on()])] {
        assert_eq!(
            error(attribute),
            "function `count` names no event; write `#[on(\"turn.completed\")]`, or a glob as in `\"turn.*\"`"
        );
    }
}

#[test]
fn pattern_that_is_not_a_string() {
    let expected = "`#[on]` takes a string; write `#[on(\"turn.completed\")]`";
    assert_eq!(error(quote!(#[on(turn.completed)])), expected);
    assert_eq!(error(quote!(#[on(event = "turn.completed")])), expected);
}

#[test]
fn pattern_against_the_grammar() {
    assert_eq!(
        error(quote!(#[on("")])),
        "function `count` listens to an empty name; name an event, as in `#[on(\"turn.completed\")]`, or write `*` for all events"
    );
    for illegal in ["turn completed", "turn/é"] {
        assert_eq!(
            error(quote!(#[on(#illegal)])),
            format!(
                "`{illegal}` is not a name or a glob of events; use letters, digits, `.`, `_`, `-` and `:`, and `*` for any \
                 text, as in `workspace.*`"
            )
        );
    }
}

#[test]
fn second_pattern() {
    assert_eq!(
        error(quote!(#[on("a", "b")])),
        "`#[on]` takes one name or glob; remove `\"b\"`, or put it on another function"
    );
}

#[test]
fn subscriber_that_is_not_async() {
    assert_eq!(
        error_of(quote!(
            #[on("a")]
            fn count(&self) -> Result<()> {}
        )),
        "subscriber `count` must be async; add `async` before `fn`"
    );
}

#[test]
fn subscriber_that_returns_nothing() {
    assert_eq!(
        error_of(quote!(
            #[on("a")]
            async fn count(&self) {}
        )),
        "subscriber `count` returns nothing; add `-> Result<()>`"
    );
}

#[test]
fn two_cleanups() {
    let two = quote! {
        #[cleanup]
        async fn close(&self) {}
        #[cleanup]
        async fn shut(&self) {}
    };
    assert_eq!(error_of(two), "extension `Window` has a second `#[cleanup]`, `shut`; keep one");
}

#[test]
fn cleanup_with_arguments() {
    assert_eq!(
        error_of(quote!(
            #[cleanup(timeout = "5s")]
            async fn close(&self) {}
        )),
        "`#[cleanup]` takes no arguments; write `#[cleanup]`"
    );
}

#[test]
fn cleanup_that_consumes_the_extension() {
    assert_eq!(
        error_of(quote!(
            #[cleanup]
            async fn close(self) {}
        )),
        "cleanup `close` must take `&self`; write it instead of `self`"
    );
}
