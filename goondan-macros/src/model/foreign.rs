//! Owns what is done with items whose parts we do not know: find out what they are, and take our attributes off.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};

use super::Role;

/// The word that tells what kind of item this is.
pub(super) fn keyword(item: &TokenStream) -> Option<Ident> {
    const KEYWORDS: [&str; 11] =
        ["impl", "mod", "struct", "enum", "union", "trait", "fn", "type", "static", "use", "macro_rules"];
    item.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(word) if KEYWORDS.iter().any(|keyword| word == keyword) => Some(word),
        _ => None,
    })
}

/// The tokens without our attributes, at any depth.
pub(crate) fn without_helpers(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let hash_before = matches!(kept.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '#');
        match token {
            TokenTree::Group(group) if hash_before && is_helper(&group) => drop(kept.pop()),
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), without_helpers(group.stream()));
                inside.set_span(group.span());
                kept.push(inside.into());
            }
            token => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

fn is_helper(brackets: &Group) -> bool {
    let mut path = brackets.stream().into_iter().filter(|token| !matches!(token, TokenTree::Punct(_)));
    let name = match path.next() {
        Some(TokenTree::Ident(facade)) if facade == "goondan" => path.next(),
        name => name,
    };
    matches!(name, Some(TokenTree::Ident(name)) if Role::of(&name).is_some())
}
