//! Owns the rules for the item that `#[extension]` stands on.

use quote::ToTokens;

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
        Item::Other(Some(keyword), _) => faults.at(
            keyword,
            format!(
                "`#[extension]` must be on an `impl` block or a module, not on a `{keyword}`; move it to the `impl` block"
            ),
        ),
        Item::Other(None, tokens) => {
            faults.at(tokens, "`#[extension]` must be on an `impl` block or a module; move it to the `impl` block of a type");
        }
    }
    None
}

/// A trait decides which functions its `impl` holds; ours would have no place in it.
pub(super) fn is_inherent(block: &Block, faults: &mut Faults) {
    if let Form::Impl(header) = &block.form
        && let Some((path, _)) = &header.trait_
    {
        let (name, trait_name) = (block.name(), path.to_token_stream());
        faults.at(path, format!("extension `{name}` must be an inherent `impl`; move it out of `impl {trait_name}`"));
    }
}

/// The descriptor is a static value, and there is one for each name: it cannot depend on a parameter.
pub(super) fn is_concrete(block: &Block, faults: &mut Faults) {
    if let Form::Impl(header) = &block.form
        && !header.generics.params.is_empty()
    {
        let (name, params) = (block.name(), header.generics.to_token_stream());
        faults.at(
            &header.generics,
            format!("extension `{name}` must not be generic; replace `{params}` by concrete types"),
        );
    }
}
