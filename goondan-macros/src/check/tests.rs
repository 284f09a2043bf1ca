//! One test for each fault, named in words.

use proc_macro2::TokenStream;
use quote::quote;

use crate::extension::extension;

/// What the compiler would be told, and the item that is left.
fn refused(args: TokenStream, item: TokenStream) -> (Vec<String>, String) {
    let file: syn::File = syn::parse2(extension(args, item)).unwrap();
    let (mut errors, mut rest) = (Vec::new(), String::new());
    for item in file.items {
        match item {
            syn::Item::Macro(call) if call.mac.path.segments.last().unwrap().ident == "compile_error" => {
                errors.push(call.mac.parse_body::<syn::LitStr>().unwrap().value());
            }
            item => rest.push_str(&quote!(#item).to_string()),
        }
    }
    (errors, rest)
}

/// The errors, without the line that shows a whole signature.
fn errors(args: TokenStream, item: TokenStream) -> Vec<String> {
    let first_line = |error: String| error.lines().next().unwrap().to_owned();
    refused(args, item).0.into_iter().map(first_line).collect()
}

/// The one error of an extension with `function` in it, beside a legal `#[init]`.
fn error_of(function: TokenStream) -> String {
    one(errors(
        quote!(name = "window"),
        quote!(
            impl Window {
                #[init]
                fn new() -> Self {}
                #function
            }
        ),
    ))
}

/// The one error of an extension with the arguments `args`.
fn error_of_args(args: TokenStream) -> String {
    one(errors(
        args,
        quote!(
            impl MessageWindow {
                #[init]
                fn new() -> Self {}
            }
        ),
    ))
}

/// The one error of an extension whose only function is `init`.
fn error_of_init(init: TokenStream) -> String {
    one(errors(quote!(name = "window"), quote!(impl Window { #init })))
}

/// The one error of a middleware under `attribute` that is legal otherwise.
fn error_of_attribute(attribute: TokenStream) -> String {
    error_of(quote!(#attribute async fn trim(&self, next: Next<'_, Turn>) -> Result<TurnResult> {}))
}

fn one(errors: Vec<String>) -> String {
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.into_iter().next().unwrap()
}

#[test]
fn a_legal_extension_has_no_faults() {
    let (errors, rest) = refused(
        quote!(name = "window", crate = renamed::goondan,),
        quote! {
            /// Says "hello".
            #[cfg(unix)]
            impl Window {
                #![allow(dead_code)]
                const LIMIT: usize = { 3 };
                #[init]
                pub(crate) async fn new(config: <Self as Configured>::Config) -> Result<Self> {}
                #[middleware(toolCall, priority = -5)]
                #[inline]
                async fn r#guard(&self, next: Next<'_, ToolCall>, _: &mut ToolCallContext<'_>) -> Result<ToolCallResult> {}
                fn helper<T>(self, value: T) -> impl Iterator<Item = T> {}
                also! { anything here }
            }
        },
    );
    assert_eq!(errors, [""; 0]);
    assert!(!rest.contains("# [init]") && !rest.contains("# [middleware"), "{rest}");
    assert!(rest.contains("\"guard\"") && !rest.contains("__r#guard"), "{rest}");
    assert!(!rest.contains("goondan :: __private") || rest.contains("renamed :: goondan :: __private"), "{rest}");
}

#[test]
fn a_fault_leaves_the_item_without_our_attributes() {
    let (errors, rest) = refused(
        quote!(name = "window"),
        quote!(
            impl Window {
                #[init]
                #[inline]
                fn new(&self) -> Self {}
            }
        ),
    );
    assert_eq!(errors.len(), 1);
    assert!(rest.starts_with("impl Window {") && rest.contains("# [inline]") && !rest.contains("init]"), "{rest}");
    // Who asks for an extension gets one: the fault is the only error.
    assert!(rest.contains("impl :: goondan :: __private :: Extension for Window"), "{rest}");
}

#[test]
fn all_faults_come_at_once() {
    let item = quote! {
        impl Window {
            #[middleware(turn)]
            fn trim(next: Next<'_, Turn>) {}
        }
    };
    assert_eq!(
        errors(quote!(nam = "window"), item),
        [
            "unknown option `nam` of `#[extension]`; write `name`",
            "extension `Window` has no name; write `#[extension(name = \"window\")]`",
            "extension `Window` has no `#[init]`; add a function such as `#[init] fn new() -> Self`",
            "middleware `trim` must be async; add `async` before `fn`",
            "middleware `trim` must take the extension; add `&self` as its first parameter",
            "middleware `trim` must return something; add the return type",
        ]
    );
}

#[test]
fn a_bad_signature_shows_the_whole_legal_one() {
    let (errors, _) = refused(
        quote!(name = "window"),
        quote!(
            impl Window {
                #[init]
                fn new() -> Self {}
                #[middleware(step)]
                fn trim(&self) -> Result<StepResult> {}
            }
        ),
    );
    assert!(one(errors).ends_with(
        "\nthe whole signature is `async fn trim(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult>`"
    ));
}

#[test]
fn extension_on_a_struct() {
    assert_eq!(
        one(errors(
            quote!(name = "window"),
            quote!(
                pub struct Window;
            )
        )),
        "`#[extension]` must be on an `impl` block, not on a `struct`; move it to the `impl` block"
    );
}

#[test]
fn extension_on_a_mod_keeps_the_mod_without_our_attributes() {
    let (errors, rest) = refused(
        quote!(),
        quote!(
            mod hello {
                #[init]
                #[inline]
                fn new() {}
            }
        ),
    );
    assert_eq!(
        one(errors),
        "`#[extension]` on a `mod` is not in this version of goondan; put it on the `impl` block of a type"
    );
    assert_eq!(
        rest,
        quote!(
            mod hello {
                #[inline]
                fn new() {}
            }
        )
        .to_string()
    );
}

#[test]
fn extension_on_a_trait_impl() {
    let item = quote!(
        impl fmt::Display for Window {
            #[init]
            fn new() -> Self {}
        }
    );
    assert_eq!(
        one(errors(quote!(name = "window"), item)),
        "extension `Window` must be an inherent `impl`; move it out of `impl fmt :: Display`"
    );
}

#[test]
fn generic_extension() {
    let item = quote!(
        impl<T> Window<T> {
            #[init]
            fn new() -> Self {}
        }
    );
    assert_eq!(
        one(errors(quote!(name = "window"), item)),
        "extension `Window` must not be generic; replace `< T >` by concrete types"
    );
}

#[test]
fn no_name() {
    assert_eq!(
        error_of_args(quote!()),
        "extension `MessageWindow` has no name; write `#[extension(name = \"message-window\")]`"
    );
}

#[test]
fn name_that_is_no_string() {
    let expected = "option `name` takes a string; write `name = \"message-window\"`";
    for args in [quote!(name), quote!(name =), quote!(name = window), quote!(name = 3)] {
        assert_eq!(error_of_args(args), expected);
    }
}

#[test]
fn name_against_the_grammar() {
    let error = |name: &str| error_of_args(quote!(name = #name));
    assert_eq!(error("MessageWindow"), "`MessageWindow` is not a legal extension name; write `message-window`");
    assert_eq!(error("message_window"), "`message_window` is not a legal extension name; write `message-window`");
    assert_eq!(
        error(&"a".repeat(64)),
        format!("`{}` is not a legal extension name; use at most 63 characters", "a".repeat(64))
    );
    for illegal in ["", "-", "1a", "é"] {
        assert_eq!(
            error(illegal),
            format!(
                "`{illegal}` is not a legal extension name; use lower-case letters and digits, in words joined by \
                 single hyphens, starting with a letter"
            )
        );
    }
    assert_eq!(
        error_of_args(quote!(name = "a", name = "b")),
        "option `name` of `#[extension]` is given twice; keep one"
    );
}

#[test]
fn unknown_option_of_extension() {
    assert_eq!(
        error_of_args(quote!(name = "a", crates = b)),
        "unknown option `crates` of `#[extension]`; write `crate`"
    );
    assert_eq!(
        error_of_args(quote!(name = "a", description = "b")),
        "unknown option `description` of `#[extension]`; `name` and `crate` can be given"
    );
}

#[test]
fn crate_that_is_no_path() {
    assert_eq!(
        error_of_args(quote!(name = "a", crate = "goondan")),
        "option `crate` takes a path; write `crate = the_name_of_goondan_here`"
    );
}

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
fn roles_of_later_versions() {
    assert_eq!(
        error_of(quote!(
            #[tool(name = "a__b")]
            fn f(&self) {}
        )),
        "`#[tool]` is not in this version of goondan; register the tool in `#[init]` with \
         `api.tools().register(item, handler)`"
    );
    assert_eq!(
        error_of(quote!(
            #[on("x")]
            fn f(&self) {}
        )),
        "`#[on]` is not in this version of goondan; remove it"
    );
    assert_eq!(
        error_of(quote!(
            #[cleanup]
            async fn f(&self) {}
        )),
        "`#[cleanup]` is not in this version of goondan; implement `Drop`"
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
    assert_eq!(error(quote!(llmCall)), "unknown middleware kind `llmCall`; write `step`, which replaces it");
    assert_eq!(
        error(quote!(step.pre)),
        "unknown middleware kind `step.pre`; write `step`; what comes before `next.run(ctx)` is its pre phase"
    );
    assert_eq!(
        error(quote!(toolCall.post)),
        "unknown middleware kind `toolCall.post`; write `toolCall`; what comes after `next.run(ctx)` is its post phase"
    );
    assert_eq!(error(quote!(request)), "unknown middleware kind `request`; write `turn`, `step` or `toolCall`");
}

#[test]
fn unknown_option_of_middleware() {
    let error = |option: TokenStream| error_of_attribute(quote!(#[middleware(turn, #option)]));
    assert_eq!(error(quote!(prority = 1)), "unknown option `prority` of `#[middleware]`; write `priority`");
    assert_eq!(error(quote!(order = 1)), "unknown option `order` of `#[middleware]`; `priority` can be given");
    assert_eq!(
        error(quote!(before = "logging")),
        "option `before` is not in this version of goondan; order with `priority = -5`"
    );
}

#[test]
fn priority_that_is_no_32_bit_literal() {
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
fn middleware_with_another_self() {
    for written in [quote!(self), quote!(&mut self), quote!(&'static self), quote!(self: Arc<Self>)] {
        assert_eq!(
            error_of(quote!(#[middleware(turn)] async fn trim(#written) -> Result<TurnResult> {})),
            format!("middleware `trim` must take `&self`; write it in the place of `{written}`")
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
        "middleware `trim` must not be generic; remove `< 'a >` and write concrete types"
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
fn conditional_middleware() {
    assert_eq!(
        error_of_attribute(quote!(#[middleware(turn)] #[cfg(unix)])),
        "middleware `trim` must not be under `#[cfg]`; put the condition on the whole `impl` block"
    );
}
