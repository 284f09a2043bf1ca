//! Owns the rules for who does what in an extension: which functions carry our attributes, and how many of them.

use std::collections::BTreeMap;

use syn::LitStr;

use super::plan::Part;
use super::words::written;
use super::{arguments, middleware, signature, subscription, tool};
use crate::fault::Faults;
use crate::model::{Block, Form, Function, Helper, Member, Role};

/// Only a function can be called when its moment comes.
pub(super) fn are_on_functions(block: &Block, faults: &mut Faults) {
    for member in &block.members {
        if let Member::Other(helpers, _) = member {
            for helper in helpers {
                let path = written(helper.attribute.path());
                faults.at(&helper.attribute, format!("`#[{path}]` must be on a function; remove it here"));
            }
        }
    }
}

/// The parameters of a function fit one role only.
pub(super) fn come_alone(block: &Block, faults: &mut Faults) {
    for function in block.functions() {
        for second in function.helpers.iter().skip(1) {
            let (name, second_name) = (function.name(), written(second.attribute.path()));
            faults.at(
                &second.attribute,
                format!("function `{name}` has a second role, `#[{second_name}]`; keep one, or call it from another"),
            );
        }
    }
}

/// The runtime makes an instance in one way, and cannot guess it. A module has no instance, and needs no `#[init]`.
pub(super) fn the_init<'m>(block: &'m Block, faults: &mut Faults) -> Option<Option<&'m Function>> {
    let mut inits = with_role(block, Role::Init);
    match (inits.next(), &block.form) {
        (Some((helper, init)), _) => {
            is_one(block, inits, faults);
            arguments::are_absent(helper, faults);
            signature::check_init(block, init, faults);
            Some(Some(init))
        }
        (None, Form::Module(_)) => Some(None),
        (None, Form::Impl(header)) => {
            let name = block.name();
            faults.at(
                &header.self_ty,
                format!("extension `{name}` has no `#[init]`; add a function such as `#[init] fn new() -> Self`"),
            );
            None
        }
    }
}

/// Nobody could say which of two runs first, and one of them is enough.
pub(super) fn cleanup_is_one(block: &Block, faults: &mut Faults) {
    is_one(block, with_role(block, Role::Cleanup).skip(1), faults);
}

fn is_one<'m>(block: &Block, others: impl Iterator<Item = (&'m Helper, &'m Function)>, faults: &mut Faults) {
    for (second, function) in others {
        let (name, function, role) = (block.name(), function.name(), written(second.attribute.path()));
        faults.at(&second.attribute, format!("extension `{name}` has a second `#[{role}]`, `{function}`; keep one"));
    }
}

/// The functions that are registered.
pub(super) fn parts<'m>(block: &'m Block, extension: Option<&LitStr>, faults: &mut Faults) -> Option<Vec<Part<'m>>> {
    let functions = block.functions().filter_map(|function| Some((function.helper()?, function)));
    let mut tools = BTreeMap::new();
    let all: Vec<_> = functions
        .filter(|(helper, _)| helper.role != Role::Init)
        .map(|(helper, function)| part(block, helper, function, extension, &mut tools, faults))
        .collect();
    all.into_iter().collect()
}

fn part<'m>(
    block: &Block,
    helper: &Helper,
    function: &'m Function,
    extension: Option<&LitStr>,
    tools: &mut BTreeMap<String, bool>,
    faults: &mut Faults,
) -> Option<Part<'m>> {
    match helper.role {
        Role::Init => None,
        Role::Middleware => middleware::layer(block, extension, helper, function, faults).map(Part::Layer),
        Role::Tool => {
            let tool = tool::tool(block, helper, function, extension, faults)?;
            tool::is_new(&tool, helper, tools, faults);
            Some(Part::Tool(tool))
        }
        Role::On => subscription::subscription(block, helper, function, faults).map(Part::Subscription),
        Role::Cleanup => {
            arguments::are_absent(helper, faults);
            signature::check_cleanup(block, function, faults);
            Some(Part::Cleanup(function))
        }
    }
}

fn with_role(block: &Block, role: Role) -> impl Iterator<Item = (&Helper, &Function)> {
    block
        .functions()
        .filter_map(|function| Some((function.helper()?, function)))
        .filter(move |(helper, _)| helper.role == role)
}
