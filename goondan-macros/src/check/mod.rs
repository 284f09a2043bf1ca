//! Owns the judgement: the only place that refuses what was written. One function a rule, the reason above it.

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

pub(crate) use plan::{Layer, Part, Plan, Subscription, Tool};

use crate::fault::Faults;
use crate::model::{Block, Model};

/// # Errors
/// Every fault of the item.
pub(crate) fn check(model: &Model) -> syn::Result<Plan<'_>> {
    let mut faults = Faults::new();
    let plan = block::is_a_block(model, &mut faults).and_then(|block| plan(model, block, &mut faults));
    faults.finish(plan)
}

/// Every rule has its say before the first `None` counts.
fn plan<'m>(model: &'m Model, block: &'m Block, faults: &mut Faults) -> Option<Plan<'m>> {
    if !block::is_inherent(block, faults) {
        // Its functions have signatures that the trait prescribes.
        return None;
    }
    block::is_concrete(block, faults);
    arguments::are_known("extension", &model.args, &["name", "requires", "crate"], faults);
    let name = arguments::name(&model.args, block, faults);
    let facade = arguments::facade(&model.args, faults);
    let requires = arguments::requires(&model.args, faults);

    roles::are_on_functions(block, faults);
    roles::come_alone(block, faults);
    let init = roles::the_init(block, faults);
    let parts = roles::parts(block, name.as_ref(), faults);
    roles::cleanup_is_one(block, faults);

    Some(Plan { block, name: name?, facade, requires: requires?, init: init?, parts: parts? })
}
