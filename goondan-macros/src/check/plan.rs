//! Owns the plan: an extension in which every rule holds, in the terms that `expand` relies on.

use syn::{LitStr, Path};

use crate::model::{Block, Function};

pub(crate) struct Plan<'m> {
    pub(crate) block: &'m Block,
    pub(crate) name: LitStr,
    /// The path of the crate `goondan`, when it is not the usual one.
    pub(crate) facade: Option<Path>,
    pub(crate) requires: Vec<LitStr>,
    /// Only a module can do without.
    pub(crate) init: Option<&'m Function>,
    /// In source order, which is the order of their registration (ORDER-09).
    pub(crate) parts: Vec<Part<'m>>,
}

/// A function that the runtime calls.
pub(crate) enum Part<'m> {
    Layer(Layer<'m>),
    Tool(Tool<'m>),
    Subscription(Subscription<'m>),
    Cleanup(&'m Function),
}

/// A function that is a middleware.
pub(crate) struct Layer<'m> {
    pub(crate) function: &'m Function,
    pub(crate) kind: Kind,
    pub(crate) priority: i32,
    /// The extensions that it must be outside of, and those that it must be inside of.
    pub(crate) before: Vec<LitStr>,
    pub(crate) after: Vec<LitStr>,
}

/// A function that is a tool.
pub(crate) struct Tool<'m> {
    pub(crate) function: &'m Function,
    /// The full name.
    pub(crate) name: String,
    pub(crate) effect: Effect,
    /// In milliseconds.
    pub(crate) timeout: Option<u64>,
    pub(crate) blocking: bool,
}

/// A function that is called for events.
pub(crate) struct Subscription<'m> {
    pub(crate) function: &'m Function,
    pub(crate) pattern: LitStr,
}

impl<'m> Plan<'m> {
    pub(crate) fn layers(&self) -> impl Iterator<Item = &Layer<'m>> {
        self.parts.iter().filter_map(|part| if let Part::Layer(layer) = part { Some(layer) } else { None })
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &Tool<'m>> {
        self.parts.iter().filter_map(|part| if let Part::Tool(tool) = part { Some(tool) } else { None })
    }

    pub(crate) fn subscriptions(&self) -> impl Iterator<Item = &Subscription<'m>> {
        self.parts.iter().filter_map(|part| if let Part::Subscription(on) = part { Some(on) } else { None })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Turn,
    Step,
    ToolCall,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Turn, Self::Step, Self::ToolCall];

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
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Idempotent,
    #[default]
    Once,
}

impl Effect {
    pub(super) const ALL: [Self; 3] = [Self::Read, Self::Idempotent, Self::Once];

    /// As it stands in `#[tool(effect = …)]` and in records.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Once => "once",
        }
    }

    /// The variant in the contract.
    pub(crate) fn variant(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Idempotent => "Idempotent",
            Self::Once => "Once",
        }
    }
}
