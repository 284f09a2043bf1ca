//! The checked extension: every rule holds, so `expand` generates code from it without further checks.

use proc_macro2::TokenStream;
use syn::{LitStr, Path};

use crate::model::{Block, Function};

pub(crate) struct Plan<'m> {
    pub(crate) block: &'m Block,
    pub(crate) name: LitStr,
    /// The path of the facade crate, if the option `crate` sets it.
    pub(crate) facade: Option<Path>,
    pub(crate) requires: Vec<LitStr>,
    /// Whether failures of the extension are never skipped.
    pub(crate) guard: bool,
    /// `None` only in a module.
    pub(crate) init: Option<&'m Function>,
    /// In source order, which is the order of registration (ORDER-09).
    pub(crate) registrations: Vec<Registration<'m>>,
}

/// A function that the extension registers, for the runtime to call.
pub(crate) enum Registration<'m> {
    Middleware(Middleware<'m>),
    Tool(Tool<'m>),
    Subscription(Subscription<'m>),
    Cleanup(&'m Function),
}

/// A function under `#[middleware]`.
pub(crate) struct Middleware<'m> {
    pub(crate) function: &'m Function,
    pub(crate) kind: Kind,
    pub(crate) priority: i32,
    /// Extensions whose layers must be further in.
    pub(crate) before: Vec<LitStr>,
    /// Extensions whose layers must be further out.
    pub(crate) after: Vec<LitStr>,
}

/// A function under `#[tool]`.
pub(crate) struct Tool<'m> {
    pub(crate) function: &'m Function,
    /// The full name, such as `notes__add`.
    pub(crate) name: String,
    pub(crate) effect: Effect,
    /// In milliseconds.
    pub(crate) timeout: Option<u64>,
    pub(crate) blocking: bool,
    /// Whether its handler asks a person.
    pub(crate) asks: bool,
    /// Whether its calls run beside others.
    pub(crate) parallel: bool,
    pub(crate) present: Option<Present<'m>>,
}

/// Presents the calls of a tool to people.
pub(crate) enum Present<'m> {
    /// A text with arguments in braces.
    Line(LitStr),
    /// A function.
    Function(&'m TokenStream),
}

/// A function under `#[on]`.
pub(crate) struct Subscription<'m> {
    pub(crate) function: &'m Function,
    pub(crate) pattern: LitStr,
}

impl<'m> Plan<'m> {
    pub(crate) fn middlewares(&self) -> impl Iterator<Item = &Middleware<'m>> {
        self.registrations.iter().filter_map(|registration| match registration {
            Registration::Middleware(middleware) => Some(middleware),
            _ => None,
        })
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &Tool<'m>> {
        self.registrations.iter().filter_map(|registration| match registration {
            Registration::Tool(tool) => Some(tool),
            _ => None,
        })
    }

    pub(crate) fn subscriptions(&self) -> impl Iterator<Item = &Subscription<'m>> {
        self.registrations.iter().filter_map(|registration| match registration {
            Registration::Subscription(subscription) => Some(subscription),
            _ => None,
        })
    }
}

/// The kind of a middleware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Turn,
    Step,
    ToolCall,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Turn, Self::Step, Self::ToolCall];

    /// The word in `#[middleware(…)]` and in records.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Step => "step",
            Self::ToolCall => "toolCall",
        }
    }

    /// The name of the type in the facade, which is also the prefix of its context and result types.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Turn => "Turn",
            Self::Step => "Step",
            Self::ToolCall => "ToolCall",
        }
    }
}

/// The effect of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Idempotent,
    #[default]
    Once,
}

impl Effect {
    pub(super) const ALL: [Self; 3] = [Self::Read, Self::Idempotent, Self::Once];

    /// The word in `#[tool(effect = …)]` and in records.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Once => "once",
        }
    }

    /// The variant of `goondan::tool::Effect`.
    pub(crate) fn variant(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Idempotent => "Idempotent",
            Self::Once => "Once",
        }
    }
}
