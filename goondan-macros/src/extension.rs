//! Owns the way of `#[extension]`, from what was written to what it becomes.

use proc_macro2::TokenStream;

use crate::check::check;
use crate::expand;
use crate::model::{self, Model};

/// A fault leaves the item in place, without the attributes that only we know: one mistake gives one error.
pub(crate) fn extension(args: TokenStream, item: TokenStream) -> TokenStream {
    let model = match Model::parse(args, item.clone()) {
        Ok(model) => model,
        Err(error) => return expand::refused(model::without_helpers(item), &error),
    };
    match check(&model) {
        Ok(plan) => expand::extension(&plan),
        Err(faults) => expand::refused(expand::harmless(&model), &faults),
    }
}
