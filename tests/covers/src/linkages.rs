//! Expansion of `#[both_linkages]`.

use proc_macro::{Group, Ident, TokenStream, TokenTree};

/// Returns the case, the two tests that run it, and its registration for the tests that interrupt all cases.
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
    let tests = format!(
        "mod {name} {{ {} {} ::goondan_breaking::case!({:?}, crate::linkage::Linkage, super::{name}); }}",
        test("linked", "Linked"),
        test("loaded", "Loaded"),
        arguments.to_string(),
    );
    let mut output = interruptible(case);
    output.extend(tests.parse::<TokenStream>());
    output
}

/// Lets the turns of a case go through the methods of `goondan_breaking::OfAgent` and `OfInstance`, which are named
/// like those of the handles, with `_` behind.
pub(crate) fn interruptible(case: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = case.into_iter().collect();
    let mut is_changed = false;
    for token in &mut tokens {
        if let TokenTree::Group(group) = token {
            *group = renamed(group, &mut is_changed);
        }
    }
    if is_changed && let Some(TokenTree::Group(body)) = tokens.last_mut() {
        let mut inner: TokenStream =
            "#[allow(unused_imports)] use ::goondan_breaking::{OfAgent as _, OfInstance as _};"
                .parse()
                .unwrap_or_default();
        inner.extend(body.stream());
        *body = regrouped(body, inner);
    }
    tokens.into_iter().collect()
}

fn renamed(group: &Group, is_changed: &mut bool) -> Group {
    let mut tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    for at in 0..tokens.len() {
        let is_call = at > 0
            && matches!(&tokens[at - 1], TokenTree::Punct(punct) if punct.as_char() == '.')
            && matches!(tokens.get(at + 1), Some(TokenTree::Group(arguments)) if !arguments.stream().is_empty());
        match &tokens[at] {
            TokenTree::Group(inner) => tokens[at] = TokenTree::Group(renamed(inner, is_changed)),
            TokenTree::Ident(name) if is_call && ["run", "instance"].contains(&&*name.to_string()) => {
                tokens[at] = TokenTree::Ident(Ident::new(&format!("{name}_"), name.span()));
                *is_changed = true;
            }
            _ => {}
        }
    }
    regrouped(group, tokens.into_iter().collect())
}

fn regrouped(group: &Group, stream: TokenStream) -> Group {
    let mut new = Group::new(group.delimiter(), stream);
    new.set_span(group.span());
    new
}
