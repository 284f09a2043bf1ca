//! Rules for the signatures of functions with a role.
//!
//! Most types of parameters and return values are not checked by name, because names can be aliases: the traits in
//! `goondan::params` make the compiler reject what does not fit. The rules reject only what no alias could make right,
//! with a better message.

mod borrowing;
mod common;
mod contexts;
mod object;
mod receiver;
mod tool;

use quote::ToTokens;
use syn::{FnArg, Type};

use self::borrowing::{borrows_from_the_call, owns_everything};
use self::common::{is_async, is_not_generic, is_plain, is_unconditional, returns, takes_nothing_twice};
use self::object::{takes_an_object_as_config, takes_an_object_as_input};
use self::receiver::{borrows_self, has_no_receiver, has_no_receiver_in_a_module};
use self::tool::{can_read_its_decision, has_no_tool_context, is_async_or_blocking, is_not_async, owns_its_input};

use super::plan::Kind;
use crate::errors::Errors;
use crate::model::{Block, Function};

/// A function whose signature is checked.
struct Candidate<'a> {
    function: &'a Function,
    /// Role and name, with which every message begins: ``tool `search` ``.
    subject: String,
    /// The complete legal signature, which every message shows.
    legal: String,
}

type Rule = fn(&Candidate<'_>, &mut Errors);

impl Candidate<'_> {
    fn error(&self, errors: &mut Errors, wrong: impl ToTokens, message: &str) {
        errors.at(wrong, format!("{} {message}\nthe whole signature is `{}`", self.subject, self.legal));
    }

    /// Applies `rules`, and those for every role.
    fn check(&self, rules: &[Rule], errors: &mut Errors) {
        for rule in rules.iter().chain(&[is_plain, is_not_generic, takes_nothing_twice] as &[Rule]) {
            rule(self, errors);
        }
    }
}

pub(super) fn check_init(block: &Block, function: &Function, errors: &mut Errors) {
    let name = function.name();
    let (output, rules): (_, &[Rule]) = match block.is_module() {
        true => ("()", &[has_no_receiver_in_a_module, is_unconditional, owns_everything, takes_an_object_as_config]),
        false => ("Self", &[has_no_receiver, is_unconditional, owns_everything, takes_an_object_as_config, returns]),
    };
    let subject = format!("initializer `{name}`");
    let legal = format!("async fn {name}(api: ExtensionApi, config: Config, ctx: InitContext) -> Result<{output}>");
    Candidate { function, subject, legal }.check(rules, errors);
}

pub(super) fn check_middleware(block: &Block, function: &Function, kind: Option<Kind>, errors: &mut Errors) {
    let (name, this, kind) = (function.name(), self_parameter(block), kind.unwrap_or(Kind::Turn).type_name());
    let subject = format!("middleware `{name}`");
    let legal =
        format!("async fn {name}({this}ctx: &mut {kind}Context<'_>, next: Next<'_, {kind}>) -> Result<{kind}Result>");
    Candidate { function, subject, legal }.check(&[is_async, receiver(block), returns], errors);
}

pub(super) fn check_tool(block: &Block, function: &Function, [blocking, asks]: [bool; 2], errors: &mut Errors) {
    let (name, this) = (function.name(), self_parameter(block));
    let subject = format!("tool `{name}`");
    let (legal, rules): (_, &[Rule]) = match blocking {
        true => (format!("fn {name}({this}input: Input) -> Result<Output>"), &[is_not_async, has_no_tool_context]),
        false => (
            format!("async fn {name}({this}ctx: &ToolContext<'_>, input: Input) -> Result<Output>"),
            &[is_async_or_blocking],
        ),
    };
    let common = [receiver(block), takes_an_object_as_input, owns_its_input, borrows_from_the_call, returns];
    let asking: &[Rule] = if asks { &[can_read_its_decision] } else { &[] };
    Candidate { function, subject, legal }.check(&[rules, &common, asking].concat(), errors);
}

pub(super) fn check_on(block: &Block, function: &Function, errors: &mut Errors) {
    let (name, this) = (function.name(), self_parameter(block));
    let subject = format!("subscriber `{name}`");
    let legal = format!("async fn {name}({this}event: &Event) -> Result<()>");
    Candidate { function, subject, legal }.check(&[is_async, receiver(block), returns], errors);
}

pub(super) fn check_cleanup(block: &Block, function: &Function, errors: &mut Errors) {
    let (name, this) = (function.name(), self_parameter(block));
    let subject = format!("cleanup `{name}`");
    let legal = format!("async fn {name}({})", this.trim_end_matches(", "));
    Candidate { function, subject, legal }.check(&[is_async, receiver(block)], errors);
}

/// The start of the parameter list in a legal signature.
fn self_parameter(block: &Block) -> &'static str {
    if block.is_module() { "" } else { "&self, " }
}

fn receiver(block: &Block) -> Rule {
    if block.is_module() { has_no_receiver_in_a_module } else { borrows_self }
}

/// The types of the parameters, without `self`.
fn types<'a>(candidate: &Candidate<'a>) -> impl Iterator<Item = &'a Type> {
    candidate.function.sig.inputs.iter().filter_map(|arg| match arg {
        FnArg::Typed(arg) => Some(&*arg.ty),
        FnArg::Receiver(_) => None,
    })
}
