//! Expands `#[extension]`: parse, check, generate.

use proc_macro2::TokenStream;

use crate::check::check;
use crate::expand;
use crate::model::{self, Model};

/// When something is wrong, the item is emitted without the helper attributes, which only this macro knows: one mistake
/// must not cause further errors.
pub(crate) fn extension(args: TokenStream, item: TokenStream) -> TokenStream {
    let model = match Model::parse(args, item.clone()) {
        Ok(model) => model,
        Err(error) => return expand::with_errors(model::strip_helpers(item), &error),
    };
    match check(&model) {
        Ok(plan) => expand::extension(&plan),
        Err(errors) => expand::with_errors(expand::stub(&model), &errors),
    }
}
