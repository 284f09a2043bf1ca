//! Errors about functions under `#[middleware]`, and those that are the same for every role.

use proc_macro2::TokenStream;
use quote::quote;

use super::{error_of, error_of_attribute};

#[test]
fn two_roles() {
    assert_eq!(
        error_of_attribute(quote!(#[middleware(turn)] #[middleware(step)])),
        "function `trim` has a second role, `#[middleware]`; keep one, or call it from another"
    );
}

#[test]
fn role_on_a_constant() {
    assert_eq!(
        error_of(quote!(
            #[middleware(turn)]
            const TRIM: u8 = 1;
        )),
        "`#[middleware]` must be on a function; remove it here"
    );
}

#[test]
fn middleware_without_a_kind() {
    let expected =
        "middleware `trim` has no kind; write `#[middleware(turn)]`, the kind being `turn`, `step` or `toolCall`";
    for attribute in [quote!(#[middleware]), quote!(#[middleware()]), quote!(#[middleware(priority = 1)])] {
        assert_eq!(error_of_attribute(attribute), expected);
    }
}

#[test]
fn middleware_of_two_kinds() {
    assert_eq!(
        error_of_attribute(quote!(#[middleware(turn, step)])),
        "middleware `trim` has a second kind, `step`; keep one"
    );
}

#[test]
fn unknown_middleware_kind() {
    let error = |kind: TokenStream| error_of_attribute(quote!(#[middleware(#kind)]));
    assert_eq!(error(quote!(toolcall)), "unknown middleware kind `toolcall`; write `toolCall`");
    assert_eq!(error(quote!(tool_call)), "unknown middleware kind `tool_call`; write `toolCall`");
    assert_eq!(error(quote!("turn")), "unknown middleware kind `\"turn\"`; write `turn`");
    assert_eq!(error(quote!(Step)), "unknown middleware kind `Step`; write `step`");
    assert_eq!(error(quote!(request)), "unknown middleware kind `request`; write `turn`, `step` or `toolCall`");
}

#[test]
fn unknown_option_of_middleware() {
    let error = |option: TokenStream| error_of_attribute(quote!(#[middleware(turn, #option)]));
    assert_eq!(error(quote!(prority = 1)), "unknown option `prority` of `#[middleware]`; write `priority`");
    assert_eq!(
        error(quote!(order = 1)),
        "unknown option `order` of `#[middleware]`; `priority`, `before` and `after` can be given"
    );
    assert_eq!(error(quote!(befor = "x")), "unknown option `befor` of `#[middleware]`; write `before`");
    assert_eq!(error(quote!(after = "a", after = "b")), "option `after` of `#[middleware]` is given twice; keep one");
}

#[test]
fn neighbours_that_are_not_names_of_extensions() {
    let error = |option: TokenStream| error_of_attribute(quote!(#[middleware(turn, #option)]));
    for option in [quote!(before = LOGGING), quote!(before = 1), quote!(before = ["a", 1]), quote!(before)] {
        assert_eq!(error(option), "option `before` takes names of extensions; write `before = \"logging\"`, or a list");
    }
    assert_eq!(error(quote!(after = "MessageLog")), "`MessageLog` is not a legal extension name; write `message-log`");
    assert_eq!(error(quote!(after = ["a?", "?"])), "`` is not a legal extension name; use lower-case words");
    assert_eq!(
        error(quote!(after = "window")),
        "`window` is this extension; order its functions by their order in the source"
    );
}

#[test]
fn priority_that_is_not_a_32_bit_literal() {
    for value in [quote!(FIRST), quote!("1"), quote!(1.5), quote!(3_000_000_000), quote!()] {
        assert_eq!(
            error_of_attribute(quote!(#[middleware(turn, priority = #value)])),
            "option `priority` takes a 32-bit integer literal; write `priority = -5`"
        );
    }
    assert_eq!(
        error_of_attribute(quote!(#[middleware(turn, priority)])),
        "option `priority` takes a 32-bit integer literal; write `priority = -5`"
    );
}

#[test]
fn middleware_that_is_not_async() {
    assert_eq!(
        error_of(quote!(
            #[middleware(turn)]
            fn trim(&self) -> Result<TurnResult> {}
        )),
        "middleware `trim` must be async; add `async` before `fn`"
    );
}

#[test]
fn middleware_with_another_receiver() {
    for receiver in [quote!(self), quote!(&mut self), quote!(&'static self), quote!(self: Arc<Self>)] {
        assert_eq!(
            error_of(quote!(#[middleware(turn)] async fn trim(#receiver) -> Result<TurnResult> {})),
            format!(
                "middleware `trim` must take `&self`; write it instead of `{}`",
                crate::check::words::source_text(receiver)
            )
        );
    }
}

#[test]
fn generic_middleware() {
    assert_eq!(
        error_of(quote!(
            #[middleware(turn)]
            async fn trim<'a>(&self, next: Next<'a, Turn>) -> Result<TurnResult> {}
        )),
        "middleware `trim` must not be generic; remove `<'a>` and write concrete types"
    );
    assert_eq!(
        error_of(quote!(
            #[middleware(turn)]
            async fn trim(&self, next: impl Copy) -> Result<TurnResult> {}
        )),
        "middleware `trim` must not take an `impl Trait`; write a concrete type"
    );
}

#[test]
fn unsafe_const_and_foreign_functions() {
    let error = |function: TokenStream| error_of(quote!(#[middleware(turn)] #function(&self) -> Result<TurnResult> {}));
    assert_eq!(error(quote!(async unsafe fn trim)), "middleware `trim` must not be unsafe; remove `unsafe`");
    assert_eq!(error(quote!(const async fn trim)), "middleware `trim` must not be const; remove `const`");
    assert_eq!(
        error(quote!(async extern "C" fn trim)),
        "middleware `trim` must not have a foreign ABI; remove `extern`"
    );
}

#[test]
fn the_same_parameter_twice() {
    assert_eq!(
        error_of(quote!(
            #[middleware(turn)]
            async fn trim(&self, a: Next<'_, Turn>, b: Next<'_, Turn>) -> Result<TurnResult> {}
        )),
        "middleware `trim` takes `Next<'_, Turn>` twice; remove the second"
    );
}

#[test]
fn missing_and_superfluous_keys() {
    assert_eq!(
        error_of_attribute(quote!(#[middleware(kind = "step")])),
        "the kind is written without a key; write `#[middleware(step)]`"
    );
    assert_eq!(
        error_of_attribute(quote!(#[middleware(turn, -5)])),
        "unknown option `-5` of `#[middleware]`; write `priority = -5`"
    );
}
