//! Owns the rules for the item that `#[extension]` stands on.

use proc_macro2::{Ident, TokenStream, TokenTree};

use super::words::written;
use crate::fault::Faults;
use crate::model::{Block, Form, Item, Model};

/// An extension is a group of functions: those of a type, which share an instance, or those of a module, which share
/// nothing.
pub(super) fn is_a_block<'m>(model: &'m Model, faults: &mut Faults) -> Option<&'m Block> {
    match &model.item {
        Item::Block(block) => return Some(block),
        Item::Other(Some(keyword), tokens) if keyword == "mod" => faults.at(
            tokens,
            "`#[extension]` cannot see into a file; write the module with its body, `mod name { … }`, or put \
             `#[extension]` on an `impl` block in the file",
        ),
        Item::Other(Some(keyword), tokens) => {
            let (name, cure) = (name(keyword, tokens), cure(keyword, tokens));
            faults.at(
                keyword,
                format!("`#[extension]` must be on an `impl` block or a module, not on the {keyword} `{name}`; {cure}"),
            );
        }
        Item::Other(None, tokens) => {
            faults.at(
                tokens,
                "`#[extension]` must be on an `impl` block or a module; move it to the `impl` block of a type",
            );
        }
    }
    None
}

fn cure(keyword: &Ident, item: &TokenStream) -> String {
    let name = name(keyword, item);
    match keyword.to_string().as_str() {
        "struct" | "enum" | "union" => format!("move it to `impl {name} {{ … }}`"),
        "fn" => "put the function into `mod name { … }`, and `#[extension]` on that".to_owned(),
        _ => "move it to the `impl` block of a type".to_owned(),
    }
}

/// What stands behind the keyword.
fn name(keyword: &Ident, item: &TokenStream) -> String {
    let behind =
        item.clone().into_iter().skip_while(|token| !matches!(token, TokenTree::Ident(word) if word == keyword));
    behind
        .skip(1)
        .find_map(|token| if let TokenTree::Ident(name) = token { Some(name.to_string()) } else { None })
        .unwrap_or_default()
}

/// A trait decides which functions its `impl` holds; ours would have no place in it.
pub(super) fn is_inherent(block: &Block, faults: &mut Faults) -> bool {
    if let Form::Impl(header) = &block.form
        && let Some((path, _)) = &header.trait_
    {
        let (name, trait_name) = (block.name(), written(path));
        faults.at(
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

/// The descriptor is a static value, and there is one for each name: it cannot depend on a parameter.
pub(super) fn is_concrete(block: &Block, faults: &mut Faults) {
    if let Form::Impl(header) = &block.form
        && !header.generics.params.is_empty()
    {
        let (name, params) = (block.name(), written(&header.generics));
        faults.at(
            &header.generics,
            format!("extension `{name}` must not be generic; replace `{params}` by concrete types"),
        );
    }
}
