//! Owns the rules for the item that `#[extension]` stands on.

use quote::ToTokens;

use crate::fault::Faults;
use crate::model::{Block, Item, Model};

/// The functions of an extension share one instance, so they live on its type. Modules of free functions come later.
pub(super) fn is_an_impl_block<'m>(model: &'m Model, faults: &mut Faults) -> Option<&'m Block> {
    match &model.item {
        Item::Impl(block) => return Some(block),
        Item::Other(Some(keyword), _) if keyword == "mod" => faults.at(
            keyword,
            "`#[extension]` on a `mod` is not in this version of goondan; put it on the `impl` block of a type",
        ),
        Item::Other(Some(keyword), _) => faults.at(
            keyword,
            format!("`#[extension]` must be on an `impl` block, not on a `{keyword}`; move it to the `impl` block"),
        ),
        Item::Other(None, tokens) => {
            faults.at(tokens, "`#[extension]` must be on an `impl` block; move it to the `impl` block of a type");
        }
    }
    None
}

/// A trait decides which functions its `impl` holds; ours would have no place in it.
pub(super) fn is_inherent(block: &Block, faults: &mut Faults) {
    if let Some((path, _)) = &block.header.trait_ {
        let (name, trait_name) = (block.name(), path.to_token_stream());
        faults.at(path, format!("extension `{name}` must be an inherent `impl`; move it out of `impl {trait_name}`"));
    }
}

/// The descriptor is a static value, and there is one for each name: it cannot depend on a parameter.
pub(super) fn is_concrete(block: &Block, faults: &mut Faults) {
    let generics = &block.header.generics;
    if !generics.params.is_empty() {
        let (name, params) = (block.name(), generics.to_token_stream());
        faults.at(generics, format!("extension `{name}` must not be generic; replace `{params}` by concrete types"));
    }
}
