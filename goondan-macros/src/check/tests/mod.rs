//! One test for each error.

mod extension;
mod init;
mod middleware;
mod module;
mod subscription;
mod tool;

use proc_macro2::TokenStream;
use quote::quote;

use crate::extension::extension;

/// Expands the extension. Returns the messages for the compiler, and the rest of the expansion.
fn expand(args: TokenStream, item: TokenStream) -> (Vec<String>, String) {
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

/// The first line of each message: the second shows the whole signature.
fn errors(args: TokenStream, item: TokenStream) -> Vec<String> {
    let first_line = |error: String| error.lines().next().unwrap().to_owned();
    expand(args, item).0.into_iter().map(first_line).collect()
}

/// The one error of an extension that has `function` and a valid `#[init]`.
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

/// The one error of a middleware that is valid but for `attribute`.
fn error_of_attribute(attribute: TokenStream) -> String {
    error_of(quote!(#attribute async fn trim(&self, next: Next<'_, Turn>) -> Result<TurnResult> {}))
}

fn one(errors: Vec<String>) -> String {
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.into_iter().next().unwrap()
}

#[test]
fn a_valid_extension_has_no_errors() {
    let (errors, rest) = expand(
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
fn a_rejected_item_is_left_without_helper_attributes() {
    let (errors, rest) = expand(
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
    // The type still implements `Extension`, so that its uses cause no further errors.
    assert!(rest.contains("impl :: goondan :: __private :: Extension for Window"), "{rest}");
}

#[test]
fn all_errors_are_reported_at_once() {
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
            "middleware `trim` returns nothing; add `-> Result<TurnResult>`",
        ]
    );
}

#[test]
fn a_bad_signature_shows_the_whole_legal_one() {
    let (errors, _) = expand(
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
fn attributes_may_be_written_with_their_crate() {
    let (errors, rest) = expand(
        quote!(name = "window"),
        quote!(
            impl Window {
                #[goondan::init]
                fn new() -> Self {}
                #[goondan::tool]
                async fn search(&self) -> Result<()> {}
            }
        ),
    );
    assert_eq!(errors, [""; 0]);
    assert!(rest.contains("\"window__search\"") && !rest.contains("goondan :: tool"), "{rest}");
}

#[test]
fn attribute_outside_of_an_extension() {
    let item = quote!(
        async fn search() {}
    );
    let expansion = crate::misplaced::attribute("tool", item.clone()).to_string();
    assert!(expansion.starts_with(&item.to_string()), "{expansion}");
    assert!(expansion.contains("`#[tool]` must be inside of an extension; put `#[goondan::extension"), "{expansion}");
}
