//! Owns the rules for the signatures of functions that carry our attributes. Which types they may take and return is
//! not judged here, as names can be aliases: the parameter traits of `goondan::params` tell the compiler. Only what no
//! alias could make right is said in plain words.

mod common;
mod lent;
mod receiver;
mod tool;

use quote::ToTokens;
use syn::{FnArg, Type};

use self::common::{is_async, is_not_generic, is_plain, is_unconditional, returns, takes_nothing_twice};
use self::lent::{borrows_from_the_call, owns_everything};
use self::receiver::{borrows_self, has_no_receiver_in_a_module, has_no_receiver_yet};
use self::tool::{has_no_tool_context, is_async_or_blocking, is_not_async, owns_its_input};

use super::plan::Kind;
use crate::fault::Faults;
use crate::model::{Block, Function};

/// A function under judgement.
struct Case<'a> {
    function: &'a Function,
    /// What the function is, for messages.
    what: String,
    /// The whole legal signature, which every message shows.
    legal: String,
}

type Rule = fn(&Case<'_>, &mut Faults);

impl Case<'_> {
    fn fault(&self, faults: &mut Faults, wrong: impl ToTokens, message: &str) {
        faults.at(wrong, format!("{} {message}\nthe whole signature is `{}`", self.what, self.legal));
    }

    fn check(&self, rules: &[Rule], faults: &mut Faults) {
        for rule in rules.iter().chain(&[is_plain, is_not_generic, takes_nothing_twice] as &[Rule]) {
            rule(self, faults);
        }
    }
}

pub(super) fn check_init(block: &Block, function: &Function, faults: &mut Faults) {
    let name = function.name();
    let (made, rules): (_, &[Rule]) = match block.is_module() {
        true => ("()", &[has_no_receiver_in_a_module, is_unconditional, owns_everything]),
        false => ("Self", &[has_no_receiver_yet, is_unconditional, owns_everything, returns]),
    };
    let what = format!("initializer `{name}`");
    let legal = format!("async fn {name}(api: ExtensionApi, config: Config) -> Result<{made}>");
    Case { function, what, legal }.check(rules, faults);
}

pub(super) fn check_middleware(block: &Block, function: &Function, kind: Option<Kind>, faults: &mut Faults) {
    let (name, this, kind) = (function.name(), this(block), kind.unwrap_or(Kind::Turn).type_name());
    let what = format!("middleware `{name}`");
    let legal =
        format!("async fn {name}({this}ctx: &mut {kind}Context<'_>, next: Next<'_, {kind}>) -> Result<{kind}Result>");
    Case { function, what, legal }.check(&[is_async, receiver(block), returns], faults);
}

pub(super) fn check_tool(block: &Block, function: &Function, blocking: bool, faults: &mut Faults) {
    let (name, this) = (function.name(), this(block));
    let what = format!("tool `{name}`");
    if blocking {
        let legal = format!("fn {name}({this}input: Input) -> Result<Output>");
        let rules =
            &[is_not_async, receiver(block), owns_its_input, borrows_from_the_call, has_no_tool_context, returns];
        Case { function, what, legal }.check(rules, faults);
    } else {
        let legal = format!("async fn {name}({this}ctx: &ToolContext<'_>, input: Input) -> Result<Output>");
        let rules = &[is_async_or_blocking, receiver(block), owns_its_input, borrows_from_the_call, returns];
        Case { function, what, legal }.check(rules, faults);
    }
}

pub(super) fn check_on(block: &Block, function: &Function, faults: &mut Faults) {
    let (name, this) = (function.name(), this(block));
    let what = format!("subscriber `{name}`");
    let legal = format!("async fn {name}({this}event: &Event) -> Result<()>");
    Case { function, what, legal }.check(&[is_async, receiver(block), returns], faults);
}

pub(super) fn check_cleanup(block: &Block, function: &Function, faults: &mut Faults) {
    let (name, this) = (function.name(), this(block));
    let what = format!("cleanup `{name}`");
    let legal = format!("async fn {name}({})", this.trim_end_matches(", "));
    Case { function, what, legal }.check(&[is_async, receiver(block)], faults);
}

/// How the parameters begin.
fn this(block: &Block) -> &'static str {
    if block.is_module() { "" } else { "&self, " }
}

fn receiver(block: &Block) -> Rule {
    if block.is_module() { has_no_receiver_in_a_module } else { borrows_self }
}

/// The types of the parameters, without `self`.
fn types<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Type> {
    case.function.sig.inputs.iter().filter_map(|arg| match arg {
        FnArg::Typed(arg) => Some(&*arg.ty),
        FnArg::Receiver(_) => None,
    })
}
