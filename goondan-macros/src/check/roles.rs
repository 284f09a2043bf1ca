//! Rules for the roles in an extension: which functions have one, and how often it may occur.

use std::collections::BTreeMap;

use syn::LitStr;

use super::plan::Registration;
use super::words::source_text;
use super::{arguments, middleware, signature, subscription, tool};
use crate::errors::Errors;
use crate::model::{Block, Form, Function, Helper, Member, Role};

/// Every role is a call by the runtime, and only functions can be called.
pub(super) fn are_on_functions(block: &Block, errors: &mut Errors) {
    for member in &block.members {
        if let Member::Other(helpers, _) = member {
            for helper in helpers {
                let path = source_text(helper.attribute.path());
                errors.at(&helper.attribute, format!("`#[{path}]` must be on a function; remove it here"));
            }
        }
    }
}

/// The parameters of a function fit one role only.
pub(super) fn one_per_function(block: &Block, errors: &mut Errors) {
    for function in block.functions() {
        for second in function.helpers.iter().skip(1) {
            let (name, second_name) = (function.name(), source_text(second.attribute.path()));
            errors.at(
                &second.attribute,
                format!("function `{name}` has a second role, `#[{second_name}]`; keep one, or call it from another"),
            );
        }
    }
}

/// The runtime needs exactly one function that makes the value of the type. A module has no value, so its `#[init]` is
/// optional.
pub(super) fn init<'m>(block: &'m Block, errors: &mut Errors) -> Option<Option<&'m Function>> {
    let mut inits = with_role(block, Role::Init);
    match (inits.next(), &block.form) {
        (Some((helper, init)), _) => {
            reject_further(block, inits, errors);
            arguments::are_absent(helper, errors);
            signature::check_init(block, init, errors);
            Some(Some(init))
        }
        (None, Form::Module(_)) => Some(None),
        (None, Form::Impl(header)) => {
            let name = block.name();
            errors.at(
                &header.self_ty,
                format!("extension `{name}` has no `#[init]`; add a function such as `#[init] fn new() -> Self`"),
            );
            None
        }
    }
}

/// The order of two would be undefined, and one can call whatever is needed.
pub(super) fn at_most_one_cleanup(block: &Block, errors: &mut Errors) {
    reject_further(block, with_role(block, Role::Cleanup).skip(1), errors);
}

fn reject_further<'m>(block: &Block, further: impl Iterator<Item = (&'m Helper, &'m Function)>, errors: &mut Errors) {
    for (second, function) in further {
        let (name, function, role) = (block.name(), function.name(), source_text(second.attribute.path()));
        errors.at(&second.attribute, format!("extension `{name}` has a second `#[{role}]`, `{function}`; keep one"));
    }
}

/// The functions with a role other than `#[init]`, in source order.
pub(super) fn registrations<'m>(
    block: &'m Block,
    extension: Option<&LitStr>,
    errors: &mut Errors,
) -> Option<Vec<Registration<'m>>> {
    let functions = block.functions().filter_map(|function| Some((function.helper()?, function)));
    let mut tools = BTreeMap::new();
    // Collected in two steps, so that the first `None` does not keep later functions from being checked.
    let all: Vec<_> = functions
        .filter(|(helper, _)| helper.role != Role::Init)
        .map(|(helper, function)| registration(block, helper, function, extension, &mut tools, errors))
        .collect();
    all.into_iter().collect()
}

fn registration<'m>(
    block: &Block,
    helper: &'m Helper,
    function: &'m Function,
    extension: Option<&LitStr>,
    tools: &mut BTreeMap<String, bool>,
    errors: &mut Errors,
) -> Option<Registration<'m>> {
    match helper.role {
        Role::Init => None,
        Role::Middleware => {
            middleware::middleware(block, extension, helper, function, errors).map(Registration::Middleware)
        }
        Role::Tool => {
            let tool = tool::tool(block, helper, function, extension, errors)?;
            tool::is_unique(&tool, helper, tools, errors);
            Some(Registration::Tool(tool))
        }
        Role::On => subscription::subscription(block, helper, function, errors).map(Registration::Subscription),
        Role::Cleanup => {
            arguments::are_absent(helper, errors);
            signature::check_cleanup(block, function, errors);
            Some(Registration::Cleanup(function))
        }
    }
}

fn with_role(block: &Block, role: Role) -> impl Iterator<Item = (&Helper, &Function)> {
    block
        .functions()
        .filter_map(|function| Some((function.helper()?, function)))
        .filter(move |(helper, _)| helper.role == role)
}
