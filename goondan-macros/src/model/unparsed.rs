//! Items that are handled as tokens, because they are not parsed: finds their keyword, strips the helper attributes.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};

use super::Role;

/// The keyword of the item, such as `impl` or `struct`.
pub(super) fn keyword(item: &TokenStream) -> Option<Ident> {
    const KEYWORDS: [&str; 11] =
        ["impl", "mod", "struct", "enum", "union", "trait", "fn", "type", "static", "use", "macro_rules"];
    item.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(word) if KEYWORDS.iter().any(|keyword| word == keyword) => Some(word),
        _ => None,
    })
}

/// Removes the helper attributes at any depth.
pub(crate) fn strip_helpers(tokens: TokenStream) -> TokenStream {
    let mut stripped: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let after_hash = matches!(stripped.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '#');
        match token {
            TokenTree::Group(group) if after_hash && is_helper(&group) => drop(stripped.pop()),
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), strip_helpers(group.stream()));
                inside.set_span(group.span());
                stripped.push(inside.into());
            }
            token => stripped.push(token),
        }
    }
    stripped.into_iter().collect()
}

fn is_helper(brackets: &Group) -> bool {
    let mut path = brackets.stream().into_iter().filter(|token| !matches!(token, TokenTree::Punct(_)));
    let name = match path.next() {
        Some(TokenTree::Ident(facade)) if facade == "goondan" => path.next(),
        name => name,
    };
    matches!(name, Some(TokenTree::Ident(name)) if Role::from_ident(&name).is_some())
}
