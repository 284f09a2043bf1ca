//! Owns the rules for who does what in an extension: which functions carry our attributes, and how many of them.

use quote::ToTokens;
use syn::Meta;

use super::{Layer, arguments, signature};
use crate::fault::Faults;
use crate::model::{Block, Function, Helper, Member, Role};

/// These names are taken already, so that no extension breaks when they come.
pub(super) fn are_of_this_version(block: &Block, faults: &mut Faults) {
    for helper in helpers(block) {
        let cure = match helper.role {
            Role::Init | Role::Middleware => continue,
            Role::Tool => "register the tool in `#[init]` with `api.tools().register(item, handler)`",
            Role::On => "remove it",
            Role::Cleanup => "implement `Drop`",
        };
        let path = helper.attribute.path().to_token_stream();
        faults.at(&helper.attribute, format!("`#[{path}]` is not in this version of goondan; {cure}"));
    }
}

/// Only a function can be called when its moment comes.
pub(super) fn are_on_functions(block: &Block, faults: &mut Faults) {
    for member in &block.members {
        if let Member::Other(helpers, _) = member {
            for helper in helpers {
                let path = helper.attribute.path().to_token_stream();
                faults.at(&helper.attribute, format!("`#[{path}]` must be on a function; remove it here"));
            }
        }
    }
}

/// The parameters of a function fit one role only.
pub(super) fn come_alone(block: &Block, faults: &mut Faults) {
    for function in block.functions() {
        for second in function.helpers.iter().skip(1) {
            let (name, second_name) = (function.name(), second.attribute.path().to_token_stream());
            faults.at(
                &second.attribute,
                format!("function `{name}` has a second role, `#[{second_name}]`; keep one, or call it from another"),
            );
        }
    }
}

/// The runtime makes an extension in one way, and cannot guess it.
pub(super) fn the_init<'m>(block: &'m Block, faults: &mut Faults) -> Option<&'m Function> {
    let mut inits = with_role(block, Role::Init);
    let Some((helper, init)) = inits.next() else {
        let name = block.name();
        faults.at(
            &block.header.self_ty,
            format!("extension `{name}` has no `#[init]`; add a function such as `#[init] fn new() -> Self`"),
        );
        return None;
    };
    for (second, function) in inits {
        let (name, function) = (block.name(), function.name());
        faults.at(&second.attribute, format!("extension `{name}` has a second `#[init]`, `{function}`; keep one"));
    }
    if !matches!(helper.attribute.meta, Meta::Path(_)) {
        faults.at(&helper.attribute, "`#[init]` takes no arguments; write `#[init]`");
    }
    signature::check_init(init, faults);
    Some(init)
}

/// The middlewares in source order, which is the order of their registration (ORDER-09).
pub(super) fn middlewares<'m>(block: &'m Block, faults: &mut Faults) -> Option<Vec<Layer<'m>>> {
    let all: Vec<_> =
        with_role(block, Role::Middleware).map(|(helper, function)| layer(helper, function, faults)).collect();
    all.into_iter().collect()
}

fn layer<'m>(helper: &Helper, function: &'m Function, faults: &mut Faults) -> Option<Layer<'m>> {
    let kind = arguments::kind(helper, &function.name(), faults);
    arguments::middleware_options(helper, faults);
    let priority = arguments::priority(helper, faults);
    signature::check_middleware(function, kind, faults);
    Some(Layer { function, kind: kind?, priority: priority? })
}

/// A function counts for its first role; [`come_alone`] has judged the others.
fn with_role(block: &Block, role: Role) -> impl Iterator<Item = (&Helper, &Function)> {
    block
        .functions()
        .filter_map(|function| Some((function.helpers.first()?, function)))
        .filter(move |(helper, _)| helper.role == role)
}

fn helpers(block: &Block) -> impl Iterator<Item = &Helper> {
    block.members.iter().flat_map(|member| match member {
        Member::Function(function) => &function.helpers,
        Member::Other(helpers, _) => helpers,
    })
}
