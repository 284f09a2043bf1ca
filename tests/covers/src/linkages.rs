//! Expansion of `#[both_linkages]`.

use proc_macro::{TokenStream, TokenTree};

/// Returns the case and the two tests that run it.
pub(crate) fn expand(arguments: &TokenStream, case: TokenStream) -> TokenStream {
    let mut tokens = case.clone().into_iter().skip_while(|token| token.to_string() != "fn").skip(1);
    let Some(TokenTree::Ident(name)) = tokens.next() else {
        return "compile_error!(\"a case is an `async fn`\");".parse().unwrap_or_default();
    };
    let test = |test: &str, linkage: &str| {
        format!(
            "#[::tokio::test({arguments})] async fn {test}() {{ \
             crate::linkage::Linkage::{linkage}.run(super::{name}()).await }}"
        )
    };
    let tests = format!("mod {name} {{ {} {} }}", test("linked", "Linked"), test("loaded", "Loaded"));
    let mut output = case;
    output.extend(tests.parse::<TokenStream>());
    output
}
