//! Golden tests: compares expansions with the files in `tests/expand`. `BLESS=1` writes the files instead.

use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

use crate::extension::extension;

/// Expands the extension in `tests/expand/<name>.rs`, compares it with `tests/expand/<name>.expanded.rs`, and returns
/// it.
fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expand");
    let source = fs::read_to_string(folder.join(name).with_extension("rs")).unwrap();
    let (args, item) = split(source.parse().unwrap());
    let file = syn::parse2(printable(extension(args, item))).unwrap();
    let expanded = prettyplease::unparse(&file);

    let path = folder.join(name).with_extension("expanded.rs");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &expanded).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expanded == expected, "{} differs; write it with BLESS=1 and read the change:\n{expanded}", path.display());
    expanded
}

/// Splits the source into the arguments of `#[goondan::extension]` and the item without it.
fn split(tokens: TokenStream) -> (TokenStream, TokenStream) {
    let (mut args, mut item) = (TokenStream::new(), Vec::new());
    for token in tokens {
        match &token {
            TokenTree::Group(attribute) if attribute.to_string().starts_with("[goondan :: extension") => {
                item.pop();
                let TokenTree::Group(inside) = attribute.stream().into_iter().last().unwrap() else { unreachable!() };
                args = inside.stream();
            }
            _ => item.push(token),
        }
    }
    (args, item.into_iter().collect())
}

/// Wraps bodies that do not parse in a macro call, because prettyplease prints only valid code. Such bodies contain the
/// word `half_typed`.
fn printable(tokens: TokenStream) -> TokenStream {
    let print = |token| match token {
        TokenTree::Group(group) => {
            let half_typed = |token| matches!(token, TokenTree::Ident(word) if word == "half_typed");
            let inside = match group.delimiter() == Delimiter::Brace && group.stream().into_iter().any(half_typed) {
                true => {
                    let body = group.stream();
                    quote!(as_it_was_typed! { #body })
                }
                false => printable(group.stream()),
            };
            Group::new(group.delimiter(), inside).into()
        }
        token => token,
    };
    tokens.into_iter().map(print).collect()
}

#[test]
fn impl_block() {
    golden("block");
}

#[test]
fn module() {
    golden("module");
}

#[test]
fn half_typed_bodies_keep_their_signatures() {
    let expanded = golden("half_typed");
    assert!(expanded.contains("async fn trim(") && expanded.contains("struct __layer_trim"), "{expanded}");
    assert!(expanded.contains("async fn status(&self) -> Result<usize>"), "{expanded}");
}

#[test]
fn refused_item_is_still_there() {
    let expanded = golden("refused");
    assert!(expanded.contains("fn kept(&self) {}"), "{expanded}");
}
