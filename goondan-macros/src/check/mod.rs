//! Validation: the only module that rejects what was written. Each rule is one function, with its reason above it.

mod arguments;
mod block;
mod middleware;
mod plan;
mod roles;
mod signature;
mod subscription;
#[cfg(test)]
mod tests;
mod tool;
mod words;

pub(crate) use plan::{Middleware, Plan, Present, Registration, Subscription, Tool};

use crate::errors::Errors;
use crate::model::{Block, Model};

/// # Errors
/// All errors of the item, combined.
pub(crate) fn check(model: &Model) -> syn::Result<Plan<'_>> {
    let mut errors = Errors::new();
    let plan = block::is_a_block(model, &mut errors).and_then(|block| plan(model, block, &mut errors));
    errors.finish(plan)
}

/// Runs every rule before the first `?`, so that all errors are reported together.
fn plan<'m>(model: &'m Model, block: &'m Block, errors: &mut Errors) -> Option<Plan<'m>> {
    if !block::is_inherent(block, errors) {
        // The trait prescribes the signatures of these functions: the rules for ours would report spurious errors.
        return None;
    }
    block::is_concrete(block, errors);
    arguments::are_known("extension", &model.args, &["name", "requires", "guard", "crate"], errors);
    let name = arguments::name(&model.args, block, errors);
    let facade = arguments::facade(&model.args, errors);
    let requires = arguments::requires(&model.args, errors);
    let guard = arguments::guard(&model.args, errors);

    roles::are_on_functions(block, errors);
    roles::one_per_function(block, errors);
    let init = roles::init(block, errors);
    let registrations = roles::registrations(block, name.as_ref(), errors);
    roles::at_most_one_cleanup(block, errors);

    Some(Plan {
        block,
        name: name?,
        facade,
        requires: requires?,
        guard: guard?,
        init: init?,
        registrations: registrations?,
    })
}
