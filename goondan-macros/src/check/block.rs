//! Rules for the item under `#[extension]`.

use proc_macro2::{Ident, TokenStream, TokenTree};

use super::words::source_text;
use crate::errors::Errors;
use crate::model::{Block, Form, Item, Model};

/// An extension is a group of functions: the methods of a type, which share a value, or the functions of a module,
/// which share none.
pub(super) fn is_a_block<'m>(model: &'m Model, errors: &mut Errors) -> Option<&'m Block> {
    match &model.item {
        Item::Block(block) => return Some(block),
        Item::Other(Some(keyword), tokens) if keyword == "mod" => errors.at(
            tokens,
            "`#[extension]` cannot see into a file; write the module with its body, `mod name { … }`, or put \
             `#[extension]` on an `impl` block in the file",
        ),
        Item::Other(Some(keyword), tokens) => {
            let (name, remedy) = (name(keyword, tokens), remedy(keyword, tokens));
            errors.at(
                keyword,
                format!(
                    "`#[extension]` must be on an `impl` block or a module, not on the {keyword} `{name}`; {remedy}"
                ),
            );
        }
        Item::Other(None, tokens) => {
            errors.at(
                tokens,
                "`#[extension]` must be on an `impl` block or a module; move it to the `impl` block of a type",
            );
        }
    }
    None
}

fn remedy(keyword: &Ident, item: &TokenStream) -> String {
    let name = name(keyword, item);
    match keyword.to_string().as_str() {
        "struct" | "enum" | "union" => format!("move it to `impl {name} {{ … }}`"),
        "fn" => "put the function into `mod name { … }`, and `#[extension]` on that".to_owned(),
        _ => "move it to the `impl` block of a type".to_owned(),
    }
}

/// The first identifier after the keyword.
fn name(keyword: &Ident, item: &TokenStream) -> String {
    let from_keyword =
        item.clone().into_iter().skip_while(|token| !matches!(token, TokenTree::Ident(word) if word == keyword));
    from_keyword
        .skip(1)
        .find_map(|token| if let TokenTree::Ident(name) = token { Some(name.to_string()) } else { None })
        .unwrap_or_default()
}

/// A trait decides which functions its `impl` has, so helper attributes cannot add any.
pub(super) fn is_inherent(block: &Block, errors: &mut Errors) -> bool {
    if let Form::Impl(header) = &block.form
        && let Some((path, _)) = &header.trait_
    {
        let (name, trait_name) = (block.name(), source_text(path));
        errors.at(
            path,
            format!(
                "extension `{name}` must be an inherent `impl`; move its functions from `impl {trait_name} for {name}` to \
                 `impl {name} {{ … }}`"
            ),
        );
        return false;
    }
    true
}

/// The descriptor is a static, one for each name: it cannot depend on a type parameter.
pub(super) fn is_concrete(block: &Block, errors: &mut Errors) {
    if let Form::Impl(header) = &block.form
        && !header.generics.params.is_empty()
    {
        let (name, params) = (block.name(), source_text(&header.generics));
        errors.at(
            &header.generics,
            format!("extension `{name}` must not be generic; replace `{params}` by concrete types"),
        );
    }
}
