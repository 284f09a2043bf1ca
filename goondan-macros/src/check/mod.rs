//! Owns the judgement: the only place that refuses what was written. One function a rule, the reason above it.

mod arguments;
mod block;
mod roles;
mod signature;
#[cfg(test)]
mod tests;

use syn::{LitStr, Path};

use crate::fault::Faults;
use crate::model::{Block, Function, Model};

/// An extension in which every rule holds: all that `expand` relies on.
pub(crate) struct Plan<'m> {
    pub(crate) block: &'m Block,
    pub(crate) name: LitStr,
    /// The path of the crate `goondan`, when it is not the usual one.
    pub(crate) facade: Option<Path>,
    pub(crate) init: &'m Function,
    pub(crate) middlewares: Vec<Layer<'m>>,
}

/// A function that is a middleware.
pub(crate) struct Layer<'m> {
    pub(crate) function: &'m Function,
    pub(crate) kind: Kind,
    pub(crate) priority: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Turn,
    Step,
    ToolCall,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Turn, Self::Step, Self::ToolCall];

    /// As it stands in `#[middleware(…)]` and in records.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Step => "step",
            Self::ToolCall => "toolCall",
        }
    }

    /// The type, with which the names of its context and result begin.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Turn => "Turn",
            Self::Step => "Step",
            Self::ToolCall => "ToolCall",
        }
    }

    /// The method of the slots by which a middleware of this kind takes its parameters.
    pub(crate) fn take(self) -> &'static str {
        match self {
            Self::Turn => "take_in_turn",
            Self::Step => "take_in_step",
            Self::ToolCall => "take_in_tool_call",
        }
    }
}

/// # Errors
/// Every fault of the item.
pub(crate) fn check(model: &Model) -> syn::Result<Plan<'_>> {
    let mut faults = Faults::new();
    let plan = block::is_an_impl_block(model, &mut faults).and_then(|block| plan(model, block, &mut faults));
    faults.finish(plan)
}

/// Every rule has its say before the first `None` counts.
fn plan<'m>(model: &'m Model, block: &'m Block, faults: &mut Faults) -> Option<Plan<'m>> {
    block::is_inherent(block, faults);
    block::is_concrete(block, faults);
    arguments::are_known("extension", &model.args, &["name", "crate"], faults);
    let name = arguments::name(&model.args, block, faults);
    let facade = arguments::facade(&model.args, faults);

    roles::are_of_this_version(block, faults);
    roles::are_on_functions(block, faults);
    roles::come_alone(block, faults);
    let init = roles::the_init(block, faults);
    let middlewares = roles::middlewares(block, faults);

    Some(Plan { block, name: name?, facade, init: init?, middlewares: middlewares? })
}
